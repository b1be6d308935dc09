package gc

import (
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Grace is how long an object that is dead is kept for readers that found it in an
// index before.
const Grace = 10 * time.Minute

// graves remembers since when this process knows that objects are dead, by its own
// monotonic clock: one that was started later, or whose machine slept, waits longer.
type graves struct {
	grace time.Duration
	since map[string]time.Time
}

func newGraves(grace time.Duration) *graves {
	return &graves{grace: grace, since: make(map[string]time.Time)}
}

// due returns at most limit of the dead objects that may be deleted now: those that
// have been known to be dead for the grace, and that were dead at the revision
// covered already. Whether only that keeps some is uncovered.
func (g *graves) due(now time.Time, dead []shard.Dead, covered base.Revision, limit int) (keys []string, uncovered bool) {
	still := make(map[string]time.Time, len(dead))
	for _, d := range dead {
		since, known := g.since[d.Key]
		if !known {
			since = now
		}
		still[d.Key] = since
		switch {
		case now.Sub(since) < g.grace:
		case d.Since > covered:
			uncovered = true
		case len(keys) < limit:
			keys = append(keys, d.Key)
		}
	}
	g.since = still
	return keys, uncovered
}

// hiding remembers since when this process knows that a trim hides the records of a
// log before an offset.
type hiding struct {
	grace time.Duration
	logs  map[base.LogID]hidden
}

type hidden struct {
	// dropped is the offset before which records were hidden for the grace; next,
	// beyond it, is that before which they are hidden since since.
	dropped, next base.Offset
	since         time.Time
}

func newHiding(grace time.Duration) *hiding {
	return &hiding{grace: grace, logs: make(map[base.LogID]hidden)}
}

// observe takes in what a state hides.
func (h *hiding) observe(now time.Time, s *shard.State) {
	seen := make(map[base.LogID]hidden)
	for _, st := range s.Streams() {
		for _, l := range st.Logs {
			if l.Start() == l.Floor() {
				continue
			}
			entry, known := h.logs[l.ID()]
			if !known {
				entry = hidden{next: l.Start(), since: now}
			}
			if now.Sub(entry.since) >= h.grace {
				entry = hidden{dropped: entry.next, next: l.Start(), since: now}
			}
			seen[l.ID()] = entry
		}
	}
	h.logs = seen
}

// of returns the offset before which a log's records have been hidden for the grace.
func (h *hiding) of(l *shard.Log) base.Offset { return h.logs[l.ID()].dropped }
