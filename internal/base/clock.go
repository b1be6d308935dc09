package base

import "time"

// Clock tells the time and makes timers. Code outside main takes one instead of
// calling package time, so that a test or the simulator decides what time it is.
// Implementations are safe for concurrent use.
type Clock interface {
	// Now returns the current time. No delete and no fence may depend on it:
	// clocks of machines disagree.
	Now() time.Time
	// After returns a channel that delivers once, d from now.
	After(d time.Duration) <-chan time.Time
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now returns time.Now.
func (SystemClock) Now() time.Time { return time.Now() } //nolint:forbidigo // the one place

// After returns time.After.
func (SystemClock) After(d time.Duration) <-chan time.Time { return time.After(d) } //nolint:forbidigo // likewise
