package engine

import (
	"context"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/lakestream-go/lakestream/internal/cursor"
)

// Types of cursors.
type (
	// Cursor is a place in one partition: what was consumed, and where to read
	// next. What a caller says is durable with Persist.
	Cursor = cursor.Cursor
	// CursorRead bounds one read of a cursor.
	CursorRead = cursor.ReadOptions
	// Place names one partition of one incarnation of a stream. It is
	// comparable.
	Place = cursor.Place
)

// Limits of cursors and groups.
const (
	// MaxCursorNameBytes is the longest the name of a cursor, of a consumer
	// group or of its member may be.
	MaxCursorNameBytes = cursor.MaxNameBytes
	// MaxAcks is the most ranges after its mark that a cursor remembers.
	MaxAcks = cursor.MaxAcks
)

// OpenCursor opens the durable cursor of a name in one partition, creating it when
// absent, and takes it from whoever had it open: their next Persist is ErrFenced.
// One that is new has no mark and reads from offset 0; Reset puts it elsewhere. The
// cursor belongs to this incarnation of the stream. Close it in the end; that does
// not persist.
func (s *Stream) OpenCursor(ctx context.Context, p Partition, name string) (*Cursor, error) {
	log, err := s.Log(p)
	if err != nil {
		return nil, fmt.Errorf("opening cursor %s: %w", name, err)
	}
	e := s.shard.engine
	return cursor.Open(ctx, cursor.OpenOptions{
		Documents: e.coordination.Documents(), Clock: e.clock, Place: s.Place(p), Name: name, Owner: ulid.Make().String(), Log: log,
	})
}

// EphemeralCursor returns a cursor that nothing remembers, in one partition at an
// offset.
func (s *Stream) EphemeralCursor(p Partition, at Offset) (*Cursor, error) {
	log, err := s.Log(p)
	if err != nil {
		return nil, fmt.Errorf("opening a cursor: %w", err)
	}
	return cursor.NewEphemeral(log, at), nil
}

// Place names a partition of this incarnation of the stream.
func (s *Stream) Place(p Partition) Place {
	return Place{Stream: cursor.Stream{Shard: s.info.Shard, ID: s.info.ID, Name: s.info.Name}, Partition: p}
}
