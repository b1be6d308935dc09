package coord

import (
	"context"
	"sync"

	"github.com/lakestream-go/lakestream/internal/base"
)

type faultyLog struct {
	f    *Faulty
	name string
	log  CommitLog
}

func (l *faultyLog) Put(ctx context.Context, data []byte) (base.Revision, error) {
	return disturb(ctx, l.f, OpPut, l.name, func() (base.Revision, error) { return l.log.Put(ctx, data) })
}

func (l *faultyLog) Bounds(ctx context.Context) (base.Revision, base.Revision, error) {
	type bounds struct{ first, last base.Revision }
	b, err := disturb(ctx, l.f, OpBounds, l.name, func() (bounds, error) {
		first, last, err := l.log.Bounds(ctx)
		return bounds{first, last}, err
	})
	return b.first, b.last, err
}

func (l *faultyLog) Purge(ctx context.Context, below base.Revision) error {
	_, err := disturb(ctx, l.f, OpPurge, l.name, func() (struct{}, error) {
		return struct{}{}, l.log.Purge(ctx, below)
	})
	return err
}

func (l *faultyLog) Watch(ctx context.Context, from base.Revision) (Watch, error) {
	var started []Watch
	inner, err := disturb(ctx, l.f, OpWatch, l.name, func() (Watch, error) {
		w, err := l.log.Watch(ctx, from)
		if err == nil {
			started = append(started, w)
		}
		return w, err
	})
	for _, w := range started {
		if w != inner {
			w.Stop() // the caller never learns of it
		}
	}
	if err != nil {
		return nil, err
	}
	w := &faultyWatch{inner: inner, entries: make(chan Entry), stopped: make(chan struct{})}
	go w.forward(l.f, l.name)
	return w, nil
}

// faultyWatch forwards entries one by one and asks before each.
type faultyWatch struct {
	inner   Watch
	entries chan Entry
	once    sync.Once
	stopped chan struct{}
}

func (w *faultyWatch) Entries() <-chan Entry { return w.entries }

func (w *faultyWatch) Stop() {
	w.once.Do(func() { close(w.stopped) })
	w.inner.Stop()
}

func (w *faultyWatch) forward(f *Faulty, name string) {
	defer close(w.entries)
	defer w.inner.Stop()
	for entry := range w.inner.Entries() {
		fault := f.next(OpDeliver, name)
		if fault.Hold != nil {
			select {
			case <-fault.Hold:
			case <-w.stopped:
				return
			}
		}
		if fault.Cut {
			return
		}
		select {
		case w.entries <- entry:
		case <-w.stopped:
			return
		}
	}
}
