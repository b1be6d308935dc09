package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lakestream-go/lakestream/engine"
)

// mount makes a file system in memory of so many bytes, until the test ends, or
// skips the test.
func mount(t *testing.T, bytes int64) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skipf("SKIPPED: mounting a file system of the test's own needs root: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// Given a directory that must not be written to, then the error says so, whether it
// is empty or holds a cluster.
func TestAReadOnlyDirectory(t *testing.T) {
	disk := mount(t, 256<<20)
	opts := options(t)
	opts.DataDir = filepath.Join(disk, "data")
	e := open(t, opts)
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	appendOrders(t, s, 0, 5)
	require.NoError(t, e.Close(t.Context()))
	before := files(t, disk)

	require.NoError(t, unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	requireRefused(t, opts, engine.ErrInvalid, opts.DataDir, "read-only")
	fresh := opts
	fresh.DataDir = filepath.Join(disk, "fresh")
	requireRefused(t, fresh, engine.ErrInvalid, fresh.DataDir, "read-only")
	require.NoError(t, unix.Mount("", disk, "", unix.MS_REMOUNT, ""))

	require.Equal(t, before, files(t, disk))
	require.Len(t, readAll(t, opts, "shop/orders"), 5)
}

// appender appends one order after the other and remembers those that were
// acknowledged.
type appender struct {
	mu sync.Mutex
	// acked is guarded by mu, by order and its offset.
	acked map[int]engine.Offset
}

func (a *appender) run(ctx context.Context, s *engine.Stream, text string) error {
	batch := engine.Batch{Logs: []engine.LogRecords{{}}}
	for n := 0; ctx.Err() == nil; n++ {
		batch.Logs[0].Records = []engine.Record{{Value: fmt.Appendf(nil, `{"n":%d,"text":%q}`, n, text)}}
		if err := s.Append(ctx, &batch); err != nil {
			return err
		}
		if err := batch.Results[0].Err; err != nil {
			return err
		}
		a.mu.Lock()
		a.acked[n] = batch.Results[0].Base
		a.mu.Unlock()
	}
	return nil
}

func (a *appender) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.acked)
}

// Given a disk that fills up while records are appended, then appends wait, the
// status says why, and what is acknowledged is durable; when there is room again,
// everything goes on without a restart.
func TestAFullDiskHoldsAppendsBackUntilItIsFreed(t *testing.T) {
	disk := mount(t, 320<<20)
	opts := options(t)
	opts.DataDir, opts.DrainTimeout = filepath.Join(disk, "data"), time.Minute
	e := open(t, opts)
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	orders := appender{acked: make(map[int]engine.Offset)}
	done := make(chan error, 1)
	go func() { done <- orders.run(ctx, s, string(make([]byte, 16<<10))) }()
	require.Eventually(t, func() bool { return orders.count() > 10 }, patience, time.Millisecond)

	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(e.Status(t.Context()).Problems, func(p engine.Problem) bool {
			return strings.HasPrefix(p.What, "appends of shard") && strings.Contains(p.Reason, "free some space")
		})
	}, patience, 50*time.Millisecond, "the status tells of it")
	stuck := orders.count()
	require.Never(t, func() bool { return orders.count() > stuck }, 500*time.Millisecond, 50*time.Millisecond)

	require.NoError(t, os.Remove(ballast))
	require.Eventually(t, func() bool { return orders.count() > stuck+10 }, patience, time.Millisecond, "appends go on")
	require.Eventually(t, func() bool { return len(e.Status(t.Context()).Problems) == 0 }, patience, 50*time.Millisecond)
	stop()
	require.ErrorIs(t, <-done, context.Canceled)
	require.NoError(t, e.Close(t.Context()))

	payloads := readAll(t, opts, "shop/orders")
	for n, offset := range orders.acked {
		require.Contains(t, payloads[offset], fmt.Sprintf(`{"n":%d,`, n))
	}
	slices.Sort(payloads)
	require.Len(t, slices.Compact(payloads), len(payloads), "none is there twice")
}

const patience = time.Minute

// fill writes a file until its disk has no room left.
func fill(t *testing.T, ballast string) {
	t.Helper()
	file, err := os.Create(ballast)
	require.NoError(t, err)
	for block := make([]byte, 1<<20); ; {
		if _, err := file.Write(block); err != nil {
			require.ErrorIs(t, err, unix.ENOSPC)
			break
		}
	}
	_ = file.Close() // nothing more can be written
}
