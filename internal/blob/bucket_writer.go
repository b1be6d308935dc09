package blob

import (
	"context"
	"fmt"

	cloudblob "gocloud.dev/blob"
)

// bucketWriter streams one object into a bucket.
type bucketWriter struct {
	store  *bucketStore
	key    string
	ctx    context.Context
	cancel context.CancelFunc
	w      *cloudblob.Writer
	ended  bool
}

// Write implements io.Writer.
func (w *bucketWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		return n, w.store.readError("writing object "+w.key, err)
	}
	return n, w.ctx.Err()
}

// Commit implements Writer.
func (w *bucketWriter) Commit() error {
	if w.ended {
		return endedError(w.key)
	}
	if err := w.ctx.Err(); err != nil {
		w.Abort()
		return fmt.Errorf("committing object %s: %w", w.key, err)
	}
	w.ended = true
	defer w.cancel()
	if err := w.w.Close(); err != nil {
		return w.store.writeError("committing object "+w.key, err)
	}
	return nil
}

// Abort implements Writer.
func (w *bucketWriter) Abort() {
	if w.ended {
		return
	}
	w.ended = true
	w.cancel()
	_ = w.w.Close() // reports the cancellation
}
