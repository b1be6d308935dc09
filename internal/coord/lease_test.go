package coord_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

const (
	ttl = 15 * time.Second
	key = "lease.job"
)

func acquire(t *testing.T, w *world, holder string) *coord.Lease {
	t.Helper()
	lease, err := coord.AcquireLease(t.Context(), w.store.Documents(), w.clock, key, holder, ttl)
	require.NoError(t, err)
	t.Cleanup(func() { _ = lease.Release(context.WithoutCancel(t.Context())) })
	return lease
}

func isLost(lease *coord.Lease) bool {
	select {
	case <-lease.Lost():
		return true
	default:
		return false
	}
}

// revisionOf returns the revision of the lease document, 0 where there is none.
func (w *world) revisionOf(t *testing.T) base.Revision {
	t.Helper()
	doc, err := w.healthy().Get(t.Context(), key)
	if errors.Is(err, base.ErrNotFound) {
		return 0
	}
	require.NoError(t, err)
	return doc.Revision
}

func TestALeaseHasOneHolder(t *testing.T) {
	w := newWorld(nil)
	first := acquire(t, w, "a")
	_, err := coord.AcquireLease(t.Context(), w.healthy(), w.clock, key, "b", ttl)
	require.ErrorIs(t, err, coord.ErrHeld)
	require.ErrorContains(t, err, "held by a")

	require.NoError(t, first.Release(t.Context()))
	require.NoError(t, first.Release(t.Context()), "twice is no error")
	assert.False(t, isLost(first), "released is not lost")
	second := acquire(t, w, "b")
	assert.Greater(t, second.Epoch(), first.Epoch())
}

func TestALeaseIsKeptAliveFarBeyondItsTime(t *testing.T) {
	w := newWorld(nil)
	lease := acquire(t, w, "a")
	last := w.revisionOf(t)
	for i := range 10 {
		// The limits of the last two renewals, and the wait for the next.
		w.advance(t, min(i+1, 3), ttl/3)
		eventually(t, func() bool { return w.revisionOf(t) > last })
		last = w.revisionOf(t)
	}
	assert.False(t, isLost(lease))
	assert.Less(t, lease.Epoch(), last, "the epoch is that of the acquisition")
}

func TestALeaseOutlivesTheContextOfItsAcquisition(t *testing.T) {
	w := newWorld(nil)
	ctx, cancel := context.WithCancel(t.Context())
	lease, err := coord.AcquireLease(ctx, w.store.Documents(), w.clock, key, "a", ttl)
	require.NoError(t, err)
	cancel()
	before := w.revisionOf(t)
	w.advance(t, 1, ttl/3)
	eventually(t, func() bool { return w.revisionOf(t) > before })
	require.NoError(t, lease.Release(t.Context()))
	assert.Zero(t, w.revisionOf(t))
}

func TestARefusedRenewalLosesTheLease(t *testing.T) {
	w := newWorld(nil)
	lease := acquire(t, w, "a")
	stolen, err := w.healthy().Update(t.Context(), key, []byte("b"), lease.Epoch(), 0)
	require.NoError(t, err)
	w.advance(t, 1, ttl/3)
	<-lease.Lost()
	require.NoError(t, lease.Release(t.Context()))
	assert.Equal(t, stolen, w.revisionOf(t), "releasing a lost lease leaves the new holder's alone")
}

func TestALeaseThatVanishedIsLost(t *testing.T) {
	w := newWorld(nil)
	lease := acquire(t, w, "a")
	require.NoError(t, w.healthy().Delete(t.Context(), key, lease.Epoch()))
	w.advance(t, 1, ttl/3)
	<-lease.Lost()
}

// Given renewals that fail, then the lease is lost exactly when its time has
// passed since the last confirmed one, not before.
func TestUnconfirmedRenewalsLoseTheLeaseInTime(t *testing.T) {
	faults := map[coord.Call]coord.Fault{}
	for n := 2; n < 100; n++ {
		faults[coord.Call{Op: coord.OpUpdate, Target: key, N: n}] = coord.Fault{Before: base.ErrUnavailable}
	}
	w := newWorld(faults)
	lease := acquire(t, w, "a")
	w.advance(t, 1, ttl/3) // the first renewal is confirmed
	eventually(t, func() bool { return w.revisionOf(t) > lease.Epoch() })
	step := ttl / 60
	for passed := step; passed < ttl; passed += step {
		w.advance(t, 1, step)
		require.False(t, isLost(lease), "after %s", passed)
	}
	w.advance(t, 1, step)
	<-lease.Lost()
}

// Given a renewal that never answers, then the lease is lost all the same.
func TestASilentRenewalLosesTheLeaseInTime(t *testing.T) {
	never := make(chan struct{})
	w := newWorld(map[coord.Call]coord.Fault{
		{Op: coord.OpUpdate, Target: key, N: 1}: {Hold: never},
	})
	lease := acquire(t, w, "a")
	w.advance(t, 1, ttl/3)
	w.advance(t, 1, ttl*2/3-time.Millisecond) // the renewal's own limit
	assert.False(t, isLost(lease))
	w.advance(t, 1, time.Millisecond)
	<-lease.Lost()
}

// Given lost replies, then the lease recognizes what it wrote and goes on.
func TestALostReplyLosesNoLease(t *testing.T) {
	w := newWorld(map[coord.Call]coord.Fault{
		{Op: coord.OpCreate, Target: key, N: 1}: {After: base.ErrUnknown},
		{Op: coord.OpUpdate, Target: key, N: 1}: {After: base.ErrUnknown},
	})
	lease := acquire(t, w, "a")
	assert.Equal(t, w.revisionOf(t), lease.Epoch())
	last := lease.Epoch()
	w.advance(t, 1, ttl/3) // lands, unheard
	eventually(t, func() bool { return w.revisionOf(t) > last })
	last = w.revisionOf(t)
	w.advance(t, 2, ttl/12) // is refused, and found to be its own
	eventually(t, func() bool { return w.revisionOf(t) > last })
	last = w.revisionOf(t)
	w.advance(t, 3, ttl/3) // as usual
	eventually(t, func() bool { return w.revisionOf(t) > last })
	assert.False(t, isLost(lease))
}

// Given a lost reply and a theft before the next attempt, then the lease is
// lost, not taken back.
func TestALostReplyDoesNotHideATheft(t *testing.T) {
	w := newWorld(map[coord.Call]coord.Fault{
		{Op: coord.OpUpdate, Target: key, N: 1}: {After: base.ErrUnknown},
	})
	lease := acquire(t, w, "a")
	w.advance(t, 1, ttl/3)
	eventually(t, func() bool { return w.revisionOf(t) > lease.Epoch() })
	stolen, err := w.healthy().Update(t.Context(), key, []byte("b"), w.revisionOf(t), 0)
	require.NoError(t, err)
	w.advance(t, 2, ttl/12)
	<-lease.Lost()
	assert.Equal(t, stolen, w.revisionOf(t))
}

func TestAcquisitionReportsWhatItCannotResolve(t *testing.T) {
	create := coord.Call{Op: coord.OpCreate, Target: key, N: 1}
	get := coord.Call{Op: coord.OpGet, Target: key, N: 1}
	for name, story := range map[string]struct {
		faults map[coord.Call]coord.Fault
		want   error
	}{
		"not sent":           {map[coord.Call]coord.Fault{create: {Before: base.ErrUnavailable}}, base.ErrUnavailable},
		"unknown, not there": {map[coord.Call]coord.Fault{create: {Before: base.ErrUnknown}}, base.ErrUnknown},
		"unknown, no answer": {map[coord.Call]coord.Fault{
			create: {After: base.ErrUnknown}, get: {Before: base.ErrUnavailable},
		}, base.ErrUnknown},
		"gone again": {map[coord.Call]coord.Fault{create: {Before: base.ErrExists}}, coord.ErrHeld},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(story.faults)
			_, err := coord.AcquireLease(t.Context(), w.store.Documents(), w.clock, key, "a", ttl)
			require.ErrorIs(t, err, story.want)
		})
	}
}

func TestALeaseTimeIsWholeSeconds(t *testing.T) {
	w := newWorld(nil)
	for _, bad := range []time.Duration{0, -ttl, time.Millisecond, 1500 * time.Millisecond} {
		_, err := coord.AcquireLease(t.Context(), w.store.Documents(), w.clock, key, "a", bad)
		require.ErrorIs(t, err, base.ErrInvalid, "%s", bad)
	}
}

func TestAFailedReleaseIsReported(t *testing.T) {
	w := newWorld(map[coord.Call]coord.Fault{
		{Op: coord.OpDelete, Target: key, N: 1}: {Before: base.ErrUnavailable},
	})
	lease := acquire(t, w, "a")
	require.ErrorIs(t, lease.Release(t.Context()), base.ErrUnavailable)
	w.clock.Advance(ttl)
	assert.Zero(t, w.revisionOf(t), "it expires, because nobody renews it")
}

func TestALeaseThatIsAbandonedStandsUntilItExpires(t *testing.T) {
	w := newWorld(nil)
	first := acquire(t, w, "a")
	first.Abandon()
	_, err := coord.AcquireLease(t.Context(), w.healthy(), w.clock, key, "b", ttl)
	require.ErrorIs(t, err, coord.ErrHeld)
	w.clock.Advance(ttl)
	acquire(t, w, "b")
}
