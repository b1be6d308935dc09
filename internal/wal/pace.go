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

// settle returns when appends have stopped arriving, at the latest after the linger
// time. Callers whose appends were just resolved are about to append again, and
// each flush that they share saves one.
func (w *Writer) settle() {
	latest := w.opts.Clock.Now().Add(w.opts.Linger)
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
