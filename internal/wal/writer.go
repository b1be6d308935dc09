package wal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// Writer appends to the logs of one shard. It is safe for concurrent use.
//
// It runs until Close: failed uploads and commits are repeated with back-off for
// as long as anyone waits for them. When the view stops for good, everything that
// waits is resolved with its error, and so is every later append.
type Writer struct {
	opts Options
	form Form
	room *semaphore.Weighted // of MaxBufferedBytes; FIFO

	segments segmentList
	count    counters
	// arrivals counts appends that reached the core, encoding those on their
	// way to it: what Settle watches.
	arrivals, encoding atomic.Int64

	ctx    context.Context // lives as long as the writer
	cancel context.CancelFunc
	// closing ends the waits for room.
	closing     context.Context // ends before ctx does
	stopWaiting context.CancelFunc
	tasks       sync.WaitGroup
	pace        chan struct{} // signals pacing
	stopped     chan struct{} // closed when every goroutine has ended

	mu sync.Mutex
	// All below are guarded by mu.
	core     *Core
	actions  []Action // reused
	pacing   Action   // the newest Settle or Linger that was not taken up
	flushes  []flushWaiter
	isClosed bool
	trouble  error // the newest failure of store or log
	// subscribed is the writer whose outcomes the view delivers, 0 for none.
	subscribed base.WriterID
}

type flushWaiter struct {
	ordinal uint64
	done    chan struct{}
}

// NewWriter starts a writer. It opens its identity in the commit log with the
// first append. Options out of range are base.ErrInvalid.
func NewWriter(opts Options) (*Writer, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	if opts.CrashPoint == nil {
		opts.CrashPoint = func(string) {}
	}
	if opts.Room == nil {
		opts.Room = semaphore.NewWeighted(int64(opts.MaxBufferedBytes))
	}
	w := &Writer{
		opts:     opts,
		form:     Form{Cluster: opts.Cluster, Shard: opts.Shard, Compression: opts.Compression, Alignment: max(1, opts.Alignment)},
		room:     opts.Room,
		segments: segmentList{keep: keptSegmentBytes},
		core: NewCore(CoreConfig{
			MaxObjectBytes: opts.MaxObjectBytes, EagerBytes: opts.EagerBytes,
			UploadConcurrency: opts.UploadConcurrency, FlushWhenIdle: opts.FlushWhenIdle,
		}),
		pace:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.closing, w.stopWaiting = context.WithCancel(w.ctx)
	w.tasks.Go(w.runPace)
	w.tasks.Go(w.watch)
	return w, nil
}

// keptSegmentBytes bounds the buffers that are kept between flushes.
const keptSegmentBytes = 32 << 20

// Append appends a batch and waits until it is durable and has its offsets, or
// has failed. Results hold what became of each log's records; the error is set
// when that cannot be told: the batch is invalid (base.ErrInvalid), the writer was
// closed (base.ErrClosed), or ctx ended, before the batch entered the buffer
// (definite) or afterwards (base.ErrUnknown: it may yet be appended).
//
// Records of a producer that the stream has already are success: nothing is added.
// What fails or is unknown may be sent again in any other composition.
func (w *Writer) Append(ctx context.Context, batch *Batch) error {
	if batch.isIdempotent() {
		return w.appendOnce(ctx, batch)
	}
	return w.append(ctx, batch)
}

func (w *Writer) append(ctx context.Context, batch *Batch) error {
	if ctx.Err() != nil {
		return fmt.Errorf("appending: %w", context.Cause(ctx))
	}
	a := newAppend()
	if err := a.measure(batch, w.opts.MaxRecordBytes); err != nil {
		a.recycle()
		return err
	}
	if err := w.admit(ctx, a); err != nil {
		a.recycle()
		return err
	}
	w.encoding.Add(1)
	a.encode(batch)
	err := w.enter(a)
	w.encoding.Add(-1)
	if err != nil {
		w.leave(a)
		a.recycle()
		return err
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return fmt.Errorf("waiting for an append: %w", base.WithClass(base.ErrUnknown, context.Cause(ctx)))
	}
	batch.Results = append(batch.Results[:0], a.results...)
	if a.reusable {
		a.recycle()
	}
	return nil
}

// admit waits for room in the buffer, in the order of arrival.
func (w *Writer) admit(ctx context.Context, a *Append) error {
	a.weight = int64(min(a.bytes, w.opts.MaxBufferedBytes))
	if !w.room.TryAcquire(a.weight) {
		waiting, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(w.closing, cancel) //nolint:contextcheck // either context ends the wait
		err := w.room.Acquire(waiting, a.weight)
		stop()
		cancel()
		switch {
		case err != nil && w.closing.Err() != nil:
			return fmt.Errorf("waiting for buffer space: %w", base.ErrClosed)
		case err != nil:
			return fmt.Errorf("waiting for buffer space: %w", context.Cause(ctx))
		}
	}
	w.count.buffered.Add(a.weight)
	return nil
}

// leave gives an append's room to those who wait.
func (w *Writer) leave(a *Append) {
	w.count.buffered.Add(-a.weight)
	w.room.Release(a.weight)
}

// enter hands an append to the core.
func (w *Writer) enter(a *Append) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isClosed {
		return fmt.Errorf("appending: %w", base.ErrClosed)
	}
	w.arrivals.Add(1)
	w.core.Add(a)
	w.performLocked()
	return nil
}

// event lets fn change the core and does what the core then wants.
func (w *Writer) event(fn func(*Core)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn(w.core)
	w.performLocked()
}

// performLocked starts what the core wants done. Nothing in it blocks.
func (w *Writer) performLocked() {
	w.actions = w.core.Take(w.actions[:0])
	for _, action := range w.actions {
		switch action.Kind {
		case OpenWriter:
			w.tasks.Go(w.openWriter)
		case Upload:
			w.tasks.Go(func() { w.upload(action) })
		case Commit:
			w.tasks.Go(func() { w.commit(action) })
		case Settle, Linger:
			w.pacing = action
			w.wakePace()
		case Resolve:
			w.resolve(action.Append)
		case Release:
			if data := action.Object.data; data != nil {
				action.Object.data = nil
				w.segments.give(data)
			}
		}
	}
	clear(w.actions)
	w.wakeFlushesLocked()
}

func (w *Writer) resolve(a *Append) {
	w.count.appends.Add(1)
	for i := range a.results {
		w.count.records.Add(int64(a.results[i].Records))
	}
	w.leave(a)
	a.done <- struct{}{} // has room for the one value
}

func (w *Writer) wakeFlushesLocked() {
	for len(w.flushes) > 0 && w.core.Resolved(w.flushes[0].ordinal) {
		close(w.flushes[0].done)
		w.flushes = w.flushes[1:]
	}
}

// Flush seals what waits and blocks until everything that was appended before is
// resolved, or ctx ends.
func (w *Writer) Flush(ctx context.Context) error {
	done := make(chan struct{})
	w.event(func(c *Core) {
		w.flushes = append(w.flushes, flushWaiter{ordinal: c.Flush(), done: done})
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("flushing %s: %w", w.opts.Shard, context.Cause(ctx))
	}
}

// subscribe makes the view deliver the outcomes of this writer, and of the one
// before no longer. 0 is no writer.
func (w *Writer) subscribe(writer base.WriterID) {
	w.mu.Lock()
	before := w.subscribed
	w.subscribed = writer
	w.mu.Unlock()
	if before != 0 {
		w.opts.Log.OnWriter(before, nil)
	}
	if writer != 0 {
		w.opts.Log.OnWriter(writer, w.outcome)
	}
}

// Fence closes the writer's identity in the commit log, for a process that may
// have lost its lease. Whatever the log has not accepted by then moves to a new
// identity; no append fails by it.
func (w *Writer) Fence(ctx context.Context) error {
	w.mu.Lock()
	writer := w.core.Writer()
	w.mu.Unlock()
	if writer == 0 {
		return nil
	}
	fence := &commitpb.WriterFence{Writers: []uint64{uint64(writer)}}
	if _, err := w.opts.Log.Publish(ctx, fence); err != nil {
		return fmt.Errorf("fencing writer %d of %s: %w", writer, w.opts.Shard, err)
	}
	w.event(func(c *Core) { c.WriterClosed(writer) })
	return nil
}

// Close refuses further appends, flushes, fences the writer and stops. When ctx
// ends first it stops all the same: what is unresolved then fails, as
// base.ErrUnknown where it may have been appended. It may be called again.
func (w *Writer) Close(ctx context.Context) error {
	w.mu.Lock()
	again := w.isClosed
	w.isClosed = true
	w.mu.Unlock()
	if again {
		return w.awaitStop(ctx)
	}
	w.stopWaiting()
	err := w.Flush(ctx)
	if err == nil {
		err = w.Fence(ctx)
	}
	w.event(func(c *Core) { c.Fail(fmt.Errorf("closing %s: %w", w.opts.Shard, base.ErrClosed)) })
	w.cancel()
	go func() {
		w.tasks.Wait()
		w.subscribe(0) // only now, because one may have been being opened
		close(w.stopped)
	}()
	return errors.Join(err, w.awaitStop(ctx))
}

// awaitStop waits for the goroutines, one of which may hang in a store call.
func (w *Writer) awaitStop(ctx context.Context) error {
	select {
	case <-w.stopped:
		return nil
	default:
	}
	select {
	case <-w.stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("closing %s: %w", w.opts.Shard, context.Cause(ctx))
	}
}
