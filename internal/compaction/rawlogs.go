package compaction

import (
	"cmp"
	"container/heap"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// rawLogs yields the raw entries of a shard in the order of their commits, a few of
// each log at a time: all of them together may be millions.
type rawLogs struct {
	state *shard.State
	logs  []*rawLog // a heap
}

// rawLog is the raw end of one log.
type rawLog struct {
	log  *shard.Log
	next []shard.Entry
	work LogWork
}

// entriesAtOnce is how many entries of a log are looked up at once.
const entriesAtOnce = 8

func newRawLogs(s *shard.State, unreadable map[base.LogID]bool) *rawLogs {
	r := &rawLogs{state: s}
	for _, st := range s.Streams() {
		for _, l := range st.Logs {
			start := s.RawStart(l)
			if start >= l.Head() || unreadable[l.ID()] {
				continue
			}
			next := s.Entries(l, start, entriesAtOnce)
			r.logs = append(r.logs, &rawLog{
				log: l, next: next, work: LogWork{Log: l.ID(), Range: base.OffsetRange{Start: next[0].Range.Start, End: next[0].Range.Start}},
			})
		}
	}
	heap.Init(r)
	return r
}

// peek returns the oldest entry that was not taken; nil when none is left.
func (r *rawLogs) peek() *shard.Entry {
	if len(r.logs) == 0 {
		return nil
	}
	return &r.logs[0].next[0]
}

// take moves the oldest entry into the work on its log, which it returns.
func (r *rawLogs) take() *LogWork {
	l := r.logs[0]
	e := l.next[0]
	l.work.Entries = append(l.work.Entries, e)
	l.work.Range.End = e.Range.End
	if l.next = l.next[1:]; len(l.next) == 0 && e.Range.End < l.log.Head() {
		l.next = r.state.Entries(l.log, e.Range.End, entriesAtOnce)
	}
	if len(l.next) == 0 {
		heap.Pop(r)
	} else {
		heap.Fix(r, 0)
	}
	return &l.work
}

// Len, Less, Swap, Push and Pop are for package heap.
func (r *rawLogs) Len() int { return len(r.logs) }

func (r *rawLogs) Less(i, j int) bool {
	a, b := &r.logs[i].next[0], &r.logs[j].next[0]
	return cmp.Or(cmp.Compare(a.Revision, b.Revision), a.Log.Compare(b.Log)) < 0
}

func (r *rawLogs) Swap(i, j int) { r.logs[i], r.logs[j] = r.logs[j], r.logs[i] }

func (r *rawLogs) Push(any) {} // all logs are there from the start

func (r *rawLogs) Pop() any {
	n := len(r.logs) - 1
	last := r.logs[n]
	r.logs[n] = nil
	r.logs = r.logs[:n]
	return last
}
