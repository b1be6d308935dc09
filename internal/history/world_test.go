package history_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/history"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testShard = base.Shard(3)

// world is a cluster of one shard: its two stores and a clock that a test moves.
type world struct {
	t       testing.TB
	clock   *coordtest.Clock
	server  *mem.Server
	coord   coord.Store
	objects blob.Store
	// faults decides on each call to the object store; nil is none.
	faults func(blob.Call) blob.Fault
	logged bytes.Buffer
}

func newWorld(t testing.TB) *world {
	t.Helper()
	clock := coordtest.NewClock()
	w := &world{t: t, clock: clock, server: mem.NewServer(clock)}
	w.coord = w.server.Open("instance")
	objects, err := blob.Open(t.Context(), "mem://", blob.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, objects.Close()) })
	w.objects = blob.NewFaulty(objects, func(call blob.Call) blob.Fault {
		if w.faults == nil {
			return blob.Fault{}
		}
		return w.faults(call)
	})
	w.server.Stray(testShard.String(), shardtest.Encode(t, &commitpb.ClusterCreate{Shards: 4, FoldVersion: commitrecord.FoldVersion}))
	return w
}

func (w *world) log() coord.CommitLog {
	w.t.Helper()
	log, err := w.coord.Log(w.t.Context(), testShard.String())
	require.NoError(w.t, err)
	return log
}

func (w *world) loader() history.Loader {
	return history.Loader{
		Cluster: shardtest.Cluster, Shard: testShard, Documents: w.coord.Documents(), Objects: w.objects,
		Logger: slog.New(slog.NewTextHandler(&w.logged, nil)),
	}
}

// view opens a view that starts at the newest checkpoint.
func (w *world) view() *shard.View {
	w.t.Helper()
	view, err := shard.OpenView(w.t.Context(), shard.ViewOptions{
		Cluster: shardtest.Cluster, Shard: testShard, Log: w.log(), Checkpoints: w.loader(), Reconnects: w.coord.Reconnects,
		Clock: w.clock, Logger: slog.New(slog.DiscardHandler), Entropy: rand.Reader,
	})
	require.NoError(w.t, err)
	w.t.Cleanup(view.Close)
	return view
}

func (w *world) checkpointer(v history.View) *history.Checkpointer {
	return history.NewCheckpointer(history.CheckpointerOptions{
		Loader: w.loader(), Log: w.log(), View: v, Instance: "me", Clock: w.clock,
		Due: history.Due{Records: 100}, Interval: time.Second,
	})
}

func (w *world) archiver(v history.View) *history.Archiver {
	return history.NewArchiver(history.ArchiverOptions{
		Cluster: shardtest.Cluster, Shard: testShard, Log: w.log(), Objects: w.objects, View: v,
		Interval: 5 * time.Second, Clock: w.clock, Logger: slog.New(slog.NewTextHandler(&w.logged, nil)),
	})
}

// archive runs an archiver until everything that the view shows is archived.
func (w *world) archive(v *shard.View) {
	w.t.Helper()
	archiver := w.archiver(v)
	ctx, cancel := context.WithCancel(w.t.Context())
	var ended atomic.Bool
	go func() {
		defer ended.Store(true)
		archiver.Run(ctx)
	}()
	w.until("the archive reaches the view", func() bool { return w.archived() >= v.Revision() })
	cancel()
	w.until("the archiver ends", ended.Load)
}

func (w *world) archived() base.Revision {
	stored := w.stored()
	return stored.Archived()
}

func (w *world) stored() history.Stored {
	w.t.Helper()
	stored, err := history.List(w.t.Context(), w.objects, testShard)
	require.NoError(w.t, err)
	return stored
}

func (w *world) pointer() *history.Pointer {
	w.t.Helper()
	p, _, err := history.ReadPointer(w.t.Context(), w.coord.Documents(), testShard)
	require.NoError(w.t, err)
	return p
}

func (w *world) bounds() (first, last base.Revision) {
	w.t.Helper()
	first, last, err := w.log().Bounds(w.t.Context())
	require.NoError(w.t, err)
	return first, last
}

// until lets the clock run until ok holds.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-deadline:
			require.FailNow(w.t, "never happened: "+what, w.logged.String())
		case <-time.After(time.Millisecond):
			w.clock.Advance(250 * time.Millisecond)
		}
	}
}

// create makes streams with these numbers, while the clock runs.
func (w *world) create(v *shard.View, from, n int) {
	w.t.Helper()
	var done atomic.Bool
	var failed error
	go func() {
		defer done.Store(true)
		for i := range n {
			stream := &commitpb.StreamCreate{Namespace: "shop", Name: fmt.Sprintf("stream-%d", from+i), Partitions: 2}
			if _, failed = v.Publish(w.t.Context(), stream); failed != nil {
				return
			}
		}
	}()
	w.until("the streams are there", done.Load)
	require.NoError(w.t, failed)
}

func hashOf(v history.View) (hash base.Hash) {
	v.Inspect(func(s *shard.State) { hash = s.Hash() })
	return hash
}

// damage flips a bit in the middle of an object.
func (w *world) damage(key string) {
	w.t.Helper()
	ctx := w.t.Context()
	info, err := w.objects.Stat(ctx, key)
	require.NoError(w.t, err)
	data, err := w.objects.ReadRange(ctx, key, 0, info.Size, nil)
	require.NoError(w.t, err)
	data[len(data)/2] ^= 1
	require.NoError(w.t, w.objects.Delete(ctx, key))
	require.NoError(w.t, w.objects.Put(ctx, key, data))
}
