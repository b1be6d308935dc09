package compaction

import (
	"slices"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Limits bound one pass.
type Limits struct {
	// Bytes is how much of the WAL a pass reads at the most, but always one
	// object.
	Bytes int64
	// Quarantined streams get compacted objects but no table files for now.
	Quarantined map[base.StreamID]bool
	// Unreadable logs are left as they are for now.
	Unreadable map[base.LogID]bool
	// Inherited is what streams take from their namespace and the cluster.
	Inherited catalog.Inherited
}

// Plan is what one pass over a shard does.
type Plan struct {
	Shard   base.Shard
	Cluster base.ClusterID
	// Read is the revision of the state that was planned over.
	Read base.Revision
	// Objects are the WAL objects to read, oldest first.
	Objects []Object
	// Logs are what the objects hold that is still raw, by log.
	Logs []LogWork
}

// Object is one WAL object to read.
type Object struct {
	Key    string
	Writer base.WriterID
	Seq    base.Seq
	Size   int64
	// Revision is the commit that appended it.
	Revision base.Revision
}

// LogWork is one log's part of a pass.
type LogWork struct {
	Log   base.LogID
	Range base.OffsetRange
	// Entries make up the range, in order.
	Entries []shard.Entry
	// Decode is the part of the range that its table still needs; empty when
	// there is none, when it is quarantined, or when older records come first.
	Decode base.OffsetRange
}

// Empty reports whether there is nothing to do.
func (p *Plan) Empty() bool { return len(p.Objects) == 0 }

// maxPassEntries bounds the index entries of one plan, beyond those of its first
// object: where many logs share small objects, they outweigh the bytes.
const maxPassEntries = 1 << 17

// NewPlan plans a pass over the oldest raw entries of a shard.
func NewPlan(s *shard.State, limits Limits) Plan {
	p := Plan{Shard: s.Shard(), Cluster: s.Cluster(), Read: s.Revision()}
	var works []*LogWork
	var bytes int64
	entries := 0
	raw := newRawLogs(s, limits.Unreadable)
	for e := raw.peek(); e != nil; e = raw.peek() {
		// A commit is one object, and entries come in the order of commits.
		if n := len(p.Objects); n == 0 || p.Objects[n-1].Revision != e.Revision {
			if n > 0 && (bytes+e.Size > limits.Bytes || entries >= maxPassEntries) {
				break
			}
			p.Objects = append(p.Objects, Object{Key: e.Key(), Writer: e.Writer, Seq: e.Seq, Size: e.Size, Revision: e.Revision})
			bytes += e.Size
		}
		entries++
		if w := raw.take(); len(w.Entries) == 1 {
			works = append(works, w)
		}
	}
	for _, w := range works {
		w.Decode = decodeRange(s, w, limits)
		p.Logs = append(p.Logs, *w)
	}
	slices.SortFunc(p.Logs, func(a, b LogWork) int { return a.Log.Compare(b.Log) })
	return p
}

func decodeRange(s *shard.State, w *LogWork, limits Limits) base.OffsetRange {
	st, ok := s.Stream(w.Log.Stream)
	l, _ := s.Log(w.Log)
	if !ok || !limits.Inherited.Table(st).Enabled || limits.Quarantined[st.ID] || !w.Range.Contains(l.Prepared()) {
		return base.OffsetRange{}
	}
	return base.OffsetRange{Start: l.Prepared(), End: w.Range.End}
}

// Backlog is a range of a log that is compacted and that its table still needs:
// the table was enabled later, or a Prepared was lost.
type Backlog struct {
	Log   base.LogID
	Range base.OffsetRange
}

// maxBacklogRecords bounds one step of catching up.
const maxBacklogRecords = 200_000

// Backlogs returns what tables still need of the compacted part of their logs, a
// bounded piece of each log.
func Backlogs(s *shard.State, limits Limits) []Backlog {
	var all []Backlog
	for _, st := range s.Streams() {
		if !limits.Inherited.Table(st).Enabled || limits.Quarantined[st.ID] {
			continue
		}
		for _, l := range st.Logs {
			start, end := l.Prepared(), s.RawStart(l)
			if start < l.Floor() {
				// Only an explicit Skip may leave a gap in a table.
				continue
			}
			if start < end {
				all = append(all, Backlog{Log: l.ID(), Range: base.OffsetRange{Start: start, End: min(end, start+maxBacklogRecords)}})
			}
		}
	}
	return all
}

// Due says when a pass is worth its cost.
type Due struct {
	// Age is how old the oldest raw record of a log without a table may become.
	Age time.Duration
	// Bytes of objects that hold something raw make a pass due at once.
	Bytes int64
}

// Wait returns how long after now the next pass is due: 0 for at once, and false
// when nothing is raw.
func (d Due) Wait(s *shard.State, now base.Millis, limits Limits) (time.Duration, bool) {
	wait, some := time.Duration(0), false
	for _, st := range s.Streams() {
		age := d.Age
		if t := limits.Inherited.Table(st); t.Enabled {
			age = min(age, t.CommitInterval)
		}
		for _, l := range st.Logs {
			e, ok := s.Find(l, s.RawStart(l))
			if !ok || limits.Unreadable[l.ID()] {
				continue
			}
			left := age - time.Duration(max(0, now-e.AppendTime))*time.Millisecond
			if !some || left < wait {
				wait, some = left, true
			}
		}
	}
	if some && s.RawObjectBytes() >= d.Bytes {
		return 0, true
	}
	return max(0, wait), some
}
