package engine_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// Given an object that vanished from the bucket, then who reads it is told which, the
// status names the log and what to do, and appends go on; when it is restored, then all
// is read and compacted without a restart. Behaviour 9.
func TestAVanishedObjectIsNamedUntilItIsRestored(t *testing.T) {
	opts := shortLease(t)
	quiet := opts
	quiet.Compaction.Disabled = true
	e := open(t, quiet)
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{Table: engine.TablePolicy{CommitInterval: time.Second}})
	require.NoError(t, err)
	appendOrders(t, s, 0, 5)
	require.NoError(t, e.Close(t.Context()))
	found, err := filepath.Glob(filepath.Join(opts.DataDir, "objects", "wal", "*", "*", "*.wal"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	hidden := filepath.Join(t.TempDir(), "hidden")
	require.NoError(t, os.Rename(found[0], hidden))

	opts.Compaction.Interval = time.Second
	e = closeAtEnd(t, open(t, opts))
	var problems []engine.Problem
	require.Eventually(t, func() bool {
		problems = e.Status(t.Context()).Problems
		return len(problems) > 0
	}, patience, 50*time.Millisecond)
	require.Contains(t, problems[0].What, "log ")
	require.Contains(t, problems[0].Reason, filepath.Base(found[0]))
	require.Contains(t, problems[0].NextAction, "restore the object")
	inventory, err := e.Inventory(t.Context())
	require.NoError(t, err)
	require.Len(t, inventory.Missing, 1)
	s, err = e.Stream("shop/orders")
	require.NoError(t, err)
	log, err := s.Log(0)
	require.NoError(t, err)
	_, err = log.Read(t.Context(), 0, engine.ReadLimits{})
	require.ErrorContains(t, err, filepath.Base(found[0]))
	appendOrders(t, s, 5, 5)

	require.NoError(t, os.Rename(hidden, found[0]))
	_, err = log.Read(t.Context(), 0, engine.ReadLimits{})
	require.NoError(t, err)
	table, err := e.Table("shop.orders")
	require.NoError(t, err)
	require.NoError(t, table.WaitCaughtUp(t.Context()))
	require.Eventually(t, func() bool { return len(e.Status(t.Context()).Problems) == 0 }, patience, 50*time.Millisecond)
	require.Len(t, readAll(t, opts, "shop/orders"), 10)
}

// Given objects in the bucket that this software never wrote, then an inventory names
// them, and nothing else changes.
func TestStrayObjectsAreNamedAndLeftAlone(t *testing.T) {
	opts := options(t)
	e := closeAtEnd(t, open(t, opts))
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	appendOrders(t, s, 0, 5)
	stray := filepath.Join(opts.DataDir, "objects", "wal", "s00", "notes.txt")
	require.NoError(t, os.MkdirAll(filepath.Dir(stray), 0o750))
	require.NoError(t, os.WriteFile(stray, []byte("a stray"), 0o600))
	inventory, err := e.Inventory(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"wal/s00/notes.txt"}, inventory.Strange)
	require.Empty(t, inventory.Missing)
	require.Empty(t, inventory.Orphans)
	require.Positive(t, inventory.Live+inventory.Open)
	appendOrders(t, s, 5, 5)
	require.Len(t, readAll(t, opts, "shop/orders"), 10)
	require.FileExists(t, stray)
}
