package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// Given a caller that is out of patience, when the engine closes, then it waits for no
// table, and every record is durable all the same.
func TestAClosingThatIsCutShortLosesNothing(t *testing.T) {
	opts := options(t)
	opts.Compaction.Interval = time.Hour
	e := open(t, opts)
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{
		Table: engine.TablePolicy{CommitInterval: time.Hour},
	})
	require.NoError(t, err)
	appendOrders(t, s, 0, 100)
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	err = e.Close(impatient)
	require.ErrorIs(t, err, engine.ErrTablesBehind)
	require.NotErrorIs(t, err, context.Canceled)
	require.Equal(t, err, e.Close(t.Context()), "it closes once")
	_, err = e.EnsureStream(t.Context(), "shop/late", engine.StreamConfig{})
	require.ErrorIs(t, err, engine.ErrClosed)

	e = open(t, opts)
	defer func() { _ = e.Close(impatient) }()
	s, err = e.Stream("shop/orders")
	require.NoError(t, err)
	log, err := s.Log(0)
	require.NoError(t, err)
	_, head, err := log.Bounds()
	require.NoError(t, err)
	require.EqualValues(t, 100, head)
}

// Given a table that is to get its next snapshot in an hour, when the policy says a
// second instead, then the running engine obeys.
func TestANewCommitIntervalCountsAtOnce(t *testing.T) {
	opts := options(t)
	opts.Compaction.Interval = time.Second
	e := open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	every := func(d time.Duration) *engine.Stream {
		s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{Table: engine.TablePolicy{CommitInterval: d}})
		require.NoError(t, err)
		return s
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s := every(time.Hour)
	appendOrders(t, s, 0, 10)
	require.NoError(t, s.Table().WaitCaughtUp(ctx), "the first snapshot comes at once")
	appendOrders(t, s, 10, 10)
	s = every(time.Second)
	require.NoError(t, s.Table().WaitCaughtUp(ctx))
}
