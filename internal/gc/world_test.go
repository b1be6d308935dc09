package gc_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/gc"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

const (
	testShard = base.Shard(3)
	orders    = base.StreamID(2)
	grace     = 10 * time.Minute
)

// world is a shard, its objects and the time, all of which a test moves by hand. It
// is the collector's view: records are folded as they are published.
type world struct {
	t       testing.TB
	clock   *coordtest.Clock
	server  *coordtest.Clock // the coordination store's
	state   *shard.State
	objects blob.Store
	// failing is how many deletes fail from now on.
	failing int
	log     bytes.Buffer
	keep    catalog.LogRetention
	table   bool
	covered base.Revision
	groups  map[base.LogID]group
	uploads base.Seq
	stopped error
	*gc.Collector
}

type group struct {
	at   base.Offset
	name string
}

// newWorld returns a shard with a stream (id 2) of two partitions, which keeps
// everything and has no table.
func newWorld(t testing.TB) *world {
	t.Helper()
	objects, err := blob.Open(context.Background(), "mem://", blob.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, objects.Close()) })
	clock := coordtest.NewClock()
	w := &world{
		t: t, clock: clock, server: clock, state: shard.NewState(shardtest.Cluster, testShard),
		keep:   catalog.LogRetention{Time: catalog.Unlimited, Bytes: catalog.Unlimited, WaitForTables: catalog.DefaultWaitForTables},
		groups: make(map[base.LogID]group), covered: 1 << 60,
	}
	w.objects = blob.NewFaulty(objects, func(call blob.Call) blob.Fault {
		if call.Op != blob.OpDelete || w.failing == 0 {
			return blob.Fault{}
		}
		w.failing--
		return blob.Fault{Before: base.ErrUnavailable}
	})
	w.Collector = w.newCollector()
	w.accept(&commitpb.ClusterCreate{Shards: 4, FoldVersion: commitrecord.FoldVersion})
	w.accept(&commitpb.StreamCreate{Namespace: "shop", Name: "orders", Partitions: 2})
	return w
}

func (w *world) newCollector() *gc.Collector { return w.collectorOf(w) }

// collectorOf is a collector of the world as a view shows it.
func (w *world) collectorOf(view gc.View) *gc.Collector {
	return gc.NewCollector(gc.Options{
		View: view, Objects: w.objects, Grace: grace, Interval: time.Minute, SweepEvery: time.Hour,
		Covered: func(context.Context) (base.Revision, error) { return w.covered, nil },
		Resolve: func(*shard.Stream) (catalog.LogRetention, bool) { return w.keep, w.table },
		Consumed: func(context.Context, []gc.Stream) (func(base.LogID) (base.Offset, string, bool), error) {
			return func(id base.LogID) (base.Offset, string, bool) {
				g, ok := w.groups[id]
				return g.at, g.name, ok
			}, nil
		},
		Clock: w.clock, Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
}

// Inspect, Publish and Err make the world a gc.View.
func (w *world) Inspect(fn func(*shard.State)) { fn(w.state) }

func (w *world) Publish(_ context.Context, p commitrecord.Payload) (shard.Outcome, error) {
	return w.state.Apply(w.state.Revision()+1, base.MillisOf(w.server.Now()), shardtest.Encode(w.t, p))
}

func (w *world) Err() error { return w.stopped }

func (w *world) accept(p commitrecord.Payload) shard.Outcome {
	w.t.Helper()
	out, err := w.Publish(context.Background(), p)
	require.NoError(w.t, err)
	require.Equal(w.t, shard.Accepted, out.Rejected)
	for _, l := range out.Logs {
		require.Equal(w.t, shard.Accepted, l.Rejected)
	}
	return out
}

// writer opens a writer.
func (w *world) writer() base.WriterID {
	token := make([]byte, 16)
	binary.BigEndian.PutUint64(token, uint64(w.state.Revision()))
	return w.accept(&commitpb.WriterOpen{Token: token}).Writer
}

// upload puts an object that no record names: a writer is far ahead of its commits.
func (w *world) upload(id base.WriterID) string {
	w.uploads++
	key := base.WALKey(testShard, id, 1000+w.uploads)
	w.put(key)
	return key
}

func (w *world) put(key string) {
	require.NoError(w.t, w.objects.Put(context.Background(), key, []byte("object")))
}

// next returns the seq that a writer publishes next.
func (w *world) next(id base.WriterID) base.Seq {
	writer, ok := w.state.Writer(id)
	require.True(w.t, ok)
	return writer.Next
}

// append commits an object with records for some partitions of the stream, 100
// bytes each.
func (w *world) append(id base.WriterID, records uint32, partitions ...uint32) string {
	seq := w.next(id)
	key := base.WALKey(testShard, id, seq)
	w.put(key)
	p := &commitpb.Append{Writer: uint64(id), Seq: uint64(seq), Size: 1000}
	for i, partition := range partitions {
		p.Stream, p.Partition, p.Records = append(p.Stream, uint64(orders)), append(p.Partition, partition), append(p.Records, records)
		p.Pos, p.Len = append(p.Pos, uint32(100*i)), append(p.Len, 100)
		p.MinTime, p.MaxTime = append(p.MinTime, 0), append(p.MaxTime, 0)
	}
	w.accept(p)
	return key
}

// compact replaces a range of a partition by one object.
func (w *world) compact(id base.WriterID, partition uint32, start, end uint64) string {
	seq := w.next(id)
	log := base.LogID{Stream: orders, Partition: base.Partition(partition)} //nolint:gosec // small
	r := base.OffsetRange{Start: base.Offset(start), End: base.Offset(end)} //nolint:gosec // small
	key := base.CompactedKey(testShard, id, log, r, seq)
	w.put(key)
	w.accept(&commitpb.Compact{
		Writer: uint64(id), Seq: uint64(seq), ReadRevision: uint64(w.state.Revision()), Stream: []uint64{uint64(orders)},
		Partition: []uint32{partition}, Start: []uint64{start}, End: []uint64{end}, Size: []uint64{500},
	})
	return key
}

// round does one round and lets time pass.
func (w *world) round(then time.Duration) gc.Round {
	w.t.Helper()
	round, err := w.Round(context.Background())
	require.NoError(w.t, err)
	w.clock.Advance(then)
	return round
}

func (w *world) partition(p base.Partition) *shard.Log {
	l, ok := w.state.Log(base.LogID{Stream: orders, Partition: p})
	require.True(w.t, ok)
	return l
}

// stored lists the keys of all objects.
func (w *world) stored() (keys []string) {
	all, err := w.objects.List(context.Background(), "", "", 10_000)
	require.NoError(w.t, err)
	for _, o := range all {
		keys = append(keys, o.Key)
	}
	return keys
}

func (w *world) holds(key string) bool { return slices.Contains(w.stored(), key) }
