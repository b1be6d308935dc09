package crash_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
	"github.com/lakestream-go/lakestream/internal/crash"
)

// endless is a pipeline that generates messages until it is told to end.
const endless = `interval: 5ms`

// awaitRecords waits until the stream of a cluster holds more records than n, and returns
// how many.
func (w *world) awaitRecords(opts engine.Options, n int64) (records int64) {
	w.t.Helper()
	opts.Observe, opts.Logger = true, slog.New(slog.DiscardHandler)
	require.Eventually(w.t, func() bool {
		e, err := engine.Open(w.t.Context(), opts)
		if err != nil {
			return false // the server may be on its way from one process to the other
		}
		defer func() { _ = e.Close(context.WithoutCancel(w.t.Context())) }()
		status := e.Status(w.t.Context())
		for _, s := range status.Streams {
			records = s.Records
		}
		return records > n
	}, patience, 100*time.Millisecond)
	return records
}

// Given two pipelines on one directory, of which the second joined the server of the
// first, when the first ends or is killed, then the second takes the server over and goes
// on; when it ends too, the table is complete.
func TestPipelinesShareADirectory(t *testing.T) {
	for name, end := range map[string]func(*crash.Process) error{
		"the first ends":      (*crash.Process).Terminate,
		"the first is killed": (*crash.Process).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			opts := engine.Options{DataDir: w.dir}
			pipeline := w.pipeline(endless, "drain_timeout: 60s")
			first := w.run(pipeline)
			w.awaitRecords(opts, 0)
			second := w.run(pipeline)
			require.Eventually(t, func() bool { return w.members(opts) == 2 }, patience, 100*time.Millisecond)
			require.NoError(t, end(first))
			if ending := first.Wait(); !ending.Killed {
				w.requireClean(ending)
			}
			before := w.awaitRecords(opts, 0)
			w.awaitRecords(opts, before+100)
			require.NoError(t, second.Terminate())
			w.requireClean(second.Wait())
			require.Greater(t, requireComplete(t, w.dir, stream), before)
		})
	}
}

// members returns how many instances live.
func (w *world) members(opts engine.Options) int {
	opts.Observe, opts.Logger = true, slog.New(slog.DiscardHandler)
	e, err := engine.Open(w.t.Context(), opts)
	if err != nil {
		return 0
	}
	defer func() { _ = e.Close(context.WithoutCancel(w.t.Context())) }()
	return len(e.Status(w.t.Context()).Members)
}

// Given three pipelines in processes of their own on one external server and one bucket,
// when one is killed and the others end, then the table of their stream is complete.
func TestPipelinesShareAServerAndABucket(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 600)
	engineOptions := fmt.Sprintf("nats: { urls: [ %q ] }, storage: { url: %q }, catalog: { uri: %q }, drain_timeout: 60s",
		f.shared.NATS, f.shared.Bucket, f.shared.Catalog)
	opts := f.observer()
	var running []*crash.Process
	for i := range 3 {
		w := &world{t: t, dir: filepath.Join(f.dir, fmt.Sprint(i))}
		require.NoError(t, os.MkdirAll(w.dir, 0o700))
		running = append(running, w.run(w.pipeline(endless, engineOptions)))
	}
	require.Eventually(t, func() bool { return f.members(opts) == 3 }, patience, 100*time.Millisecond)
	before := f.awaitRecords(opts, 100)
	require.NoError(t, running[0].Kill())
	require.True(t, running[0].Wait().Killed)
	f.awaitRecords(opts, before+200)
	for _, p := range running[1:] {
		require.NoError(t, p.Terminate())
		f.requireClean(p.Wait())
	}

	e, err := engine.Open(t.Context(), opts)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	table, err := e.Table(stream)
	require.NoError(t, err)
	report, err := table.Verify(t.Context())
	require.NoError(t, err)
	require.NoError(t, report.Complete())
	inventory, err := e.Inventory(t.Context())
	require.NoError(t, err)
	require.Empty(t, inventory.Missing)
	require.Empty(t, inventory.Strange)
}
