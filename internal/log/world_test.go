package log

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/format/compacted"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
)

var (
	testCluster = base.ClusterID{9, 8, 7}
	testLog     = base.LogID{Stream: 12, Partition: 1}
)

const testShard base.Shard = 3

// world is one log with its objects in a store, and the index over them. It is an
// Index that tests change at will.
type world struct {
	t       require.TestingT
	objects blob.Store // without faults
	store   *blob.Faulty
	fetcher *Fetcher

	mu sync.Mutex
	// All below is guarded by mu.
	all         []recordbatch.Positioned
	entries     []shard.Entry
	start       base.Offset
	floor       base.Offset
	seq         base.Seq
	revision    base.Revision
	now         base.Millis
	bytes       int64
	compression recordbatch.Compression
	grown       chan struct{}
	down        error
	// onLookup runs after each lookup, when its answer is no longer the newest.
	onLookup func()
	// faults decide what goes wrong with reads.
	faults func(blob.Call) blob.Fault
	// calls are the keys of the objects that were read.
	calls []string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := makeWorld(t, 1<<20)
	t.Cleanup(w.close)
	return w
}

func makeWorld(t require.TestingT, cacheBytes int64) *world {
	objects, err := blob.Open(context.Background(), "mem://", blob.Options{})
	require.NoError(t, err)
	w := &world{t: t, objects: objects, grown: make(chan struct{}), now: 1_700_000_000_000}
	w.store = blob.NewFaulty(objects, w.decide)
	w.fetcher, err = NewFetcher(w.store, cacheBytes)
	require.NoError(t, err)
	return w
}

func (w *world) close() {
	w.fetcher.Close()
	require.NoError(w.t, w.objects.Close())
}

func (w *world) decide(call blob.Call) blob.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if call.Op != blob.OpReadRange {
		return blob.Fault{}
	}
	w.calls = append(w.calls, call.Key)
	if w.faults == nil {
		return blob.Fault{}
	}
	return w.faults(call)
}

func (w *world) reader() *Reader { return NewReader(w.fetcher, w, testLog) }

// append adds an object with the records between blocks of other logs.
func (w *world) append(records ...recordbatch.Record) { w.appendPadded(100, records) }

func (w *world) appendPadded(padding int, blocks ...[]recordbatch.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq++
	w.revision++
	w.now += 10
	object := bytes.Repeat([]byte{0xaa}, padding)
	var added []shard.Entry
	head := base.Offset(len(w.all))
	for _, records := range blocks {
		pos := len(object)
		object = recordbatch.AppendBlock(object, slices.Values(runsOf(records)), w.compression)
		added = append(added, shard.Entry{
			Log: testLog, Range: base.OffsetRange{Start: head, End: head + base.Offset(len(records))},
			Storage: shard.Raw, Shard: testShard, Writer: 5, Seq: w.seq,
			Pos: int64(pos), Len: int64(len(object) - pos), Revision: w.revision, AppendTime: w.now,
		})
		for _, r := range records {
			w.all = append(w.all, recordbatch.Positioned{Record: r, Offset: head, Revision: w.revision, AppendTime: w.now})
			head++
		}
		object = append(object, bytes.Repeat([]byte{0xbb}, padding)...)
	}
	for i := range added {
		added[i].Size = int64(len(object))
		w.bytes += added[i].Len
	}
	w.entries = append(w.entries, added...)
	require.NoError(w.t, w.objects.Put(context.Background(), added[0].Key(), object))
	close(w.grown)
	w.grown = make(chan struct{})
}

func runsOf(records []recordbatch.Record) []recordbatch.Run {
	var runs []recordbatch.Run
	for len(records) > 0 {
		_, run := recordbatch.AppendRun(nil, records)
		records = records[run.Records:]
		runs = append(runs, run)
	}
	return runs
}

// compact rewrites the entries [first, last) into one compacted object, and
// removes theirs from the store when the grace is over at once.
func (w *world) compact(first, last int, remove bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := slices.Clone(w.entries[first:last])
	w.seq++
	w.revision++
	entry := shard.Entry{
		Log: testLog, Range: base.OffsetRange{Start: old[0].Range.Start, End: old[len(old)-1].Range.End},
		Storage: shard.Compacted, Shard: testShard, Writer: 6, Seq: w.seq,
		Revision: w.revision, AppendTime: old[len(old)-1].AppendTime,
	}
	object := compactedObject(w.t, entry, w.all[entry.Range.Start:entry.Range.End])
	entry.Size = int64(len(object))
	require.NoError(w.t, w.objects.Put(context.Background(), entry.Key(), object))
	w.entries = slices.Replace(w.entries, first, last, entry)
	if !remove {
		return
	}
	for i := range old {
		if !slices.ContainsFunc(w.entries, func(e shard.Entry) bool { return e.Key() == old[i].Key() }) {
			require.NoError(w.t, w.objects.Delete(context.Background(), old[i].Key()))
		}
	}
}

// replace makes one compacted object the whole log.
func (w *world) replace(object []byte) {
	w.compact(0, len(w.entries), true)
	require.NoError(w.t, w.objects.Delete(context.Background(), w.entries[0].Key()))
	require.NoError(w.t, w.objects.Put(context.Background(), w.entries[0].Key(), object))
	w.entries[0].Size = int64(len(object))
}

func compactedObject(t require.TestingT, e shard.Entry, records []recordbatch.Positioned) []byte {
	var out bytes.Buffer
	cw, err := compacted.NewWriter(&out, compacted.Meta{Cluster: testCluster, Shard: e.Shard, Log: e.Log, Range: e.Range},
		compacted.Options{RowGroupRows: 50, PageBytes: 1024})
	require.NoError(t, err)
	for i := range records {
		require.NoError(t, cw.Write(&records[i]))
	}
	_, err = cw.Close()
	require.NoError(t, err)
	return out.Bytes()
}

func (w *world) Cluster() base.ClusterID { return testCluster }

func (w *world) Lookup(log base.LogID, offset base.Offset, limit int) (Lookup, error) {
	found, hook, err := w.lookup(log, offset, limit)
	if hook != nil {
		hook()
	}
	return found, err
}

func (w *world) lookup(log base.LogID, offset base.Offset, limit int) (Lookup, func(), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down != nil {
		return Lookup{}, nil, w.down
	}
	if log != testLog {
		return Lookup{}, nil, base.ErrNotFound
	}
	found := Lookup{Live: base.OffsetRange{Start: w.start, End: base.Offset(len(w.all))}, Floor: w.floor, Bytes: w.bytes}
	for _, e := range w.entries {
		if e.Range.End > max(offset, w.floor) && len(found.Entries) < limit {
			found.Entries = append(found.Entries, e)
		}
	}
	return found, w.onLookup, nil
}

func (w *world) FindTime(_ base.LogID, t base.Millis) (shard.Entry, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.entries, func(e shard.Entry) bool { return e.Range.End > w.start && e.AppendTime >= t })
	if i < 0 {
		return shard.Entry{}, false, w.down
	}
	return w.entries[i], true, w.down
}

func (w *world) WaitHead(ctx context.Context, _ base.LogID, offset base.Offset) error {
	for {
		w.mu.Lock()
		head, grown := base.Offset(len(w.all)), w.grown
		w.mu.Unlock()
		if head > offset {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// set changes a field of the world that reads look at.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) reads() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// records makes n records whose values name them, with every shape among them.
func records(first, n int) []recordbatch.Record {
	out := make([]recordbatch.Record, n)
	for i := range out {
		id := first + i
		out[i] = recordbatch.Record{Timestamp: base.Millis(1_699_999_999_000 + id), Value: fmt.Appendf(nil, "value-%06d", id)}
		if id%3 == 0 {
			out[i].Key = fmt.Appendf(nil, "key-%d", id%7)
		}
		switch id % 11 {
		case 4:
			out[i].Value = nil
		case 5:
			out[i].Headers = []recordbatch.Header{{Key: "h", Value: fmt.Appendf(nil, "%d", id)}, {Key: "null"}}
		}
	}
	return out
}

// readAll reads from an offset to the head.
func readAll(ctx context.Context, r *Reader, from base.Offset, limits Limits) ([]recordbatch.Positioned, error) {
	var all []recordbatch.Positioned
	for {
		batch, err := r.Read(ctx, from, limits)
		if err != nil || len(batch.Records) == 0 {
			return all, err
		}
		all = append(all, batch.Records...)
		from = batch.Next
	}
}
