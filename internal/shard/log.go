package shard

import (
	"iter"
	"sort"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// Storage tells in which kind of object an index entry's records are.
type Storage uint8

// The kinds of storage.
const (
	Raw Storage = iota + 1
	Compacted
)

// Entry is one range of a log's index, with the object that holds it.
type Entry struct {
	Log base.LogID
	// Range is what the object holds of the log. The log may have been trimmed
	// into it.
	Range   base.OffsetRange
	Storage Storage
	// Shard, Writer and Seq name the object; Size is its bytes.
	Shard  base.Shard
	Writer base.WriterID
	Seq    base.Seq
	Size   int64
	// Pos and Len locate the batches inside a raw object.
	Pos, Len int64
	// Revision is the commit that put the entry into the index.
	Revision base.Revision
	// AppendTime is that commit's time; for a compacted entry it is the time of
	// the newest append inside.
	AppendTime base.Millis
}

// Key returns the key of the object that holds the entry.
func (e *Entry) Key() string {
	if e.Storage == Compacted {
		return base.CompactedKey(e.Shard, e.Writer, e.Log, e.Range, e.Seq)
	}
	return base.WALKey(e.Shard, e.Writer, e.Seq)
}

// indexEntry is an Entry without pointers, so that the collector never scans an
// index: a log holds its entries in order of their offsets.
type indexEntry struct {
	base    base.Offset
	records uint32
	object  objectRef
	pos     uint32
	len     uint32
}

func (e indexEntry) end() base.Offset { return e.base + base.Offset(e.records) }

// Log is the index and the marks of one log.
type Log struct {
	id base.LogID
	// start is the first live offset; floor, at or below it, the first retained.
	start   base.Offset
	floor   base.Offset
	fence   string
	head    base.Offset
	bytes   int64
	entries []indexEntry
	table   tableProgress
}

// tableProgress is how far a log's table is.
type tableProgress struct {
	prepared     base.Offset
	materialized base.Offset
	// pending are the prepared ranges beyond materialized, in order.
	pending []*commitpb.PreparedRange
	// pendingSince are the commit times of pending.
	pendingSince []base.Millis
	// leftOut counts the records below materialized that no table holds, on
	// purpose.
	leftOut int64
	// skipped counts the records that were trimmed before the table had them.
	skipped int64
}

// ID returns the log's identity.
func (l *Log) ID() base.LogID { return l.id }

// Start returns the first live offset.
func (l *Log) Start() base.Offset { return l.start }

// Floor returns the first retained offset. Records between it and Start are hidden,
// not gone.
func (l *Log) Floor() base.Offset { return l.floor }

// Fence returns why the log takes no appends, or nothing when it does.
func (l *Log) Fence() string { return l.fence }

// Skipped returns how many records were trimmed before the table had them.
func (l *Log) Skipped() int64 { return l.table.skipped }

// Head returns the offset that the next record will get.
func (l *Log) Head() base.Offset { return l.head }

// Bytes returns how many bytes were appended to the log, as stored.
func (l *Log) Bytes() int64 { return l.bytes }

// Prepared returns the offset below which every record was decoded for the table.
func (l *Log) Prepared() base.Offset { return l.table.prepared }

// Materialized returns the offset below which the table holds every record.
func (l *Log) Materialized() base.Offset { return l.table.materialized }

// LeftOut returns how many records below Materialized were filtered out or skipped:
// no table holds them, on purpose.
func (l *Log) LeftOut() int64 { return l.table.leftOut }

// PendingRange is a prepared range that the table does not hold yet.
type PendingRange struct {
	*commitpb.PreparedRange
	// Since is the append time of the Prepared record.
	Since base.Millis
}

// Pending returns the prepared ranges beyond Materialized, in order. Their
// contents are shared and must not be changed.
func (l *Log) Pending() []PendingRange {
	pending := make([]PendingRange, len(l.table.pending))
	for i, p := range l.table.pending {
		pending[i] = PendingRange{PreparedRange: p, Since: l.table.pendingSince[i]}
	}
	return pending
}

// Len returns the number of index entries.
func (l *Log) Len() int { return len(l.entries) }

// search returns the position of the entry that covers o, or of the first one
// beyond it.
func (l *Log) search(o base.Offset) int {
	return sort.Search(len(l.entries), func(i int) bool { return l.entries[i].end() > o })
}

// Find returns the entry that covers a retained offset, live or hidden.
func (s *State) Find(l *Log, o base.Offset) (Entry, bool) {
	i := l.search(o)
	if o < l.floor || i == len(l.entries) || l.entries[i].base > o {
		return Entry{}, false
	}
	return s.entry(l, i), true
}

// Entries returns at most limit entries from the one that covers o, or the first
// retained one beyond it, on. They may begin before Start: what is hidden is
// compacted and decoded all the same.
func (s *State) Entries(l *Log, o base.Offset, limit int) []Entry {
	first := l.search(max(o, l.floor))
	last := min(len(l.entries), first+limit)
	entries := make([]Entry, 0, max(0, last-first))
	for i := first; i < last; i++ {
		entries = append(entries, s.entry(l, i))
	}
	return entries
}

// Backward yields the entries that hold something live, the newest first.
func (s *State) Backward(l *Log) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for i := len(l.entries) - 1; i >= 0 && l.entries[i].end() > l.start; i-- {
			if !yield(s.entry(l, i)) {
				return
			}
		}
	}
}

// FindTime returns the first live entry whose append time is at or after t.
func (s *State) FindTime(l *Log, t base.Millis) (Entry, bool) {
	i := sort.Search(len(l.entries), func(i int) bool {
		return l.entries[i].end() > l.start && s.objects.get(l.entries[i].object).appendTime >= t
	})
	if i == len(l.entries) {
		return Entry{}, false
	}
	return s.entry(l, i), true
}

// RawStart returns the offset from which on the log is raw: its head when all of
// it is compacted. Everything before is compacted.
func (s *State) RawStart(l *Log) base.Offset {
	i := sort.Search(len(l.entries), func(i int) bool { return s.objects.get(l.entries[i].object).storage == Raw })
	if i == len(l.entries) {
		return l.head
	}
	return max(l.floor, l.entries[i].base)
}

// Compacted returns how many entries at the beginning of a log are compacted, and at
// which revision the last of them came into the index.
func (s *State) Compacted(l *Log) (entries int, since base.Revision) {
	n := sort.Search(len(l.entries), func(i int) bool { return s.objects.get(l.entries[i].object).storage == Raw })
	if n == 0 {
		return 0, 0
	}
	return n, s.objects.get(l.entries[n-1].object).revision
}

func (s *State) entry(l *Log, i int) Entry {
	e := l.entries[i]
	o := s.objects.get(e.object)
	return Entry{
		Log: l.id, Range: base.OffsetRange{Start: e.base, End: e.end()}, Storage: o.storage,
		Shard: s.shard, Writer: o.writer, Seq: o.seq, Size: o.size,
		Pos: int64(e.pos), Len: int64(e.len),
		Revision: o.revision, AppendTime: o.appendTime,
	}
}

// RawBytes returns how many bytes of the log are raw.
func (s *State) RawBytes(l *Log) int64 {
	var bytes int64
	for i := len(l.entries) - 1; i >= 0 && s.objects.get(l.entries[i].object).storage == Raw; i-- {
		bytes += int64(l.entries[i].len)
	}
	return bytes
}
