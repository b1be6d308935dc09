package cursor

import (
	"context"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/log"
)

// ReadOptions bound one read.
type ReadOptions struct {
	Limits log.Limits
	// Until is the offset before which to stop; 0 means none.
	Until base.Offset
	// Skip, when set, chooses offsets to leave out.
	Skip func(base.Offset) bool
}

// Read returns records from the reading position on, without those that are
// consumed or skipped, and moves the position behind them. A read that left out
// everything it found moves on too: it returns no records, and only one that also
// leaves ReadPosition where it was has reached the head or the bound. Errors are
// those of log.Reader and base.ErrClosed; the position then stays.
func (c *Cursor) Read(ctx context.Context, o ReadOptions) (log.Batch, error) {
	done, err := c.takeTurn(ctx)
	if err != nil {
		return log.Batch{}, err
	}
	defer done()
	from := c.position()
	if o.Until > 0 && from >= o.Until {
		return log.Batch{Next: from}, nil
	}
	batch, err := c.log.Read(ctx, from, o.Limits)
	if err != nil {
		return log.Batch{}, err
	}
	if o.Until > 0 {
		batch.Next = min(batch.Next, o.Until)
	}
	c.filter(&batch, o)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read <= from { // else someone sought or marked meanwhile
		c.read = batch.Next
	}
	return batch, nil
}

// position returns where to read: not inside what is consumed.
func (c *Cursor) position() base.Offset {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.acks.find(c.read); ok {
		return r.End
	}
	return c.read
}

// filter leaves out what the caller need not see.
func (c *Cursor) filter(batch *log.Batch, o ReadOptions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(batch.Records); n == 0 || o.Skip == nil && len(c.acks) == 0 && c.next <= batch.Records[0].Offset && batch.Records[n-1].Offset < batch.Next {
		return
	}
	kept := make([]recordbatch.Positioned, 0, len(batch.Records))
	for i := range batch.Records {
		offset := batch.Records[i].Offset
		if offset >= batch.Next || offset < c.next || o.Skip != nil && o.Skip(offset) {
			continue
		}
		if _, consumed := c.acks.find(offset); !consumed {
			kept = append(kept, batch.Records[i])
		}
	}
	batch.Records = kept
}

// Wait returns when there is a record at the reading position, ctx ends or the
// cursor is closed. It makes no request meanwhile.
func (c *Cursor) Wait(ctx context.Context) error {
	done, err := c.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-c.closing:
			cancel(base.ErrClosed)
		case <-ended:
		}
	}()
	if _, err := c.log.Tail(ctx, c.position(), log.Limits{MaxMessages: 1}); err != nil {
		if context.Cause(ctx) == base.ErrClosed { //nolint:errorlint // it was put there as it is
			return base.ErrClosed
		}
		return err
	}
	return nil
}

// takeTurn begins an operation on the log.
func (c *Cursor) takeTurn(ctx context.Context) (done func(), err error) {
	if err := c.begin(); err != nil {
		return nil, err
	}
	select {
	case <-c.turn:
		return func() { c.turn <- struct{}{}; c.running.Done() }, nil
	case <-ctx.Done():
		c.running.Done()
		return nil, ctx.Err()
	case <-c.closing:
		c.running.Done()
		return nil, base.ErrClosed
	}
}

// Seek moves the reading position; the mark stays. What is consumed is not read
// again: an offset before the mark means the first after it. An offset beyond the
// head is ErrInvalid.
func (c *Cursor) Seek(offset base.Offset) error {
	if err := c.checkHead(offset); err != nil {
		return fmt.Errorf("seeking offset %d: %w", offset, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return base.ErrClosed
	}
	c.read = max(offset, c.next)
	return nil
}

// ReadPosition returns the offset at which the next read begins.
func (c *Cursor) ReadPosition() base.Offset { return c.position() }

// HasMore reports whether the log goes on after the reading position.
func (c *Cursor) HasMore() (bool, error) {
	_, head, err := c.log.Bounds()
	return err == nil && c.position() < head, err
}

// Backlog counts the live records that are not consumed.
func (c *Cursor) Backlog() (int64, error) {
	start, head, err := c.log.Bounds()
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	left := base.OffsetRange{Start: max(start, c.next), End: head}
	return max(0, left.Len()) - c.acks.within(left), nil
}

// FirstUnconsumed returns the first live offset that is not consumed, or the head.
func (c *Cursor) FirstUnconsumed() (base.Offset, error) {
	start, head, err := c.log.Bounds()
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	first := max(start, c.next)
	if r, ok := c.acks.find(first); ok {
		first = r.End
	}
	return min(first, head), nil
}
