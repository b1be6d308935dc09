package plugin

import (
	"context"
	"sync"
	"time"

	"github.com/lakestream-go/lakestream/engine"
)

// window counts the batches of one partition that are not accepted. It is safe for
// concurrent use.
type window struct {
	clock engine.Clock
	limit int

	mu sync.Mutex
	// All below are guarded by mu.
	batches int
	// progress is when the window last changed.
	progress time.Time
	// changed is closed at the next change.
	changed chan struct{}
}

func newWindow(clock engine.Clock, limit int) *window {
	return &window{clock: clock, limit: limit, changed: make(chan struct{})}
}

// enter counts one more batch.
func (w *window) enter() { w.add(1) }

// leave counts one that is accepted, or given up.
func (w *window) leave() { w.add(-1) }

func (w *window) add(n int) {
	now := w.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.batches += n
	w.progress = now
	close(w.changed)
	w.changed = make(chan struct{})
}

// room waits until one more batch may be handed out.
func (w *window) room(ctx context.Context) bool { return w.await(ctx, w.limit-1) }

// isFull reports whether no more batch may be handed out now.
func (w *window) isFull() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.batches >= w.limit
}

// await waits until at most n batches are in it, or ctx ends.
func (w *window) await(ctx context.Context, n int) bool {
	for {
		w.mu.Lock()
		batches, changed := w.batches, w.changed
		w.mu.Unlock()
		if batches <= n {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// stalled reports whether a batch is in it and nothing has changed for so long.
func (w *window) stalled(after time.Duration) bool {
	now := w.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.batches > 0 && now.Sub(w.progress) > after
}
