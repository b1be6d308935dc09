package sim

import "time"

// clock stands still until a step moves it.
type clock struct {
	now time.Time
	// skew is how far the clock of the coordination server is off.
	skew time.Duration
}

func newClock() *clock { return &clock{now: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time { return c.now }

// After implements base.Clock. Nothing that is stepped waits.
func (c *clock) After(time.Duration) <-chan time.Time { return nil }

func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

// serverClock is the clock of the coordination server, which is no better than
// others.
type serverClock struct{ *clock }

func (c serverClock) Now() time.Time { return c.now.Add(c.skew) }
