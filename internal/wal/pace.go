package wal

import (
	"runtime"
	"time"
)

// Settling yields to other goroutines until appends have stopped arriving for
// quietYields in a row, at most maxYields times.
const (
	quietYields = 2
	maxYields   = 64
)

// Then, where many callers append little at a time, it waits for half of them to
// be in the object; the other half are on their way into the next one meanwhile. It
// waits a companyPause at a time, at most for the linger time, and only for as long
// as each pause brings minCompany appends: a flush costs about as much CPU as
// Benthos takes to make a hundred messages.
const (
	companyPause = time.Millisecond
	minCompany   = 8
	// smallCrowd callers are not worth waiting for.
	smallCrowd = 32
	// fullBytes in an object are worth a flush, however many callers they are of.
	fullBytes = 128 << 10
)

// wakePace makes runPace look at what is to be waited for.
func (w *Writer) wakePace() {
	select {
	case w.pace <- struct{}{}:
	default: // it will look anyway
	}
}

// crowd estimates how many callers append at once. The zero value is empty.
type crowd struct {
	size int64
	// peak is the most that waited at one time since the last renewal.
	peak int64
}

// saw notes that so many appends wait.
func (c *crowd) saw(waiting int64) { c.peak = max(c.peak, waiting) }

// renew returns the estimate, which grows at once and shrinks by an eighth.
func (c *crowd) renew() int64 {
	c.size = max(c.peak, c.size-(c.size+7)/8)
	c.peak = 0
	return c.size
}

// runPace does what the open object waits for: arrivals to stop, or time to pass.
func (w *Writer) runPace() {
	var timer <-chan time.Time
	var ordinal uint64
	for {
		select {
		case <-w.pace:
		case <-timer:
			timer = nil
			w.event(func(c *Core) { c.Lingered(ordinal) })
			continue
		case <-w.ctx.Done():
			return
		}
		w.mu.Lock()
		action := w.pacing
		w.pacing = Action{}
		w.mu.Unlock()
		switch action.Kind { //nolint:exhaustive // no other kind is set
		case Settle:
			w.settle()
			w.event(func(c *Core) { c.Settled(action.Ordinal) })
		case Linger:
			ordinal = action.Ordinal
			timer = w.opts.Clock.After(w.opts.Linger)
		}
	}
}

// settle returns when it is worth while to flush, at the latest after the linger
// time. Callers whose appends were just resolved are about to append again, and
// each flush that they share saves one.
func (w *Writer) settle() {
	latest := w.opts.Clock.Now().Add(w.opts.Linger)
	w.awaitQuiet(latest)
	w.awaitCompany(latest)
}

// waiting returns how many appends are not resolved.
func (w *Writer) waiting() int64 { return w.arrivals.Load() - w.count.appends.Load() }

// awaitCompany waits while more callers are about to join those that wait.
func (w *Writer) awaitCompany(latest time.Time) {
	w.mu.Lock()
	callers := w.callers.renew()
	w.mu.Unlock()
	if callers < smallCrowd {
		return
	}
	for w.waiting() < callers/2 && w.count.buffered.Load() < fullBytes {
		before := w.arrivals.Load()
		select {
		case <-w.opts.Clock.After(companyPause):
		case <-w.pace: // another object wants something, so this one is gone
			w.wakePace()
			return
		case <-w.ctx.Done():
			return
		}
		if w.arrivals.Load()-before < minCompany || w.opts.Clock.Now().After(latest) {
			return
		}
	}
}

// awaitQuiet yields until appends have stopped arriving. It costs next to nothing,
// but takes a moment in which all who run are busy for a standstill.
func (w *Writer) awaitQuiet(latest time.Time) {
	last, quiet := w.arrivals.Load(), 0
	for range maxYields {
		runtime.Gosched()
		now := w.arrivals.Load()
		switch {
		case now != last || w.encoding.Load() > 0:
			last, quiet = now, 0
		case quiet+1 == quietYields:
			return
		default:
			quiet++
		}
		if w.opts.Clock.Now().After(latest) {
			return // a yield is long on a busy machine
		}
	}
}
