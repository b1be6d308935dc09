package blob

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"

	cloudblob "gocloud.dev/blob"

	"github.com/lakestream-go/lakestream/internal/base"
)

// bucketWriter streams one object into a bucket. What was handed over cannot be
// sent again from here, so the provider's client repeats each part that failed.
type bucketWriter struct {
	store   *bucketStore
	key     string
	ctx     context.Context
	cancel  context.CancelCauseFunc
	w       *cloudblob.Writer
	written written
	ended   bool
}

// errStalled ends a write in which nothing moved for as long as any usable network
// needs.
var errStalled = errors.New("the store took too long")

// Create implements Store.
func (s *bucketStore) Create(ctx context.Context, key string) (Writer, error) {
	if err := s.begin(ctx, key, checkKey(key)); err != nil {
		return nil, err
	}
	// Cancelling before Close is the only way to abort an upload.
	ctx, cancel := context.WithCancelCause(ctx)
	w, err := s.streams.NewWriter(ctx, s.prefix+key, createOnly())
	if err != nil {
		cancel(nil)
		return nil, s.readError("creating object "+key, err)
	}
	return &bucketWriter{store: s, key: key, ctx: ctx, cancel: cancel, w: w}, nil
}

// Write implements io.Writer.
func (w *bucketWriter) Write(p []byte) (n int, err error) {
	w.guard(func() { n, err = w.w.Write(p) })
	if cause := context.Cause(w.ctx); cause != nil {
		return n, w.stopped("writing", cause)
	}
	if err != nil {
		return n, w.store.readError("writing object "+w.key, err)
	}
	w.written.size += int64(n)
	w.written.checksum = crc32.Update(w.written.checksum, castagnoli, p[:n])
	return n, nil
}

// guard cancels the write when step hangs: the parts that are on their way and
// their repetitions take no longer.
func (w *bucketWriter) guard(step func()) {
	const inFlight = 64 << 20 // more than any provider's client holds of one object
	watch, done := context.WithTimeout(w.ctx, maxAttempts*attemptTimeout(inFlight))
	defer done()
	release := context.AfterFunc(watch, func() {
		if errors.Is(watch.Err(), context.DeadlineExceeded) {
			w.cancel(errStalled)
		}
	})
	defer release()
	step()
}

// stopped says why a write ended that was cancelled before its last step: nothing
// of it is visible.
func (w *bucketWriter) stopped(doing string, cause error) error {
	err := fmt.Errorf("%s object %s: %w", doing, w.key, cause)
	if errors.Is(cause, errStalled) {
		return base.WithClass(base.ErrUnavailable, err)
	}
	return err
}

// Commit implements Writer.
func (w *bucketWriter) Commit() error {
	if w.ended {
		return endedError(w.key)
	}
	if cause := context.Cause(w.ctx); cause != nil {
		w.Abort()
		return w.stopped("committing", cause)
	}
	w.ended = true
	defer w.cancel(nil)
	var err error
	w.guard(func() { err = w.w.Close() })
	doing := "committing object " + w.key
	switch {
	case err == nil:
		return nil
	case errors.Is(w.store.writeClass(err), base.ErrExists):
		// The client may have repeated a request whose answer was lost.
		return w.store.resolve(w.ctx, doing, w.key, err, w.written)
	default:
		return w.store.writeError(doing, err)
	}
}

// Abort implements Writer.
func (w *bucketWriter) Abort() {
	if w.ended {
		return
	}
	w.ended = true
	w.cancel(context.Canceled)
	_ = w.w.Close() // reports the cancellation
}
