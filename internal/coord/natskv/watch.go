package natskv

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

const (
	// entryBuffer is how many entries wait between the client and the receiver.
	entryBuffer = 256
	// drainLimit bounds the wait for the client to close a stopped watch.
	drainLimit = 10 * time.Second
)

// watch forwards what the client's watcher delivers, and ends it when the
// connection that it was made on is lost: the client would resume it seconds
// later at best, and say nothing meanwhile.
type watch struct {
	log     *commitLog
	watcher jetstream.KeyWatcher
	cancel  context.CancelFunc
	entries chan coord.Entry
	once    sync.Once
	stopped chan struct{}
}

func (l *commitLog) Watch(ctx context.Context, from base.Revision) (coord.Watch, error) {
	if from == 0 {
		return nil, fmt.Errorf("%w: watching %s from revision 0: the first is 1", base.ErrInvalid, l.bucket.name)
	}
	s := l.bucket.store
	alive := s.link.context() // before the state is checked, so that no loss is missed
	if err := s.ready(ctx); err != nil {
		return nil, fmt.Errorf("watching %s: %w", l.bucket.name, err)
	}
	// The client ties the watcher to the context that it was started with,
	// so it gets one of its own, which the request's end cancels only if the
	// start is not over by then.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	request, done := s.request(ctx)
	defer done()
	abandon := context.AfterFunc(request, cancel)
	watcher, err := l.bucket.kv.WatchAll(life, jetstream.ResumeFromRevision(uint64(from)))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watching %s: %w", l.bucket.name, s.read(request, err))
	}
	w := &watch{
		log: l, watcher: watcher, cancel: cancel,
		entries: make(chan coord.Entry, entryBuffer), stopped: make(chan struct{}),
	}
	if !abandon() {
		w.release()
		return nil, fmt.Errorf("watching %s: %w", l.bucket.name, s.read(request, context.Cause(request)))
	}
	go w.forward(alive) //nolint:contextcheck // the watch lives as long as the connection, not as the caller
	return w, nil
}

func (w *watch) Entries() <-chan coord.Entry { return w.entries }

func (w *watch) Stop() { w.once.Do(func() { close(w.stopped) }) }

// forward runs until the watch is stopped or interrupted.
func (w *watch) forward(alive context.Context) {
	defer w.release()
	defer close(w.entries)
	for {
		select {
		case <-w.stopped:
			return
		case <-alive.Done():
			return
		case update, ok := <-w.watcher.Updates():
			if !ok {
				return
			}
			if update == nil {
				continue // the end of what was there at the start
			}
			if !w.deliver(alive, w.log.entry(update)) {
				return
			}
		}
	}
}

func (w *watch) deliver(alive context.Context, entry coord.Entry) bool {
	select {
	case w.entries <- entry:
		return true
	case <-w.stopped:
		return false
	case <-alive.Done():
		return false
	}
}

// release ends the client's watcher. Its callback may be blocked on the updates
// channel, so that has to be drained until it closes.
func (w *watch) release() {
	_ = w.watcher.Stop() // fails only where it has ended already
	w.cancel()
	limit := w.log.bucket.store.options.Clock.After(drainLimit)
	for {
		select {
		case _, ok := <-w.watcher.Updates():
			if !ok {
				return
			}
		case <-limit:
			return
		}
	}
}

// entry converts an update. Whatever is not a value of the commit key is a
// stray and empty, alike for every instance.
func (l *commitLog) entry(update jetstream.KeyValueEntry) coord.Entry {
	entry := coord.Entry{
		Revision: base.Revision(update.Revision()),
		Time:     base.MillisOf(update.Created()),
	}
	if update.Operation() == jetstream.KeyValuePut && update.Key() == commitKey {
		entry.Data = update.Value()
	}
	return entry
}
