package log

import (
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Keep is what a log keeps of what was appended to it.
type Keep struct {
	// Time is how old an entry may get; 0 keeps none, negative keeps all.
	Time time.Duration
	// Bytes is what the log keeps at least, as stored; 0 keeps none, negative
	// keeps all.
	Bytes int64
}

// RetentionOffset returns the offset up to which a log may be trimmed now: the end
// of the last whole entry, at or before limit, that is too old or that the log need
// not keep for its size. It is the log's start when nothing may go. An entry is as
// old as the newest record in it, by append times; a raw one counts the bytes of
// its blocks, a compacted one those of its object. It looks at as many entries as
// are kept for their size.
func RetentionOffset(s *shard.State, l *shard.Log, limit base.Offset, now base.Millis, keep Keep) base.Offset {
	expired := max(tooOld(s, l, now, keep.Time), tooMuch(s, l, keep.Bytes))
	to := min(expired, limit)
	if to < expired && to < l.Head() {
		// The limit may be inside an entry.
		if e, ok := s.Find(l, to); ok {
			to = e.Range.Start
		}
	}
	return max(l.Start(), to)
}

// tooOld returns the end of what is older than a time.
func tooOld(s *shard.State, l *shard.Log, now base.Millis, keep time.Duration) base.Offset {
	switch {
	case keep < 0:
		return l.Start()
	case keep == 0:
		return l.Head()
	}
	if e, ok := s.FindTime(l, now-base.Millis(keep.Milliseconds())); ok {
		return e.Range.Start
	}
	return l.Head()
}

// tooMuch returns the end of what can go so that a number of bytes stay.
func tooMuch(s *shard.State, l *shard.Log, keep int64) base.Offset {
	switch {
	case keep < 0:
		return l.Start()
	case keep == 0:
		return l.Head()
	}
	for e := range s.Backward(l) {
		if keep -= entryBytes(&e); keep <= 0 {
			return e.Range.Start
		}
	}
	return l.Start()
}

func entryBytes(e *shard.Entry) int64 {
	if e.Storage == shard.Compacted {
		return e.Size
	}
	return e.Len
}
