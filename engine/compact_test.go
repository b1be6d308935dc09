package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// Given records that no instance compacted, when an observer compacts, then the
// table holds each once, and compacting again finds nothing to do.
func TestCompactingOnDemandFillsTheTables(t *testing.T) {
	opts := options(t)
	opts.Compaction.Disabled = true
	e := open(t, opts)
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	appendOrders(t, s, 0, 100)
	require.NoError(t, e.Close(t.Context()))

	opts.Observe = true
	e = open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	table, err := e.Table("shop.orders")
	require.NoError(t, err)
	require.Equal(t, int64(100), table.Lag())

	done, err := e.Compact(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(1), done.Passes)
	require.Equal(t, int64(1), done.Logs)
	require.Positive(t, done.ReadBytes)
	report, err := table.Verify(t.Context())
	require.NoError(t, err)
	require.NoError(t, report.Complete())
	require.Equal(t, int64(100), report.Partitions[0].Rows)

	done, err = e.Compact(t.Context())
	require.NoError(t, err)
	require.Zero(t, done)
}

// Given an instance that writes and compacts by itself, when an observer compacts
// at the same time, then each record is in the table once.
func TestCompactingBesideARunningInstanceCountsOnce(t *testing.T) {
	opts := options(t)
	writer := open(t, opts)
	s, err := writer.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	_, err = writer.Compact(t.Context())
	require.ErrorIs(t, err, engine.ErrInvalid, "it compacts in the background")

	looking := opts
	looking.Observe = true
	observer := open(t, looking)
	for i := range 5 {
		appendOrders(t, s, 20*i, 20)
		_, err := observer.Compact(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, observer.Close(t.Context()))
	require.NoError(t, writer.Close(t.Context()))

	e := open(t, looking)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	table, err := e.Table("shop.orders")
	require.NoError(t, err)
	report, err := table.Verify(t.Context())
	require.NoError(t, err)
	require.NoError(t, report.Complete())
	require.Equal(t, int64(100), report.Partitions[0].Rows)
}
