package shard_test

import (
	"runtime"
	"testing"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

const (
	benchLogs    = 1000
	benchRecords = 200
)

// appendBench returns a shard with one stream of benchLogs logs and an open
// writer, and a function that encodes the writer's next Append over all logs.
func appendBench(tb testing.TB) (*shard.State, func(seq int) []byte) {
	tb.Helper()
	cluster := base.ClusterID{1}
	s := shard.NewState(cluster, 0)
	encode := func(p commitrecord.Payload) []byte {
		data, err := commitrecord.Encode(commitrecord.Envelope{Cluster: cluster}, p)
		if err != nil {
			tb.Fatal(err)
		}
		return data
	}
	for _, p := range []commitrecord.Payload{
		&commitpb.ClusterCreate{Shards: 1, FoldVersion: commitrecord.FoldVersion},
		&commitpb.StreamCreate{Namespace: "bench", Name: "stream", Partitions: benchLogs},
		&commitpb.WriterOpen{Token: make([]byte, 16)},
	} {
		applyBench(tb, s, encode(p))
	}
	return s, func(seq int) []byte {
		p := &commitpb.Append{Writer: 3, Seq: uint64(seq), Size: benchLogs * 30_000} //nolint:gosec // small
		for i := range uint32(benchLogs) {
			p.Stream = append(p.Stream, 2)
			p.Partition = append(p.Partition, i)
			p.Records = append(p.Records, benchRecords)
			p.Pos = append(p.Pos, i*30_000)
			p.Len = append(p.Len, 30_000)
			p.MinTime = append(p.MinTime, 1_700_000_000_000+int64(i))
			p.MaxTime = append(p.MaxTime, 1_700_000_000_500+int64(i))
		}
		return encode(p)
	}
}

func applyBench(tb testing.TB, s *shard.State, data []byte) {
	tb.Helper()
	out, err := s.Apply(s.Revision()+1, 1, data)
	if err != nil || !out.OK() {
		tb.Fatal(out.Rejected, err)
	}
}

func BenchmarkFoldAppend(b *testing.B) {
	s, next := appendBench(b)
	seq := 0
	var records [][]byte
	for range 64 {
		seq++
		records = append(records, next(seq))
	}
	at := 0
	b.ReportAllocs()
	for b.Loop() {
		if at == len(records) {
			b.StopTimer()
			s, _ = appendBench(b)
			at = 0
			b.StartTimer()
		}
		applyBench(b, s, records[at])
		at++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchLogs, "ns/entry")
	b.ReportMetric(float64(len(records[0]))/benchLogs, "recordbytes/entry")
}

func BenchmarkDecodeAppend(b *testing.B) {
	_, next := appendBench(b)
	data := next(1)
	b.ReportAllocs()
	for b.Loop() {
		env, body, err := commitrecord.DecodeEnvelope(data)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := commitrecord.DecodePayload(env.Kind, body); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchLogs, "ns/entry")
}

// TestAnIndexEntryIsSmall keeps the index cheap: a shard holds millions of
// entries in memory. It builds 400,000 and measures the live heap.
func TestAnIndexEntryIsSmall(t *testing.T) {
	s, next := appendBench(t)
	before := liveHeap()
	const records = 400
	for seq := 1; seq <= records; seq++ {
		applyBench(t, s, next(seq))
	}
	perEntry := float64(liveHeap()-before) / (records * benchLogs)
	runtime.KeepAlive(s)
	t.Logf("%.1f bytes an entry", perEntry)
	if perEntry > 48 {
		t.Fatalf("an index entry costs %.1f bytes of heap, want at most 48", perEntry)
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
