package commit

import "context"

// Wake makes Run look at once: something was prepared, or the lease changed
// hands. It never shortens a back-off.
func (c *Committer) Wake() {
	select {
	case c.wake <- struct{}{}:
	default: // a look is due already
	}
}

// Run steps until ctx ends, and returns its error. It starts no goroutine.
func (c *Committer) Run(ctx context.Context) error {
	for {
		status, err := c.Step(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.options.OnStatus(status, err)
		if status.Delay == 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.options.Clock.After(status.Delay):
		case <-c.wake:
		}
	}
}
