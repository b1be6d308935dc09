package history

import (
	"context"
	"fmt"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// silence is for how long a log may deliver nothing that it holds.
const silence = 30 * time.Second

// replay calls fn with the entries [from, to] of a log, all of which it holds, in
// order. A watch that leaves some out or falls silent is base.ErrUnavailable; an
// error of fn ends it.
func replay(ctx context.Context, clock base.Clock, log coord.CommitLog, from, to base.Revision, fn func(coord.Entry) error) error {
	if from > to {
		return nil
	}
	watch, err := log.Watch(ctx, from)
	if err != nil {
		return fmt.Errorf("reading the log from revision %d: %w", from, err)
	}
	defer watch.Stop()
	for next := from; next <= to; next++ {
		select {
		case e, ok := <-watch.Entries():
			if !ok || e.Revision != next {
				return fmt.Errorf("reading the log from revision %d: interrupted at %d: %w", from, next, base.ErrUnavailable)
			}
			if err := fn(e); err != nil {
				return err
			}
		case <-clock.After(silence):
			return fmt.Errorf("reading the log from revision %d: silent at %d: %w", from, next, base.ErrUnavailable)
		case <-ctx.Done():
			return fmt.Errorf("reading the log from revision %d: %w", from, context.Cause(ctx))
		}
	}
	return nil
}
