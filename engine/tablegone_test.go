package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// Given a table that is filled, when its catalog is gone and no pipeline runs, then the
// status says that the table is suspended, why, and what to do.
func TestALostTableIsSeenThoughNothingRuns(t *testing.T) {
	opts := options(t)
	e := open(t, opts)
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	appendOrders(t, s, 0, 10)
	require.NoError(t, e.Close(t.Context()))

	opts.Observe = true
	e = open(t, opts)
	status := e.Status(t.Context())
	require.Empty(t, status.Problems)
	require.Equal(t, "RUNNING", status.Streams[0].Table.State)
	require.NoError(t, e.Close(t.Context()))

	files, err := filepath.Glob(filepath.Join(opts.DataDir, "catalog.db*"))
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, os.Remove(f))
	}
	e = open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	status = e.Status(t.Context())
	require.Len(t, status.Problems, 1)
	table := status.Streams[0].Table
	require.Equal(t, "SUSPENDED", table.State)
	require.Contains(t, table.Reason, "dropped")
	require.Contains(t, table.NextAction, "lakestream table reset shop.orders")
}
