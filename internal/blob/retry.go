package blob

import (
	"context"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Bounds of the retries of one call.
const (
	maxAttempts  = 4
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 2 * time.Second
)

// Time that one attempt may take: an allowance and a share for its bytes, at a rate
// that any usable network exceeds.
const (
	attemptAllowance = 15 * time.Second
	slowestRate      = 512 << 10 // bytes a second
	maxTimedBytes    = 5 << 30   // no object and no part of one is larger
)

// retrier repeats calls that failed in a way that may pass. The providers' clients
// repeat nothing themselves, except for the parts of a streamed object, which only
// they can send again.
type retrier struct {
	clock base.Clock
	// jitter draws from [0, 1), so that instances which failed together do not
	// return together.
	jitter func() float64
}

// do calls attempt, each time with a deadline that fits size bytes, until it
// succeeds, fails for good, has failed maxAttempts times, or ctx ends. It returns
// the last error.
func (r retrier) do(ctx context.Context, size int64, attempt func(context.Context) error) error {
	for n := 1; ; n++ {
		err := r.once(ctx, size, attempt)
		if err == nil || n == maxAttempts || !passing(err) || !r.wait(ctx, n) {
			return err
		}
	}
}

func (retrier) once(ctx context.Context, size int64, attempt func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout(size))
	defer cancel()
	return attempt(ctx)
}

func attemptTimeout(size int64) time.Duration {
	return attemptAllowance + time.Duration(min(size, maxTimedBytes)/slowestRate)*time.Second
}

// wait waits between half and all of the n-th back-off. It returns false when ctx
// ended first.
func (r retrier) wait(ctx context.Context, n int) bool {
	d := min(maxBackoff, firstBackoff<<(n-1))
	d = d/2 + time.Duration(r.jitter()*float64(d/2))
	select {
	case <-r.clock.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
