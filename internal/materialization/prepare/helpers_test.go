package prepare_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/decode/decodetest"
	"github.com/lakestream-go/lakestream/internal/materialization/prepare"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

// records is a source in memory.
type records struct {
	offsets base.OffsetRange
	all     []recordbatch.Positioned
	// fail, when set, is returned instead of the last record.
	fail error
}

func (r *records) Range() base.OffsetRange { return r.offsets }

func (r *records) Each(yield func(*recordbatch.Positioned) error) error {
	for i := range r.all {
		if r.fail != nil && i == len(r.all)-1 {
			return r.fail
		}
		record := r.all[i]
		if err := yield(&record); err != nil {
			return err
		}
	}
	return nil
}

type positioned = recordbatch.Positioned

const recordTime = base.Millis(1_750_000_000_123)

// source makes a range that starts at an offset out of payloads. A nil payload
// is a tombstone.
func source(partition base.Partition, start base.Offset, payloads ...[]byte) prepare.Source {
	r := &records{offsets: base.OffsetRange{Start: start, End: start + base.Offset(len(payloads))}}
	for i, payload := range payloads {
		r.all = append(r.all, recordbatch.Positioned{
			Record: recordbatch.Record{Timestamp: recordTime, Key: []byte("k"), Value: payload},
			Offset: start + base.Offset(i),
		})
	}
	return prepare.Source{Log: base.LogID{Stream: 7, Partition: partition}, Records: r}
}

func texts(payloads ...string) [][]byte {
	all := make([][]byte, len(payloads))
	for i, p := range payloads {
		all[i] = []byte(p)
	}
	return all
}

type stoppedClock struct{ base.SystemClock }

var failedAt = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func (stoppedClock) Now() time.Time { return failedAt }

const owner = "cluster/s00/7"

var (
	mainTable = materialization.Ident{Namespace: "shop", Name: "orders"}
	deadTable = materialization.Ident{Namespace: "shop", Name: "orders_dlt"}
)

// request asks for one range, of partition 0 from offset 0.
func request(payloads [][]byte) prepare.Request {
	return requestFor(source(0, 0, payloads...))
}

func requestFor(sources ...prepare.Source) prepare.Request {
	return prepare.Request{
		Owner: owner, Main: mainTable, DeadLetter: deadTable,
		System: schema.DefaultSystemColumns(), FilePrefix: "s00-4-11",
		Sources: sources, Clock: stoppedClock{},
	}
}

func prepareAll(t testing.TB, tables materialization.Tables, r prepare.Request) []materialization.Prepared {
	t.Helper()
	prepared, err := prepare.Prepare(t.Context(), tables, r)
	require.NoError(t, err)
	require.Len(t, prepared, len(r.Sources))
	return prepared
}

func landed(t testing.TB, tables materialization.Tables) *materialization.Table {
	t.Helper()
	table, err := tables.Load(t.Context(), mainTable)
	require.NoError(t, err)
	return table
}

// readFile returns a file's rows, read without the help of what wrote it.
func readFile(ctx context.Context, t testing.TB, tables materialization.Tables, path string) []decodetest.Row {
	t.Helper()
	opened, err := tables.OpenFile(ctx, path)
	require.NoError(t, err)
	data, err := io.ReadAll(opened)
	require.NoError(t, err)
	require.NoError(t, opened.Close())
	return parquetRows(ctx, t, data)
}

func parquetRows(ctx context.Context, t testing.TB, data []byte) []decodetest.Row {
	t.Helper()
	pf, err := file.NewParquetReader(bytes.NewReader(data))
	require.NoError(t, err)
	reader, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	require.NoError(t, err)
	batches, err := reader.GetRecordReader(ctx, nil, nil)
	require.NoError(t, err)
	defer batches.Release()
	var rows []decodetest.Row
	for batches.Next() {
		rows = append(rows, decodetest.Rows(t, batches.RecordBatch())...)
	}
	if err := batches.Err(); err != nil {
		require.ErrorIs(t, err, io.EOF)
	}
	return rows
}

func readRows(t testing.TB, tables materialization.Tables, files []materialization.DataFile) []decodetest.Row {
	t.Helper()
	var rows []decodetest.Row
	for _, f := range files {
		here := readFile(t.Context(), t, tables, f.Path)
		require.Len(t, here, int(f.Rows), f.Path)
		rows = append(rows, here...)
	}
	return rows
}
