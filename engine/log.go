package engine

import (
	"context"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/log"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// backgroundCacheBytes bounds the cache of what passes, merges and proofs read: each
// reads on and on, and little again.
const backgroundCacheBytes = 16 * mib

// Types of the read path.
type (
	// ReadLimits bound one read. At least one record is returned, even a
	// larger one.
	ReadLimits = log.Limits
	// Records are what one read returned, and the offset to go on from.
	Records = log.Batch
	// Positioned is a record at its place in a log.
	Positioned = recordbatch.Positioned
	// OffsetRange is the offsets from Start up to, and without, End.
	OffsetRange = base.OffsetRange
	// LogEntry is one range of a log and the object that holds it.
	LogEntry = shard.Entry
	// ReadStats count what reads asked of the object store.
	ReadStats = log.Stats
)

// Log reads one partition of a stream, raw and compacted parts alike. It is not
// safe for concurrent use; open one for each reader.
//
// Its methods fail with ErrNotFound when the stream was deleted, and with the reason
// when the view of its shard has stopped. Those that take a context read objects, and
// fail with ErrUnavailable when the store cannot be reached, and with ErrCorrupt,
// which names the object, when its bytes are damaged or it is gone.
type Log struct {
	reader *log.Reader
}

func newLog(s *Stream, p Partition) *Log {
	id := base.LogID{Stream: s.info.ID, Partition: p}
	return &Log{reader: log.NewReader(s.shard.engine.fetcher, log.NewIndex(s.shard.view.Follower), id)}
}

// Bounds returns the first live offset and the one that the next record gets.
func (l *Log) Bounds() (start, head Offset, err error) {
	live, err := l.reader.Bounds()
	return live.Start, live.End, err
}

// First returns the first live offset, or the first that is still stored with what
// was trimmed softly. It is false for a log without any.
func (l *Log) First(includeTrimmed bool) (first Offset, ok bool, err error) {
	return l.reader.First(includeTrimmed)
}

// Last returns the last live offset. It is false for a log without any.
func (l *Log) Last() (last Offset, ok bool, err error) { return l.reader.Last() }

// Count returns how many live records a range holds; it may reach beyond the log.
func (l *Log) Count(r OffsetRange) (int64, error) { return l.reader.Count(r) }

// Size returns how many bytes were appended to the log in all its life, as stored:
// neither trimming nor compaction makes it less.
func (l *Log) Size() (int64, error) { return l.reader.Size() }

// Entry returns where the record at an offset is stored. An offset that was trimmed
// for good is ErrTrimmed, the head and what is beyond ErrNotFound.
func (l *Log) Entry(at Offset) (LogEntry, error) { return l.reader.Entry(at) }

// Entries returns where the records of a range are stored, in order, at most limit
// entries; go on from the end of the last one. Compaction replaces entries by such
// that hold more.
func (l *Log) Entries(r OffsetRange, limit int) ([]LogEntry, error) {
	return l.reader.Entries(r, limit)
}

// Read returns records from an offset on, at the head none. An offset before the
// first live one is ErrTrimmed, one beyond the head ErrInvalid.
func (l *Log) Read(ctx context.Context, from Offset, limits ReadLimits) (Records, error) {
	return l.reader.Read(ctx, from, limits)
}

// ReadOne returns the record at an offset. The head and what is beyond is ErrNotFound.
// It leaves the place of Read where it is.
func (l *Log) ReadOne(ctx context.Context, at Offset) (Positioned, error) {
	return l.reader.ReadOne(ctx, at)
}

// Tail is Read that waits at the head until there is a record. While it waits it asks
// the object store nothing.
func (l *Log) Tail(ctx context.Context, from Offset, limits ReadLimits) (Records, error) {
	return l.reader.Tail(ctx, from, limits)
}

// OffsetAt returns the first offset that was appended at or after t: the head when
// there is none.
func (l *Log) OffsetAt(ctx context.Context, t time.Time) (Offset, error) {
	return l.reader.OffsetOfTime(ctx, base.MillisOf(t))
}

// OffsetAtTimestamp returns the first offset whose record's own time is at or after
// t: the head when there is none. Producers set these times; where they go back, it
// is an offset at which they pass t.
func (l *Log) OffsetAtTimestamp(ctx context.Context, t time.Time) (Offset, error) {
	return l.reader.OffsetOfTimestamp(ctx, base.MillisOf(t))
}

// Search returns the first live offset whose record reached holds for, or the head
// when there is none, and reads few records for it. Once reached holds it must go on
// to hold.
func (l *Log) Search(ctx context.Context, reached func(*Positioned) bool) (Offset, error) {
	return l.reader.Search(ctx, reached)
}

// ReadStats counts what all readers of this engine have asked of the object store
// since it was opened. Passes, merges and proofs are not among them.
func (e *Engine) ReadStats() ReadStats { return e.fetcher.Stats() }

// openSource reads a range of a log for a pass or a table that catches up, or for a
// proof.
func (s *shardEngine) openSource(ctx context.Context, id base.LogID, r base.OffsetRange) (recordbatch.Source, error) {
	return log.NewSource(ctx, s.engine.background, log.NewIndex(s.view.Follower), id, r)
}
