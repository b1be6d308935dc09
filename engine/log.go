package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/log"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Types of the read path.
type (
	// ReadLimits bound one read. At least one record is returned, even a
	// larger one.
	ReadLimits = log.Limits
	// Records are what one read returned, and the offset to go on from.
	Records = log.Batch
	// Positioned is a record at its place in a log.
	Positioned = recordbatch.Positioned
)

// Log reads one partition of a stream, raw and compacted parts alike. It is not
// safe for concurrent use; open one for each reader.
type Log struct {
	id     base.LogID
	view   *shard.View
	reader *log.Reader
}

func newLog(s *Stream, p Partition) *Log {
	id := base.LogID{Stream: s.info.ID, Partition: p}
	return &Log{id: id, view: s.shard.view, reader: log.NewReader(s.shard.engine.fetcher, log.NewIndex(s.shard.view.Follower), id)}
}

// Bounds returns the first live offset and the one that the next record gets.
func (l *Log) Bounds() (start, head Offset, err error) {
	err = fmt.Errorf("log %s: %w", l.id, base.ErrNotFound)
	l.view.Inspect(func(s *shard.State) {
		if found, ok := s.Log(l.id); ok {
			start, head, err = found.Start(), found.Head(), nil
		}
	})
	return start, head, err
}

// Read returns records from an offset on, at the head none. An offset before the
// first live one is ErrTrimmed, one beyond the head ErrInvalid; what cannot be
// read is ErrCorrupt or ErrUnavailable.
func (l *Log) Read(ctx context.Context, from Offset, limits ReadLimits) (Records, error) {
	return l.reader.Read(ctx, from, limits)
}

// Tail is Read that waits at the head until there is a record.
func (l *Log) Tail(ctx context.Context, from Offset, limits ReadLimits) (Records, error) {
	return l.reader.Tail(ctx, from, limits)
}

// OffsetAt returns the first offset that was appended at or after t: the head when
// there is none.
func (l *Log) OffsetAt(ctx context.Context, t time.Time) (Offset, error) {
	return l.reader.OffsetOfTime(ctx, base.MillisOf(t))
}

// openSource reads a range of a log for a table that catches up, or for a proof.
func (s *shardEngine) openSource(ctx context.Context, id base.LogID, r base.OffsetRange) (recordbatch.Source, error) {
	return log.NewSource(ctx, s.engine.fetcher, log.NewIndex(s.view.Follower), id, r)
}
