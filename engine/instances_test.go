package engine_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
)

// shortLease are options of a cluster in a directory of the test's own, whose
// instances are missed soon.
func shortLease(t *testing.T) engine.Options {
	opts := options(t)
	opts.LeaseTTL = 5 * time.Second
	return opts
}

// closeAtEnd closes an engine that a test may have closed.
func closeAtEnd(t *testing.T, e *engine.Engine) *engine.Engine {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, e.Close(context.WithoutCancel(t.Context()))) })
	return e
}

// Given two instances on one directory, then the status of either describes both: their
// labels, since when they live, what they fold and which jobs each does.
func TestAStatusDescribesEveryInstance(t *testing.T) {
	opts := shortLease(t)
	opts.InstanceID = "first"
	first := closeAtEnd(t, open(t, opts))
	require.Eventually(t, func() bool { return len(first.Status(t.Context()).Members) == 1 }, patience, 10*time.Millisecond)
	opts.InstanceID = "second"
	second := closeAtEnd(t, open(t, opts))

	var st engine.Status
	require.Eventually(t, func() bool {
		st = second.Status(t.Context())
		return len(st.Members) == 2 && slices.ContainsFunc(st.Members, func(m engine.MemberStatus) bool { return len(m.Jobs) > 0 })
	}, patience, 10*time.Millisecond)
	var labels, jobs []string
	for i, m := range st.Members {
		require.Equal(t, st.Instances[i], m.ID)
		require.NotZero(t, m.Since)
		require.EqualValues(t, commitrecord.FoldVersion, m.FoldVersion)
		labels = append(labels, m.Label)
		jobs = append(jobs, m.Jobs...)
	}
	require.ElementsMatch(t, []string{"first", "second"}, labels)
	require.Contains(t, jobs, "compact.s00")
	require.Equal(t, engine.FoldStatus{Version: commitrecord.FoldVersion, Newest: commitrecord.FoldVersion}, st.FoldVersion)
}

// Given a cluster of the release before, when an instance of this one joins, then the
// status says who holds the cluster back; when that one is gone, then the cluster moves
// on, and an instance of the release before does not start on it any more.
func TestAClusterMovesOnWhenEveryInstanceIsUpgraded(t *testing.T) {
	const before = commitrecord.FoldVersion - 1
	opts := shortLease(t)
	old := open(t, opts.WithFoldVersion(before))
	s, err := old.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	appendOrders(t, s, 0, 10)
	e := closeAtEnd(t, open(t, opts))
	var fold engine.FoldStatus
	require.Eventually(t, func() bool {
		fold = e.Status(t.Context()).FoldVersion
		return len(fold.HeldBackBy) == 1
	}, patience, 10*time.Millisecond)
	require.EqualValues(t, before, fold.Version)
	require.Equal(t, "upgrade "+fold.HeldBackBy[0], fold.NextAction)

	require.NoError(t, old.Close(t.Context()))
	require.Eventually(t, func() bool {
		fold = e.Status(t.Context()).FoldVersion
		return fold.Version == commitrecord.FoldVersion
	}, patience, 10*time.Millisecond)
	require.Empty(t, fold.NextAction)
	_, err = engine.Open(t.Context(), opts.WithFoldVersion(before))
	require.ErrorIs(t, err, engine.ErrNewerFormat)
	require.ErrorContains(t, err, "upgrade it")

	s, err = e.Stream("shop/orders")
	require.NoError(t, err)
	appendOrders(t, s, 10, 10)
	require.Len(t, readAll(t, opts, "shop/orders"), 20)
}

// jumpyClock is a clock that can be set, as that of a machine can.
type jumpyClock struct {
	base.SystemClock

	ahead atomic.Int64
}

func (c *jumpyClock) Now() time.Time { return c.SystemClock.Now().Add(time.Duration(c.ahead.Load())) }

// journal keeps what is logged. It is safe for concurrent use.
type journal struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) has(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.text.String(), text)
}

// Given an instance whose clock jumps by hours, ahead and back, while it and another
// append, then it holds its lease for lost, closes its own writers, and goes on: nothing
// is lost, nothing is there twice, the other is not disturbed, and all is healthy.
func TestAClockThatJumpsByHoursHarmsNothing(t *testing.T) {
	opts := shortLease(t)
	other := closeAtEnd(t, open(t, opts))
	s, err := other.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	clock, log := &jumpyClock{}, &journal{}
	jumping := opts.WithClock(clock)
	jumping.Logger = slog.New(slog.NewTextHandler(log, nil))
	e := closeAtEnd(t, open(t, jumping))
	mine, err := e.Stream("shop/orders")
	require.NoError(t, err)
	n := 0
	both := func() {
		appendOrders(t, mine, n, 5)
		appendOrders(t, s, n+5, 5)
		n += 10
	}
	require.Eventually(t, func() bool { return len(e.Status(t.Context()).Members) == 2 }, patience, 10*time.Millisecond)
	both()

	clock.ahead.Store(int64(5 * time.Hour))
	require.Eventually(t, func() bool {
		both()
		return log.has("this instance was paused or cut off")
	}, patience, 50*time.Millisecond)
	clock.ahead.Store(-int64(7 * time.Hour))
	both()
	require.Eventually(t, func() bool {
		both()
		return len(e.Status(t.Context()).Members) == 2
	}, patience, 50*time.Millisecond)

	payloads := readAll(t, opts, "shop/orders")
	require.Len(t, payloads, n)
	slices.Sort(payloads)
	require.Len(t, slices.Compact(payloads), n)
	require.Empty(t, e.Status(t.Context()).Problems)
	table, err := other.Table("shop.orders")
	require.NoError(t, err)
	require.NoError(t, table.WaitCaughtUp(t.Context()))
}
