package compaction

import (
	"sync"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
)

// ageClock tells the time by which records are old: at the pace of this machine, and
// never behind the log's own time. A machine whose clock is hours behind the
// coordination store's, or is set back, compacts like any other. It is safe for
// concurrent use.
type ageClock struct {
	clock base.Clock
	began time.Time

	mu sync.Mutex
	// newest is the newest time of the log, seen when it was first noticed. Guarded
	// by mu.
	newest base.Millis
	seen   time.Time
}

func newAgeClock(clock base.Clock) *ageClock {
	now := clock.Now()
	return &ageClock{clock: clock, began: now, seen: now}
}

// now returns the time, given the newest record's.
func (c *ageClock) now(newest base.Millis) base.Millis {
	now := c.clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if newest > c.newest {
		c.newest, c.seen = newest, now
	}
	return max(base.MillisOf(c.began)+since(c.began, now), c.newest+since(c.seen, now))
}

// since is what passed between two readings of a clock, at least nothing.
func since(start, now time.Time) base.Millis {
	return base.Millis(max(0, now.Sub(start)).Milliseconds())
}
