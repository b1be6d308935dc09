package compaction_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/log"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/memtables"
	"github.com/lakestream-go/lakestream/internal/materialization/prepare"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is one shard with one stream, s/orders, of two partitions, over stores in
// memory, and a driver that compacts it.
type world struct {
	t      *testing.T
	view   *shard.View
	blobs  *blob.Faulty
	tables *fakeTables
	writer *wal.Writer
	stream base.StreamID

	mu sync.Mutex
	// Both are guarded by mu.
	fault func(blob.Call) blob.Fault
	reads map[string]int
}

var cluster = base.ClusterID{1}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, reads: make(map[string]int)}
	store := mem.NewServer(base.SystemClock{}).Open("test")
	commits, err := store.Log(t.Context(), "s00")
	require.NoError(t, err)
	genesis, err := commitrecord.Encode(commitrecord.Envelope{Cluster: cluster}, &commitpb.ClusterCreate{Shards: 1, FoldVersion: commitrecord.FoldVersion})
	require.NoError(t, err)
	_, err = commits.Put(t.Context(), genesis)
	require.NoError(t, err)
	w.view, err = shard.OpenView(t.Context(), shard.ViewOptions{
		Cluster: cluster, Log: commits, Reconnects: store.Reconnects, Clock: base.SystemClock{},
		Logger: slog.New(slog.DiscardHandler), Entropy: rand.Reader,
	})
	require.NoError(t, err)
	t.Cleanup(w.view.Close)
	inner, err := blob.Open(t.Context(), "mem://", blob.Options{})
	require.NoError(t, err)
	w.blobs = blob.NewFaulty(inner, w.decide)
	w.tables = &fakeTables{tables: memtables.New()}
	out, err := w.view.Publish(t.Context(), &commitpb.StreamCreate{Namespace: "s", Name: "orders", Partitions: 2})
	require.NoError(t, err)
	w.stream = out.Stream
	w.openWriter()
	return w
}

func (w *world) openWriter() {
	var err error
	w.writer, err = wal.NewWriter(wal.Options{
		Cluster: cluster, Store: w.blobs, Log: w.view, Clock: base.SystemClock{}, Logger: slog.New(slog.DiscardHandler),
		Entropy: rand.Reader, Jitter: mathrand.Float64, MaxObjectBytes: 1 << 20, EagerBytes: 1 << 19, MaxBufferedBytes: 1 << 22,
		MaxRecordBytes: 1 << 20, Linger: time.Millisecond, FlushWhenIdle: true, UploadConcurrency: 2,
	})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, w.writer.Close(context.Background())) })
}

func (w *world) decide(c blob.Call) blob.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Op == blob.OpReadRange {
		w.reads[c.Key]++
	}
	if w.fault != nil {
		return w.fault(c)
	}
	return blob.Fault{}
}

// breakWith makes calls fail as decide says from now on; nil heals.
func (w *world) breakWith(decide func(blob.Call) blob.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = decide
}

// appendTo appends records, one WAL object a call, and returns their values.
func (w *world) appendTo(p base.Partition, from, n int) {
	w.t.Helper()
	batch := wal.Batch{Urgent: true, Logs: []wal.LogRecords{{Log: base.LogID{Stream: w.stream, Partition: p}}}}
	for i := from; i < from+n; i++ {
		batch.Logs[0].Records = append(batch.Logs[0].Records, recordbatch.Record{Timestamp: base.Millis(i), Value: value(p, i)})
	}
	require.NoError(w.t, w.writer.Append(w.t.Context(), &batch))
	require.NoError(w.t, batch.Results[0].Err)
}

func value(p base.Partition, i int) []byte { return fmt.Appendf(nil, `{"id":%d,"p":%d}`, i, p) }

func (w *world) driver() *compaction.Driver {
	return w.driverOf(base.SystemClock{}, compaction.Due{Age: time.Minute, Bytes: 1 << 20}, 0)
}

func (w *world) driverOf(clock base.Clock, due compaction.Due, target int64) *compaction.Driver {
	return compaction.NewDriver(compaction.DriverOptions{
		View: w.view, Objects: w.blobs, Tables: w.tables, Bytes: 1 << 20, TargetBytes: target, Clock: clock,
		Due:     due,
		Entropy: rand.Reader, Logger: slog.New(slog.DiscardHandler),
		Open: w.open(w.fetcher()),
	})
}

func (w *world) fetcher() *log.Fetcher {
	fetcher, err := log.NewFetcher(w.blobs, 0)
	require.NoError(w.t, err)
	w.t.Cleanup(fetcher.Close)
	return fetcher
}

func (w *world) open(fetcher *log.Fetcher) compaction.OpenSource {
	return func(ctx context.Context, id base.LogID, r base.OffsetRange) (recordbatch.Source, error) {
		return log.NewSource(ctx, fetcher, log.NewIndex(w.view.Follower), id, r)
	}
}

// requireLog checks that a partition holds the values 0 to n-1 at their offsets.
func (w *world) requireLog(p base.Partition, n int) {
	w.t.Helper()
	fetcher, err := log.NewFetcher(w.blobs, 0)
	require.NoError(w.t, err)
	defer fetcher.Close()
	reader := log.NewReader(fetcher, log.NewIndex(w.view.Follower), base.LogID{Stream: w.stream, Partition: p})
	next := 0
	for next < n {
		batch, err := reader.Read(w.t.Context(), base.Offset(next), log.Limits{})
		require.NoError(w.t, err)
		require.NotEmpty(w.t, batch.Records)
		for _, r := range batch.Records {
			require.Equal(w.t, base.Offset(next), r.Offset)
			require.Equal(w.t, string(value(p, next)), string(r.Value))
			next++
		}
	}
	require.Equal(w.t, n, next)
}

type marks struct{ head, raw, prepared base.Offset }

func (w *world) marks(p base.Partition) (m marks) {
	w.view.Inspect(func(s *shard.State) {
		l, ok := s.Log(base.LogID{Stream: w.stream, Partition: p})
		require.True(w.t, ok)
		m = marks{head: l.Head(), raw: s.RawStart(l), prepared: l.Prepared()}
	})
	return m
}

// fakeTables prepares tables in memory with the real decoder, until told to fail.
type fakeTables struct {
	tables *memtables.Tables

	mu sync.Mutex
	// All below are guarded by mu.
	fail     error
	requests []compaction.TableRequest
}

func (f *fakeTables) failWith(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

func (f *fakeTables) Prepare(ctx context.Context, r compaction.TableRequest) ([]materialization.Prepared, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r)
	if f.fail != nil {
		return nil, f.fail
	}
	request := prepare.Request{
		Owner: "owner", Main: materialization.Ident{Namespace: r.Table.Namespace, Name: r.Table.Name},
		DeadLetter: materialization.Ident{Namespace: r.Table.Namespace, Name: r.Table.DeadLetterName()},
		System:     schema.DefaultSystemColumns(), FilePrefix: fmt.Sprintf("%d-%d", r.Writer, r.Seq), Clock: base.SystemClock{},
	}
	for _, s := range r.Sources {
		request.Sources = append(request.Sources, prepare.Source{Log: s.Log, Records: s.Source})
	}
	return prepare.Prepare(ctx, f.tables, request)
}
