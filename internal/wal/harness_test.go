package wal_test

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/format/walobject"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testShard = base.Shard(0)

var cluster = base.ClusterID{1, 2, 3}

// rig is one shard over stores in memory, with a writer.
type rig struct {
	t      *testing.T
	store  blob.Store
	view   *shard.View
	writer *wal.Writer
	stream base.StreamID
	log    *logBook
}

// faults says what goes wrong in a rig. Nil is nothing.
type faults struct {
	blob  func(blob.Call) blob.Fault
	coord func(coord.Call) coord.Fault
}

// newRig starts a shard with one stream of four partitions. The faults begin
// after that. tune may change the options.
func newRig(t *testing.T, f faults, tune func(*wal.Options)) *rig {
	t.Helper()
	r := &rig{t: t, log: &logBook{}}
	var healthy sync.Map // set once the stream exists
	store, err := blob.Open(t.Context(), "mem://", blob.Options{})
	require.NoError(t, err)
	r.store = store
	faultyStore := blob.NewFaulty(store, func(c blob.Call) blob.Fault {
		if f.blob == nil {
			return blob.Fault{}
		}
		return f.blob(c)
	})
	coordination := coord.NewFaulty(mem.NewServer(base.SystemClock{}).Open("test"), func(c coord.Call) coord.Fault {
		if _, started := healthy.Load("started"); !started || f.coord == nil {
			return coord.Fault{}
		}
		return f.coord(c)
	})
	commits, err := coordination.Log(t.Context(), testShard.String())
	require.NoError(t, err)
	r.view, err = shard.OpenView(t.Context(), shard.ViewOptions{
		Cluster: cluster, Shard: testShard, Log: commits, Reconnects: coordination.Reconnects,
		Clock: base.SystemClock{}, Logger: slog.New(slog.DiscardHandler), Entropy: rand.Reader,
	})
	require.NoError(t, err)
	_, err = r.view.Publish(t.Context(), &commitpb.ClusterCreate{Shards: 1, FoldVersion: commitrecord.FoldVersion})
	require.NoError(t, err)
	out, err := r.view.Publish(t.Context(), &commitpb.StreamCreate{Namespace: "n", Name: "s", Partitions: 4})
	require.NoError(t, err)
	require.True(t, out.OK(), out.Rejected)
	r.stream = out.Stream
	healthy.Store("started", true)

	opts := wal.Options{
		Cluster: cluster, Shard: testShard, Instance: "test", Store: faultyStore, Log: r.view,
		Clock: base.SystemClock{}, Logger: slog.New(slog.NewTextHandler(r.log, nil)), Entropy: rand.Reader,
		Jitter:         func() float64 { return 0 },
		MaxObjectBytes: 8 << 20, EagerBytes: 2 << 20, MaxBufferedBytes: 64 << 20, MaxRecordBytes: 1 << 20,
		Linger: time.Millisecond, FlushWhenIdle: true, UploadConcurrency: 4,
	}
	if tune != nil {
		tune(&opts)
	}
	r.writer, err = wal.NewWriter(opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = r.writer.Close(ctx) // tests that care close it themselves
		r.view.Close()
		require.NoError(t, coordination.Close(ctx))
		require.NoError(t, store.Close())
	})
	return r
}

func (r *rig) id(partition base.Partition) base.LogID {
	return base.LogID{Stream: r.stream, Partition: partition}
}

// batch makes one record of each value for a log.
func (r *rig) batch(partition base.Partition, values ...string) *wal.Batch {
	records := make([]recordbatch.Record, len(values))
	for i, v := range values {
		records[i] = recordbatch.Record{Timestamp: base.Millis(1000 + i), Value: []byte(v)}
	}
	return &wal.Batch{Logs: []wal.LogRecords{{Log: r.id(partition), Records: records}}}
}

// append appends values to a log and returns the offset of the first.
func (r *rig) append(partition base.Partition, values ...string) base.Offset {
	r.t.Helper()
	b := r.batch(partition, values...)
	require.NoError(r.t, r.writer.Append(r.t.Context(), b))
	require.Len(r.t, b.Results, 1)
	require.NoError(r.t, b.Results[0].Err)
	require.Equal(r.t, len(values), b.Results[0].Records)
	return b.Results[0].Base
}

func (r *rig) entries(id base.LogID) (entries []shard.Entry, bytes int64) {
	r.view.Inspect(func(s *shard.State) {
		l, ok := s.Log(id)
		require.True(r.t, ok)
		entries, bytes = s.Entries(l, 0, 1<<20), l.Bytes()
	})
	return entries, bytes
}

// read returns every value of a log in order, through its index and its objects.
func (r *rig) read(partition base.Partition) []string {
	r.t.Helper()
	indexed, bytes := r.entries(r.id(partition))
	if len(indexed) == 0 {
		return nil
	}
	var entries []recordbatch.Entry
	for _, e := range indexed {
		data, err := r.store.ReadRange(context.Background(), e.Key(), e.Pos, e.Len, nil)
		require.NoError(r.t, err)
		bytes -= e.Len
		entries = append(entries, recordbatch.Entry{
			Base: e.Range.Start, Records: int(e.Range.Len()), Revision: e.Revision, AppendTime: e.AppendTime, Data: data,
		})
		r.checkObject(e)
	}
	require.Zero(r.t, bytes, "the log's size is the sum of its blocks")
	source, err := recordbatch.NewSource(entries)
	require.NoError(r.t, err)
	var values []string
	require.NoError(r.t, source.Each(func(p *recordbatch.Positioned) error {
		values = append(values, string(p.Value))
		return nil
	}))
	return values
}

// checkObject verifies the whole object that an entry lies in.
func (r *rig) checkObject(e shard.Entry) {
	data, err := r.store.ReadRange(context.Background(), e.Key(), 0, e.Size, nil)
	require.NoError(r.t, err)
	object, err := walobject.Parse(data)
	require.NoError(r.t, err)
	require.NoError(r.t, object.Expect(walobject.Header{Cluster: cluster, Shard: testShard, Writer: e.Writer, Seq: e.Seq}))
}

func (r *rig) close() {
	r.t.Helper()
	require.NoError(r.t, r.writer.Close(r.t.Context()))
}

// eventually waits for something that other goroutines bring about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 20*time.Second, time.Millisecond, what)
}

// logBook keeps what was logged. It is safe for concurrent use.
type logBook struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

var _ io.Writer = (*logBook)(nil)

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	return len(p), nil
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// manual is a clock whose timers fire when a test says so.
type manual struct {
	mu     sync.Mutex
	now    time.Time
	timers []manualTimer // guarded by mu
}

type manualTimer struct {
	after time.Duration
	at    time.Time
	ch    chan time.Time
}

func newManual() *manual { return &manual{now: time.UnixMilli(1_700_000_000_000)} }

func (c *manual) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manual) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := manualTimer{after: d, at: c.now.Add(d), ch: make(chan time.Time, 1)}
	c.timers = append(c.timers, t)
	return t.ch
}

// waiting reports whether a timer of this length was set and has not fired.
func (c *manual) waiting(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.timers {
		if t.after == d {
			return true
		}
	}
	return false
}

func (c *manual) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	var left []manualTimer
	for _, t := range c.timers {
		if t.at.After(c.now) {
			left = append(left, t)
		} else {
			t.ch <- c.now
		}
	}
	c.timers = left
}
