package cursor

import (
	"context"
	"errors"
	"sync"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Claim is a partition that a member owns, from the stamp of its cursor until
// Release. It is safe for concurrent use.
type Claim struct {
	place  Place
	cursor *Cursor
	// drop tells the member that the claim has ended.
	drop func(*Claim)

	revoked, lost chan struct{}
	revoke, lose  func() // close them, once
}

func newClaim(place Place, cursor *Cursor, drop func(*Claim)) *Claim {
	c := &Claim{place: place, cursor: cursor, drop: drop, revoked: make(chan struct{}), lost: make(chan struct{})}
	c.revoke = sync.OnceFunc(func() { close(c.revoked) })
	c.lose = sync.OnceFunc(func() { close(c.lost) })
	return c
}

// Place returns which partition it is.
func (c *Claim) Place() Place { return c.place }

// Cursor returns the cursor of the group at the partition. It has no mark when the
// group never committed there.
func (c *Claim) Cursor() *Cursor { return c.cursor }

// Revoked returns a channel that closes when the partition shall go to another
// member: stop reading, finish what is in flight, and Release, all within the
// rebalance timeout. After it the next owner does not wait any more.
func (c *Claim) Revoked() <-chan struct{} { return c.revoked }

// Lost returns a channel that closes when the partition is another member's, or
// may be: the session ended. What is in flight cannot be committed; Release.
func (c *Claim) Lost() <-chan struct{} { return c.lost }

// Commit makes what the cursor knows to be consumed durable. Errors are those of
// Cursor.Persist; with ErrFenced the claim is lost.
func (c *Claim) Commit(ctx context.Context) error {
	err := c.cursor.Persist(ctx)
	if errors.Is(err, base.ErrFenced) {
		c.lose()
	}
	return err
}

// Release commits, lets go of the partition, and closes the cursor. After an error
// the next owner waits until the session or the rebalance timeout ends. A claim
// that another member took is no error. A second call commits nothing.
func (c *Claim) Release(ctx context.Context) error {
	defer c.drop(c)
	defer c.lose()
	c.cursor.Close()
	err := c.cursor.release(ctx)
	if errors.Is(err, base.ErrFenced) {
		return nil
	}
	return err
}
