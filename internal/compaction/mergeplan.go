package compaction

import (
	"math"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
)

const (
	// MergeFanIn is how many compacted objects of about as many records become one.
	MergeFanIn = 8
	// maxMergedObjects bounds the objects that become one.
	maxMergedObjects = 1024
)

// MergeLimits say which compacted objects are merged.
type MergeLimits struct {
	// TargetBytes is the size that merging works towards: an object of half of it
	// is never rewritten again. It also bounds what one plan reads, beyond the
	// first log's part. 0 merges nothing.
	TargetBytes int64
	// FanIn is how many objects of one order of magnitude are merged: at least 2.
	// Its logarithm to the number of a log's records bounds how often one record
	// is rewritten.
	FanIn int
	// Unreadable logs are left as they are for now.
	Unreadable map[base.LogID]bool
	// Since is a revision at which an empty plan was made for the same limits: only
	// logs that were compacted after it are looked at. 0 looks at all.
	Since base.Revision
}

// MergePlan is what one merge over a shard does.
type MergePlan struct {
	Shard   base.Shard
	Cluster base.ClusterID
	// Read is the revision of the state that was planned over.
	Read base.Revision
	Logs []LogMerge
}

// LogMerge is a range of one log whose compacted objects become one.
type LogMerge struct {
	Log   base.LogID
	Range base.OffsetRange
	// Objects that cover the range now, and their size together.
	Objects int
	Bytes   int64
}

// Empty reports whether there is nothing to do.
func (p *MergePlan) Empty() bool { return len(p.Logs) == 0 }

// NewMergePlan plans a merge of small compacted objects: at most one range a log.
func NewMergePlan(s *shard.State, limits MergeLimits) MergePlan {
	p := MergePlan{Shard: s.Shard(), Cluster: s.Cluster(), Read: s.Revision()}
	if limits.TargetBytes == 0 {
		return p
	}
	var bytes int64
	for _, st := range s.Streams() {
		for _, l := range st.Logs {
			if limits.Unreadable[l.ID()] {
				continue
			}
			n, since := s.Compacted(l)
			if n < 2 || since <= limits.Since {
				continue
			}
			m, ok := planMerge(mergeable(s, l, n), limits)
			if !ok {
				continue
			}
			if len(p.Logs) > 0 && bytes+m.Bytes > limits.TargetBytes || len(p.Logs) == maxLogsPerCompact {
				return p
			}
			p.Logs = append(p.Logs, m)
			bytes += m.Bytes
		}
	}
	return p
}

// mergeable returns the first entries of a log, which are compacted, as far as they
// are retained as a whole: what was trimmed for good can no longer be read.
func mergeable(s *shard.State, l *shard.Log, compacted int) []shard.Entry {
	entries := s.Entries(l, 0, compacted)
	if len(entries) > 0 && entries[0].Range.Start < l.Floor() {
		entries = entries[1:]
	}
	return entries
}

// planMerge chooses neighbours among a log's compacted entries: such that together
// reach the target; or else, the smallest first, such of which FanIn hold about as
// many records, which makes an object of the next order of magnitude.
func planMerge(entries []shard.Entry, limits MergeLimits) (LogMerge, bool) {
	for len(entries) > 0 {
		n := countWhile(entries, func(e *shard.Entry) bool { return e.Size < limits.TargetBytes/2 })
		if m, ok := mergeRun(entries[:n], limits); ok {
			return m, true
		}
		entries = entries[min(n+1, len(entries)):]
	}
	return LogMerge{}, false
}

// mergeRun chooses among neighbours that are all small.
func mergeRun(small []shard.Entry, limits MergeLimits) (LogMerge, bool) {
	var bytes int64
	for i := range small {
		if bytes += small[i].Size; bytes >= limits.TargetBytes {
			return mergeOf(small[:i+1])
		}
	}
	for order := 0; order < maxOrder && len(small) >= limits.FanIn; order++ {
		for rest := small; len(rest) > 0; {
			n := countWhile(rest, func(e *shard.Entry) bool { return orderOf(e, limits.FanIn) <= order })
			of := 0
			for i := range n {
				if orderOf(&rest[i], limits.FanIn) == order {
					of++
				}
			}
			if of >= limits.FanIn {
				return mergeOf(rest[:n])
			}
			rest = rest[min(n+1, len(rest)):]
		}
	}
	return LogMerge{}, false
}

// mergeOf merges all entries, or as many as one object may take.
func mergeOf(entries []shard.Entry) (LogMerge, bool) {
	entries = entries[:min(len(entries), maxMergedObjects)]
	start := entries[0].Range.Start
	n := countWhile(entries, func(e *shard.Entry) bool { return e.Range.End-start <= math.MaxInt32 })
	if n < 2 {
		return LogMerge{}, false
	}
	m := LogMerge{Log: entries[0].Log, Range: base.OffsetRange{Start: start, End: entries[n-1].Range.End}, Objects: n}
	for i := range n {
		m.Bytes += entries[i].Size
	}
	return m, true
}

// maxOrder is more than the order of any number of records.
const maxOrder = 64

// orderOf is the logarithm of an entry's records to the fan-in, rounded down. It
// goes by records, not by bytes, because they add up exactly: what is merged by it
// gets a higher one, however well it compresses.
func orderOf(e *shard.Entry, fanIn int) int {
	order := 0
	for n := e.Range.Len(); n >= int64(fanIn); n /= int64(fanIn) {
		order++
	}
	return order
}

func countWhile(entries []shard.Entry, fits func(*shard.Entry) bool) int {
	n := 0
	for n < len(entries) && fits(&entries[n]) {
		n++
	}
	return n
}
