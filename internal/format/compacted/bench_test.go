package compacted

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

// benchRecords are events of about 179 bytes whose values compress like JSON.
func benchRecords(n int) []recordbatch.Positioned {
	random := rand.New(rand.NewPCG(1, 2))
	records := make([]recordbatch.Positioned, n)
	for i := range records {
		records[i] = recordbatch.Positioned{
			Offset: base.Offset(i), AppendTime: base.Millis(1_700_000_000_000 + i/1000), Revision: base.Revision(i/1000 + 1),
		}
		records[i].Timestamp = records[i].AppendTime - base.Millis(random.IntN(20))
		records[i].Value = fmt.Appendf(nil,
			`{"id":%d,"user":"user-%05d","action":"%s","amount":%d.%02d,"session":"%016x","ts":%d,"country":"%s","ok":%t,"note":"none"}`,
			i, random.IntN(50000), []string{"view", "click", "purchase"}[i%3], random.IntN(1000), random.IntN(100), random.Uint64(),
			records[i].Timestamp, []string{"DE", "FR", "US", "JP"}[random.IntN(4)], i%5 != 0)
	}
	return records
}

const benchRows = 100_000

func BenchmarkWrite(b *testing.B) {
	records := benchRecords(benchRows)
	var stats Stats
	for b.Loop() {
		w, err := NewWriter(io.Discard, testMeta(0, benchRows), Options{})
		require.NoError(b, err)
		for i := range records {
			if err := w.Write(&records[i]); err != nil {
				b.Fatal(err)
			}
		}
		stats, err = w.Close()
		require.NoError(b, err)
	}
	b.SetBytes(stats.RawBytes)
	perRow(b)
	b.ReportMetric(float64(stats.Bytes)/benchRows, "B/row")
}

// BenchmarkWriteBare is the floor of BenchmarkWrite: the same columns through the
// Parquet library alone.
func BenchmarkWriteBare(b *testing.B) {
	var group rowGroup
	for _, r := range benchRecords(benchRows) {
		group.append(&r, 1)
	}
	opts, err := Options{}.withDefaults()
	require.NoError(b, err)
	for b.Loop() {
		w, err := file.NewParquetWriterWithError(io.Discard, fileSchema, file.WithWriterProps(writerProperties(opts)))
		require.NoError(b, err)
		g, err := w.AppendRowGroupChecked()
		require.NoError(b, err)
		for _, longs := range [][]int64{group.offsets, group.timestamps, group.appendTimes, group.revisions} {
			column, err := nextColumn[*file.Int64ColumnChunkWriter](g)
			require.NoError(b, err)
			_, err = column.WriteBatch(longs, nil, nil)
			require.NoError(b, err)
		}
		for _, blobs := range []blobColumn{group.keys, group.values, group.headerKeys, group.headerValues} {
			column, err := nextColumn[*file.ByteArrayColumnChunkWriter](g)
			require.NoError(b, err)
			_, err = column.WriteBatch(blobs.blobs, blobs.defs, blobs.reps)
			require.NoError(b, err)
		}
		require.NoError(b, w.Close())
	}
	perRow(b)
}

func BenchmarkRead(b *testing.B) {
	object, meta := writeObject(b, benchRecords(benchRows), Options{})
	b.ReportAllocs()
	for b.Loop() {
		r, err := Open(bytes.NewReader(object), int64(len(object)), meta)
		require.NoError(b, err)
		s, err := r.ReadFrom(0)
		require.NoError(b, err)
		var batch []recordbatch.Positioned
		for err == nil {
			batch, err = s.Next(batch[:0], maxBatchRows)
		}
		require.ErrorIs(b, err, io.EOF)
		s.Close()
	}
	perRow(b)
}

// BenchmarkReadBare is the floor of BenchmarkRead: the library decodes the same
// columns, and nothing is checked or assembled.
func BenchmarkReadBare(b *testing.B) {
	object, _ := writeObject(b, benchRecords(benchRows), Options{})
	longs := make([]int64, maxBatchRows)
	blobs := make([]parquet.ByteArray, maxBatchRows)
	defs, reps := make([]int16, maxBatchRows), make([]int16, maxBatchRows)
	for b.Loop() {
		r, err := file.NewParquetReader(bytes.NewReader(object))
		require.NoError(b, err)
		for g := range r.NumRowGroups() {
			for i := range numColumns {
				column, err := r.RowGroup(g).Column(i)
				require.NoError(b, err)
				for column.HasNext() {
					switch column := column.(type) {
					case *file.Int64ColumnChunkReader:
						_, _, err = column.ReadBatch(maxBatchRows, longs, nil, nil)
					case *file.ByteArrayColumnChunkReader:
						_, _, err = column.ReadBatchInPage(maxBatchRows, blobs, defs, reps)
					}
					require.NoError(b, err)
				}
			}
		}
	}
	perRow(b)
}

func BenchmarkSeek(b *testing.B) {
	object, meta := writeObject(b, benchRecords(benchRows), Options{})
	r := openObject(b, object, meta)
	at := base.Offset(0)
	for b.Loop() {
		at = (at + 61_803) % benchRows
		s, err := r.ReadFrom(at)
		require.NoError(b, err)
		batch, err := s.Next(nil, 1)
		require.NoError(b, err)
		require.Equal(b, at, batch[0].Offset)
		s.Close()
	}
}

func perRow(b *testing.B) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}
