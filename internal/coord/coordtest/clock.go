package coordtest

import (
	"sync"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Clock is a clock that stands still until a test advances it. It is safe for
// concurrent use.
type Clock struct {
	mu     sync.Mutex
	now    time.Time // guarded by mu
	timers []timer   // guarded by mu
}

type timer struct {
	at time.Time
	ch chan time.Time
}

var _ base.Clock = (*Clock)(nil)

// NewClock returns a clock that stands at the start of 2026.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)}
}

// Now returns where the clock stands.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After returns a channel that delivers when the clock was advanced by d.
func (c *Clock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := timer{at: c.now.Add(d), ch: make(chan time.Time, 1)}
	c.timers = append(c.timers, t)
	c.fire()
	return t.ch
}

// Advance moves the clock by d and fires the timers that are due.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.fire()
}

// Timers returns how many timers wait: a test that advances the clock first
// waits until what it tests has set its timer.
func (c *Clock) Timers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// fire needs mu.
func (c *Clock) fire() {
	waiting := c.timers[:0]
	for _, t := range c.timers {
		if t.at.After(c.now) {
			waiting = append(waiting, t)
			continue
		}
		t.ch <- c.now
	}
	c.timers = waiting
}
