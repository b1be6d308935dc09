package log

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/compacted"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

const (
	benchObjects   = 20
	benchPerObject = 10_000
	benchRows      = benchObjects * benchPerObject
)

// benchWorld is a log of records of 142 bytes in objects of about 1.5 MiB.
func benchWorld(b *testing.B, compression recordbatch.Compression) *world {
	b.Helper()
	w := makeWorld(b, 64<<20)
	b.Cleanup(w.close)
	w.compression = compression
	random := rand.New(rand.NewPCG(1, 2))
	batch := make([]recordbatch.Record, benchPerObject)
	for range benchObjects {
		for i := range batch {
			batch[i] = recordbatch.Record{Timestamp: w.now, Value: fmt.Appendf(nil,
				`{"user":"user-%05d","action":"purchase","amount":%d.%02d,"session":"%016x","country":"DE","ok":true,"note":"none of it","more":"filler"}`,
				random.IntN(50000), random.IntN(1000), random.IntN(100), random.Uint64())}
		}
		w.append(batch...)
	}
	return w
}

// replay reads the whole log as an input does.
func replay(b *testing.B, w *world) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		r, next := w.reader(), base.Offset(0)
		for next < benchRows {
			batch, err := r.Read(b.Context(), next, Limits{})
			if err != nil {
				b.Fatal(err)
			}
			next = batch.Next
		}
	}
	perRow(b)
}

func BenchmarkReplayRaw(b *testing.B) {
	for _, compression := range []recordbatch.Compression{recordbatch.None, recordbatch.Zstd} {
		b.Run(compression.String(), func(b *testing.B) { replay(b, benchWorld(b, compression)) })
		b.Run(compression.String()+" bare decode", func(b *testing.B) {
			w := benchWorld(b, compression)
			var entries []recordbatch.Entry
			for _, e := range w.entries {
				block, err := w.objects.ReadRange(b.Context(), e.Key(), e.Pos, e.Len, nil)
				require.NoError(b, err)
				entries = append(entries, recordbatch.Entry{Base: e.Range.Start, Records: int(e.Range.Len()), Data: block})
			}
			source, err := recordbatch.NewSource(entries)
			require.NoError(b, err)
			for b.Loop() {
				require.NoError(b, source.Each(func(*recordbatch.Positioned) error { return nil }))
			}
			perRow(b)
		})
	}
}

func BenchmarkReplayCompacted(b *testing.B) {
	w := benchWorld(b, recordbatch.None)
	var object bytes.Buffer
	meta := compacted.Meta{Cluster: testCluster, Shard: testShard, Log: testLog, Range: base.OffsetRange{End: benchRows}}
	cw, err := compacted.NewWriter(&object, meta, compacted.Options{})
	require.NoError(b, err)
	for i := range w.all {
		require.NoError(b, cw.Write(&w.all[i]))
	}
	_, err = cw.Close()
	require.NoError(b, err)
	w.replace(object.Bytes())
	b.Run("log", func(b *testing.B) { replay(b, w) })
	b.Run("bare decode", func(b *testing.B) {
		for b.Loop() {
			r, err := compacted.Open(bytes.NewReader(object.Bytes()), int64(object.Len()), meta)
			require.NoError(b, err)
			s, err := r.ReadFrom(0)
			require.NoError(b, err)
			var batch []recordbatch.Positioned
			for err == nil {
				batch, err = s.Next(batch[:0], 4096)
			}
			if !errors.Is(err, io.EOF) {
				b.Fatal(err)
			}
			s.Close()
		}
		perRow(b)
	})
}

// BenchmarkReadOne reads one record at changing offsets.
func BenchmarkReadOne(b *testing.B) {
	w := benchWorld(b, recordbatch.None)
	r, at := w.reader(), base.Offset(0)
	for b.Loop() {
		at = (at + 123_457) % benchRows
		batch, err := r.Read(b.Context(), at, Limits{MaxMessages: 1})
		if err != nil || len(batch.Records) != 1 {
			b.Fatal(len(batch.Records), err)
		}
	}
}

func perRow(b *testing.B) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}
