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

// Then it waits for company, a companyPause at a time, and only for as long as each
// pause brings minCompany appends: a flush costs about as much CPU as Benthos takes
// to make a hundred messages.
const (
	companyPause = time.Millisecond
	minCompany   = 8
)

// wakePace makes runPace look at what is to be waited for.
func (w *Writer) wakePace() {
	select {
	case w.pace <- struct{}{}:
	default: // it will look anyway
	}
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
			w.settle(action.Ordinal)
			w.event(func(c *Core) { c.Settled(action.Ordinal) })
		case Linger:
			ordinal = action.Ordinal
			timer = w.opts.Clock.After(w.opts.Linger)
		}
	}
}

// settle returns when it is worth while to flush the open object, at the latest after
// the linger time. Callers whose appends were just resolved are about to append
// again, and each flush that they share saves one.
func (w *Writer) settle(ordinal uint64) {
	latest := w.opts.Clock.Now().Add(w.opts.Linger)
	w.awaitQuiet(latest)
	for w.isCompanyDue(ordinal) {
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

func (w *Writer) isCompanyDue(ordinal uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.core.IsCompanyDue(ordinal)
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
