package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/worker"
)

// cutOff is an instance whose documents can be made not to answer.
func (c *cluster) cutOff(holder string) (worker.Leases, *atomic.Bool) {
	var off atomic.Bool
	leases := c.leases(holder)
	leases.Documents = coord.NewFaulty(c.server.Open(holder), func(coord.Call) coord.Fault {
		if off.Load() {
			return coord.Fault{Before: base.ErrUnavailable}
		}
		return coord.Fault{}
	}).Documents()
	return leases, &off
}

// Given an instance that is cut off for longer than its lease lasts, then it fences
// itself before it takes a fresh lease, once.
func TestAnInstanceThatLostItsLeaseFencesItselfFirst(t *testing.T) {
	c := newCluster(t)
	leases, off := c.cutOff("a")
	var fences atomic.Int64
	run := c.start()
	run(func() {
		leases.KeepAlive(c.ctx, folds("a", 2), func(ctx context.Context) error {
			found, err := worker.Instances(ctx, c.server.Open("look").Documents())
			if err == nil && len(found) > 0 {
				err = errors.New("it has a lease again already")
			}
			fences.Add(1)
			return err
		})
	})
	c.passUntil(func() bool { return len(c.told()) == 1 }, "it lives")
	require.Zero(t, fences.Load())

	off.Store(true)
	c.passUntil(func() bool { return len(c.told()) == 0 && fences.Load() == 1 }, "its lease is gone, and it knows")
	off.Store(false)
	c.passUntil(func() bool { return len(c.told()) == 1 }, "it lives again")
	for range 100 {
		c.clock.Advance(ttl / 20)
		time.Sleep(100 * time.Microsecond)
	}
	require.EqualValues(t, 1, fences.Load())
}

// Given a fence that fails, then it is tried again for a time to live, and the instance
// goes on after that.
func TestAFenceThatFailsIsTriedAgainAndEnds(t *testing.T) {
	c := newCluster(t)
	leases, off := c.cutOff("a")
	var fences atomic.Int64
	run := c.start()
	run(func() {
		leases.KeepAlive(c.ctx, folds("a", 2), func(context.Context) error {
			fences.Add(1)
			return errors.New("the log does not answer")
		})
	})
	c.passUntil(func() bool { return len(c.told()) == 1 }, "it lives")
	off.Store(true)
	c.passUntil(func() bool { return fences.Load() > 0 }, "its lease is lost")
	off.Store(false)
	c.passUntil(func() bool { return len(c.told()) == 1 }, "it goes on")
	require.Greater(t, fences.Load(), int64(2))
}

// Given writers of two instances, when one fences what it has opened, then the other's
// stay, and fencing them once more changes nothing.
func TestAnInstanceFencesItsOwnWritersOnly(t *testing.T) {
	c := newCluster(t)
	view := c.view()
	own := worker.Opened(view, "alive")
	require.Len(t, own, 1)
	require.NoError(t, worker.Fence(t.Context(), view, own))
	require.Equal(t, []string{"dead"}, writers(view))
	at := view.Revision()
	require.NoError(t, worker.Fence(t.Context(), view, own))
	require.Equal(t, at, view.Revision(), "there was nothing to publish")
}

// Given a copy of a WriterOpen record of this instance that arrives after its writer
// was closed, when a time to live has passed, then the writer that it opened is closed,
// and the one that is used stays.
func TestALateCopyOfAWriterOpenLeavesNoWriter(t *testing.T) {
	c := newCluster(t)
	view := c.view()
	used := worker.Opened(view, "alive")
	_, err := view.Put(t.Context(), [16]byte{1}, &commitpb.WriterOpen{Token: []byte("0123456789abcdef"), Instance: "alive"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(worker.Opened(view, "alive")) == 2 }, 10*time.Second, time.Millisecond)

	defer c.live(folds("dead", 1))()
	run := c.start()
	run(func() { c.leases("alive").FenceDead(c.ctx, []worker.Ledger{view}, func() uint64 { return 0 }) })
	began := c.clock.Now()
	c.passUntil(func() bool { return len(worker.Opened(view, "alive")) == 1 }, "the stray is closed")
	require.Equal(t, used, worker.Opened(view, "alive"))
	require.GreaterOrEqual(t, c.clock.Now().Sub(began), ttl)
}

// Given an instance that was paused while it watched another that had no lease just
// then, when it wakes up, then it watches for a time to live anew.
func TestWhoWasPausedClosesNobodyAtOnce(t *testing.T) {
	c := newCluster(t)
	view := c.view()
	run := c.start()
	run(func() { c.leases("alive").FenceDead(c.ctx, []worker.Ledger{view}, func() uint64 { return 0 }) })
	c.settle()
	c.clock.Advance(ttl / 3)
	c.settle() // a first look: the instance is not there
	c.clock.Advance(100 * ttl)
	c.settle()
	require.Len(t, writers(view), 2)
	c.passUntil(func() bool { return len(writers(view)) == 1 }, "in the end it is closed")
}
