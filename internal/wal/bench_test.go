//go:build unix

package wal_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/wal"
)

// instantLog accepts every record at once, so that a benchmark measures the
// append path and not coordination.
type instantLog struct {
	mu       sync.Mutex
	revision base.Revision
	heads    map[base.LogID]base.Offset
	deliver  func(shard.Outcome)
}

func (l *instantLog) Inspect(fn func(*shard.State)) { fn(shard.NewState(base.ClusterID{}, 0)) }

func (l *instantLog) Put(_ context.Context, _ commitrecord.RequestID, payload commitrecord.Payload) (base.Revision, error) {
	l.mu.Lock()
	l.revision++
	record := payload.(*commitpb.Append)
	out := shard.Outcome{Revision: l.revision, Writer: base.WriterID(record.GetWriter()), Seq: base.Seq(record.GetSeq())}
	for i := range record.GetStream() {
		partition := base.Partition(record.GetPartition()[i]) //nolint:gosec // small
		id := base.LogID{Stream: base.StreamID(record.GetStream()[i]), Partition: partition}
		n := int(record.GetRecords()[i])
		out.Logs = append(out.Logs, shard.LogOutcome{Log: id, Base: l.heads[id], Records: n})
		l.heads[id] += base.Offset(n)
	}
	deliver := l.deliver
	l.mu.Unlock()
	deliver(out)
	return out.Revision, nil
}

func (l *instantLog) Publish(context.Context, commitrecord.Payload) (shard.Outcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.revision++
	return shard.Outcome{Revision: l.revision, Writer: base.WriterID(l.revision)}, nil
}

func (l *instantLog) OnWriter(_ base.WriterID, fn func(shard.Outcome)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fn != nil {
		l.deliver = fn
	}
}

func (l *instantLog) Err() error { return nil }

// BenchmarkAppend appends records of 142 bytes to a file store that syncs.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		batch, callers, logs int
		compression          recordbatch.Compression
	}{
		{1000, 64, 1, recordbatch.None},
		{1000, 64, 100, recordbatch.None},
		{1000, 64, 1000, recordbatch.None},
		{1000, 64, 1, recordbatch.Zstd},
		{1, 64, 1, recordbatch.None},
		{1, 512, 1, recordbatch.None},
		{1, 512, 100, recordbatch.None},
		{1, 512, 1000, recordbatch.None},
	} {
		b.Run(fmt.Sprintf("batch=%d/callers=%d/logs=%d/%s", c.batch, c.callers, c.logs, c.compression), func(b *testing.B) {
			benchmarkAppend(b, c.batch, c.callers, c.logs, c.compression)
		})
	}
}

func benchmarkAppend(b *testing.B, batchSize, callers, logs int, compression recordbatch.Compression) {
	store, err := blob.Open(b.Context(), b.TempDir(), blob.Options{})
	require.NoError(b, err)
	w, err := wal.NewWriter(wal.Options{
		Shard: 1, Instance: "bench", Store: store, Log: &instantLog{heads: map[base.LogID]base.Offset{}},
		Clock: base.SystemClock{}, Logger: slog.New(slog.DiscardHandler), Entropy: rand.Reader, Jitter: func() float64 { return 0 },
		MaxObjectBytes: 8 << 20, EagerBytes: 2 << 20, MaxBufferedBytes: 64 << 20, MaxRecordBytes: 16 << 20,
		Linger: 10 * time.Millisecond, FlushWhenIdle: true, UploadConcurrency: 4, Compression: compression, Alignment: blob.BlockSize,
	})
	require.NoError(b, err)
	batches := make([]wal.Batch, callers)
	for caller := range batches {
		batches[caller] = makeBatch(caller, batchSize, logs)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var group sync.WaitGroup
	b.ReportAllocs()
	cpu := cpuTime(b)
	b.ResetTimer()
	for caller := range batches {
		group.Go(func() { appendUntil(b, w, &left, &batches[caller]) })
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batchSize), "ns/record")
	b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/float64(b.N*batchSize), "cpu-ns/record")
	stats := w.Stats()
	b.ReportMetric(float64(stats.Records)/float64(stats.Objects), "records/object")
	require.NoError(b, w.Close(context.Background()))
	require.NoError(b, store.Close())
}

// makeBatch spreads the records of one caller's batches over the logs.
func makeBatch(caller, batchSize, logs int) wal.Batch {
	var batch wal.Batch
	each := max(1, batchSize/logs)
	for i := 0; i < batchSize; i += each {
		id := (caller + i/each) % logs
		records := make([]recordbatch.Record, each)
		for j := range records {
			value := fmt.Appendf(nil, `{"id":%d,"user":"user-%d","event":"page_view","path":"/products/%d","ms":%d}`, i+j, j%97, j%31, j*17)
			for len(value) < 142 {
				value = append(value, byte('a'+(len(value)*j)%26))
			}
			records[j] = recordbatch.Record{Timestamp: base.Millis(1_700_000_000_000 + i + j), Value: value[:142]}
		}
		log := base.LogID{Stream: base.StreamID(1 + id/10), Partition: base.Partition(id % 10)} //nolint:gosec // small
		batch.Logs = append(batch.Logs, wal.LogRecords{Log: log, Records: records})
	}
	return batch
}

// appendUntil is one caller.
func appendUntil(b *testing.B, w *wal.Writer, left *atomic.Int64, batch *wal.Batch) {
	for left.Add(-1) >= 0 {
		if err := w.Append(context.Background(), batch); err != nil || batch.Results[0].Err != nil {
			b.Errorf("append: %v, %v", err, batch.Results[0].Err)
			return
		}
	}
}

// cpuTime is what the process has used, which drifts less than the wall does.
func cpuTime(b *testing.B) time.Duration {
	var usage unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
