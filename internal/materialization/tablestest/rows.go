package tablestest

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// TestingT is what a test and a property have in common.
type TestingT interface {
	require.TestingT
	Helper()
}

// Schema is that of the suite's tables: the position of a record and a text.
func Schema() *iceberg.Schema {
	return iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "__partition", Type: iceberg.PrimitiveTypes.Int32},
		iceberg.NestedField{ID: 2, Name: "__offset", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 3, Name: "text", Type: iceberg.PrimitiveTypes.String},
	)
}

// Row is one row of such a table.
type Row struct {
	Partition base.Partition
	Offset    base.Offset
	Text      string
}

// RangeRows returns a row for each offset of a range, with a text of its own.
func RangeRows(partition base.Partition, r base.OffsetRange) []Row {
	rows := make([]Row, 0, r.Len())
	for offset := r.Start; offset < r.End; offset++ {
		rows = append(rows, Row{Partition: partition, Offset: offset, Text: fmt.Sprintf("record %d of partition %d", offset, partition)})
	}
	return rows
}

// Write writes rows to a new Parquet file of the table, under its current
// schema, of which columns beyond those of Schema are null.
func Write(ctx context.Context, t TestingT, catalog Catalog, shown *materialization.Table, name string, rows []Row) materialization.DataFile {
	t.Helper()
	arrowSchema, err := table.SchemaToArrowSchema(shown.Schema, nil, true, false)
	require.NoError(t, err)
	path := shown.Location + "/data/" + name + ".parquet"
	created, err := catalog.CreateFile(ctx, path)
	require.NoError(t, err)
	counted := &counter{}
	counted.write = created.Write
	writer, err := pqarrow.NewFileWriter(arrowSchema, counted, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	batch := rowsBatch(arrowSchema, rows)
	require.NoError(t, writer.Write(batch))
	batch.Release()
	require.NoError(t, writer.Close())
	require.NoError(t, created.Close())
	return materialization.DataFile{Path: path, Size: counted.size, Rows: int64(len(rows))}
}

func rowsBatch(schema *arrow.Schema, rows []Row) arrow.RecordBatch {
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	for _, row := range rows {
		for i, field := range schema.Fields() {
			switch field.Name {
			case "__partition":
				builder.Field(i).(*array.Int32Builder).Append(int32(row.Partition))
			case "__offset":
				builder.Field(i).(*array.Int64Builder).Append(int64(row.Offset))
			case "text":
				builder.Field(i).(*array.StringBuilder).Append(row.Text)
			default:
				builder.Field(i).AppendNull()
			}
		}
	}
	return builder.NewRecordBatch()
}

// counter counts what passes to a writer.
type counter struct {
	write func([]byte) (int, error)
	size  int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.write(p)
	c.size += int64(n)
	return n, err
}

// Rows reads all rows of the loaded table's head snapshot, in no order.
func Rows(ctx context.Context, t TestingT, catalog Catalog, shown *materialization.Table) []Row {
	t.Helper()
	var rows []Row
	for batch, err := range catalog.Scan(ctx, shown, []string{"__partition", "__offset", "text"}, 0) {
		require.NoError(t, err)
		index := batch.Schema()
		partitions := batch.Column(index.FieldIndices("__partition")[0]).(*array.Int32)
		offsets := batch.Column(index.FieldIndices("__offset")[0]).(*array.Int64)
		texts := batch.Column(index.FieldIndices("text")[0])
		for i := range int(batch.NumRows()) {
			rows = append(rows, Row{
				Partition: base.Partition(partitions.Value(i)),
				Offset:    base.Offset(offsets.Value(i)),
				Text:      texts.ValueStr(i),
			})
		}
	}
	return rows
}
