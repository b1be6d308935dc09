package write_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization/write"
)

// disk is a file system in memory that can fail.
type disk struct {
	files map[string]*bytes.Buffer
	// closed are the paths whose Close returned nil.
	closed                    map[string]bool
	create, write, end, erase error
}

func newDisk() *disk {
	return &disk{files: map[string]*bytes.Buffer{}, closed: map[string]bool{}}
}

func (d *disk) CreateFile(_ context.Context, path string) (io.WriteCloser, error) {
	if d.create != nil {
		return nil, d.create
	}
	if d.files[path] != nil {
		return nil, base.ErrExists
	}
	d.files[path] = &bytes.Buffer{}
	return &handle{disk: d, path: path}, nil
}

func (d *disk) RemoveFile(ctx context.Context, path string) error {
	if d.erase != nil {
		return d.erase
	}
	delete(d.files, path)
	return ctx.Err()
}

type handle struct {
	disk *disk
	path string
}

func (h *handle) Write(p []byte) (int, error) {
	if h.disk.write != nil {
		return 0, h.disk.write
	}
	return h.disk.files[h.path].Write(p)
}

func (h *handle) Close() error {
	if h.disk.end != nil {
		return h.disk.end
	}
	h.disk.closed[h.path] = true
	return nil
}

// paths returns a source of names f1, f2, …
func paths() func() string {
	n := 0
	return func() string {
		n++
		return fmt.Sprintf("f%d", n)
	}
}

// batchOf makes a batch out of rows in JSON.
func batchOf(t testing.TB, s *arrow.Schema, rows string) arrow.RecordBatch {
	t.Helper()
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, s, strings.NewReader(rows))
	require.NoError(t, err)
	t.Cleanup(batch.Release)
	return batch
}

func field(id int, name string, typ arrow.DataType, nullable bool) arrow.Field {
	return arrow.Field{Name: name, Type: typ, Nullable: nullable, Metadata: fieldID(id)}
}

func fieldID(id int) arrow.Metadata {
	return arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{fmt.Sprint(id)})
}

var events = arrow.NewSchema([]arrow.Field{
	field(1, "id", arrow.PrimitiveTypes.Int64, false),
	field(2, "kind", arrow.BinaryTypes.String, true),
	field(3, "text", arrow.BinaryTypes.String, true),
	field(4, "ok", arrow.FixedWidthTypes.Boolean, true),
	field(5, "score", arrow.PrimitiveTypes.Float64, true),
	field(6, "at", arrow.FixedWidthTypes.Timestamp_us, true),
}, nil)

// eventRows makes rows from id on: few kinds, all texts of 100 bytes different.
func eventRows(from, count int) string {
	rows := make([]string, count)
	for i := range rows {
		id := from + i
		rows[i] = fmt.Sprintf(`{"id":%d,"kind":"k%d","text":"%0100d","ok":%t,"score":%d.5,"at":%d}`,
			id, id%3, id*7919%100_000, id%2 == 0, id-3, 1_750_000_000_000_000+int64(id))
	}
	return "[" + strings.Join(rows, ",") + "]"
}

func open(t testing.TB, data []byte) *file.Reader {
	t.Helper()
	r, err := file.NewParquetReader(bytes.NewReader(data))
	require.NoError(t, err)
	return r
}

func readTable(t testing.TB, data []byte) arrow.Table {
	t.Helper()
	reader, err := pqarrow.NewFileReader(open(t, data), pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	require.NoError(t, err)
	table, err := reader.ReadTable(t.Context())
	require.NoError(t, err)
	t.Cleanup(table.Release)
	return table
}

func rowsOf(t testing.TB, data []byte) string {
	t.Helper()
	table := readTable(t, data)
	reader := array.NewTableReader(table, table.NumRows())
	defer reader.Release()
	require.True(t, reader.Next())
	text, err := reader.RecordBatch().MarshalJSON()
	require.NoError(t, err)
	return string(text)
}

func TestBatchesBecomeOneFile(t *testing.T) {
	d := newDisk()
	w := write.New(d, paths(), write.Options{})
	require.NoError(t, w.Write(t.Context(), batchOf(t, events, eventRows(0, 100))))
	require.NoError(t, w.Write(t.Context(), batchOf(t, events, `[]`)))
	require.NoError(t, w.Write(t.Context(), batchOf(t, events, eventRows(100, 50))))
	files, err := w.Close()
	require.NoError(t, err)

	require.Len(t, files, 1)
	require.Equal(t, "f1", files[0].Path)
	require.Equal(t, int64(150), files[0].Rows)
	require.Equal(t, int64(d.files["f1"].Len()), files[0].Size)
	require.True(t, d.closed["f1"])
	want, err := batchOf(t, events, eventRows(0, 150)).MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, string(want), rowsOf(t, d.files["f1"].Bytes()))
}

func TestNothingWrittenIsNoFile(t *testing.T) {
	d := newDisk()
	w := write.New(d, paths(), write.Options{})
	require.NoError(t, w.Write(t.Context(), batchOf(t, events, `[]`)))
	files, err := w.Close()
	require.NoError(t, err)
	require.Empty(t, files)
	require.Empty(t, d.files)
}

func TestFilesAndRowGroupsEndAtTheirSizes(t *testing.T) {
	d := newDisk()
	w := write.New(d, paths(), write.Options{TargetFileBytes: 8 << 10, RowGroupBytes: 4 << 10})
	for i := range 20 {
		require.NoError(t, w.Write(t.Context(), batchOf(t, events, eventRows(i*500, 500))))
	}
	files, err := w.Close()
	require.NoError(t, err)

	require.Greater(t, len(files), 2)
	next, groups := int64(0), 0
	for _, f := range files {
		require.Less(t, f.Size, int64(24<<10))
		groups += open(t, d.files[f.Path].Bytes()).NumRowGroups()
		table := readTable(t, d.files[f.Path].Bytes())
		require.Equal(t, f.Rows, table.NumRows())
		for _, chunk := range table.Column(0).Data().Chunks() {
			for _, id := range chunk.(*array.Int64).Int64Values() {
				require.Equal(t, next, id)
				next++
			}
		}
	}
	require.Equal(t, int64(10_000), next, "no row lost between files")
	require.Greater(t, groups, len(files))
}

func TestANullInARequiredColumnIsRefused(t *testing.T) {
	inner := field(3, "x", arrow.PrimitiveTypes.Int64, false)
	for rows, want := range map[string]string{
		`[{"id":1,"o":{"x":1},"l":[{"x":1}]},{"o":{"x":1}}]`: "row 1 has no value in required column id",
		`[{"id":1,"o":null},{"id":2,"o":{"x":null}}]`:        "o: invalid: row 1 has no value in required column x",
		`[{"id":1,"l":[{"x":1},{"x":null}]}]`:                "invalid: row 1 has no value in required column x",
		`[{"id":1,"o":null,"l":[null]}]`:                     "",
	} {
		s := arrow.NewSchema([]arrow.Field{
			field(1, "id", arrow.PrimitiveTypes.Int64, false),
			field(2, "o", arrow.StructOf(inner), true),
			field(4, "l", arrow.ListOfField(field(5, "element", arrow.StructOf(inner), true)), true),
		}, nil)
		d := newDisk()
		err := write.New(d, paths(), write.Options{}).Write(t.Context(), batchOf(t, s, rows))
		if want == "" {
			require.NoError(t, err, rows)
			continue
		}
		require.ErrorIs(t, err, base.ErrInvalid, rows)
		require.ErrorContains(t, err, want)
		require.Empty(t, d.files)
	}
}

func TestMapsOfAnySizeAreWritten(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{
		field(1, "m", arrow.MapOfFields(
			field(2, "key", arrow.BinaryTypes.String, false), field(3, "value", arrow.PrimitiveTypes.Int64, true)), true),
	}, nil)
	rows := `[{"m":[]},{"m":[{"key":"a","value":1}]},{"m":null},
		{"m":[{"key":"a","value":1},{"key":"b","value":null},{"key":"c","value":3}]}]`
	d := newDisk()
	w := write.New(d, paths(), write.Options{})
	require.NoError(t, w.Write(t.Context(), batchOf(t, s, rows)))
	_, err := w.Close()
	require.NoError(t, err)
	require.JSONEq(t, rows, rowsOf(t, d.files["f1"].Bytes()))
}

func TestFilesAreCompressedIndexedAndCarryFieldIDs(t *testing.T) {
	d := newDisk()
	w := write.New(d, paths(), write.Options{})
	require.NoError(t, w.Write(t.Context(), batchOf(t, events, eventRows(0, 1000))))
	_, err := w.Close()
	require.NoError(t, err)

	r := open(t, d.files["f1"].Bytes())
	want := map[string]parquet.Encoding{
		"id": parquet.Encodings.DeltaBinaryPacked, "kind": parquet.Encodings.RLEDict,
		"text": parquet.Encodings.DeltaLengthByteArray, "ok": parquet.Encodings.Plain,
		"score": parquet.Encodings.Plain, "at": parquet.Encodings.DeltaBinaryPacked,
	}
	for i := range r.MetaData().Schema.NumColumns() {
		column := r.MetaData().Schema.Column(i)
		require.Equal(t, int32(i+1), column.SchemaNode().FieldID())
		chunk, err := r.MetaData().RowGroup(0).ColumnChunk(i)
		require.NoError(t, err)
		require.Equal(t, compress.Codecs.Zstd, chunk.Compression())
		require.Contains(t, chunk.Encodings(), want[column.Name()], column.Name())
		require.NotNil(t, chunk.GetColumnIndexLocation(), column.Name())
		require.NotNil(t, chunk.GetOffsetIndexLocation(), column.Name())
	}
}

// Given three files with long texts, statistics tell of each what a full scan
// would: skipping by them loses nothing.
func TestStatisticsAgreeWithAFullScan(t *testing.T) {
	d := newDisk()
	w := write.New(d, paths(), write.Options{TargetFileBytes: 1})
	for i := range 3 {
		require.NoError(t, w.Write(t.Context(), batchOf(t, events, eventRows(i*1000, 1000))))
	}
	files, err := w.Close()
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, f := range files {
		data := d.files[f.Path].Bytes()
		table := readTable(t, data)
		ids := table.Column(0).Data().Chunk(0).(*array.Int64).Int64Values()
		texts := table.Column(2).Data().Chunk(0).(*array.String)
		lowest, highest := texts.Value(0), texts.Value(0)
		for i := range texts.Len() {
			lowest, highest = min(lowest, texts.Value(i)), max(highest, texts.Value(i))
		}
		id := statistics(t, data, 0).(*metadata.Int64Statistics)
		require.Equal(t, ids[0], id.Min())
		require.Equal(t, ids[len(ids)-1], id.Max())
		text := statistics(t, data, 2).(*metadata.ByteArrayStatistics)
		require.Equal(t, lowest, string(text.Min()))
		require.Equal(t, highest, string(text.Max()))
		require.Zero(t, text.NullCount())
	}
}

func statistics(t testing.TB, data []byte, column int) metadata.TypedStatistics {
	t.Helper()
	chunk, err := open(t, data).MetaData().RowGroup(0).ColumnChunk(column)
	require.NoError(t, err)
	stats, err := chunk.Statistics()
	require.NoError(t, err)
	require.NotNil(t, stats)
	return stats
}

func TestStatisticsOfNestedAndNullColumns(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{
		field(1, "none", arrow.PrimitiveTypes.Int64, true),
		field(2, "o", arrow.StructOf(field(3, "x", arrow.PrimitiveTypes.Float64, true)), true),
	}, nil)
	d := newDisk()
	w := write.New(d, paths(), write.Options{})
	require.NoError(t, w.Write(t.Context(), batchOf(t, s, `[{"o":{"x":-0.5}},{"o":null},{"o":{"x":7}}]`)))
	_, err := w.Close()
	require.NoError(t, err)
	data := d.files["f1"].Bytes()

	none := statistics(t, data, 0)
	require.False(t, none.HasMinMax())
	require.Equal(t, int64(3), none.NullCount())
	x := statistics(t, data, 1).(*metadata.Float64Statistics)
	require.InDelta(t, -0.5, x.Min(), 0)
	require.InDelta(t, 7, x.Max(), 0)
	require.Equal(t, int64(1), x.NullCount())
}

// Given texts so long that a bound would be worth dropping, then never one of
// two bounds is dropped: a reader would take it for the empty string.
func TestBoundsAreKeptBothOrNotAtAll(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{field(1, "s", arrow.BinaryTypes.String, true)}, nil)
	long := strings.Repeat("z", 10_000)
	for story, batches := range map[string][]string{
		"in the first batch": {`[{"s":"a"},{"s":"` + long + `"}]`, `[{"s":"b"}]`},
		"later":              {`[{"s":"a"},{"s":"b"}]`, `[{"s":"` + long + `"}]`},
	} {
		t.Run(story, func(t *testing.T) {
			d := newDisk()
			w := write.New(d, paths(), write.Options{})
			for _, rows := range batches {
				require.NoError(t, w.Write(t.Context(), batchOf(t, s, rows)))
			}
			_, err := w.Close()
			require.NoError(t, err)
			chunk, err := open(t, d.files["f1"].Bytes()).MetaData().RowGroup(0).ColumnChunk(0)
			require.NoError(t, err)
			stats, err := chunk.Statistics()
			require.NoError(t, err)
			if stats == nil || !stats.HasMinMax() {
				return
			}
			require.Equal(t, "a", string(stats.(*metadata.ByteArrayStatistics).Min()))
			require.Equal(t, long, string(stats.(*metadata.ByteArrayStatistics).Max()))
		})
	}
}

func TestAnErrorLeavesNoFileBehind(t *testing.T) {
	boom := errors.New("boom")
	for story, breakIt := range map[string]func(*disk){
		"create": func(d *disk) { d.create = boom },
		"write":  func(d *disk) { d.write = boom },
		"close":  func(d *disk) { d.end = boom },
	} {
		t.Run(story, func(t *testing.T) {
			d := newDisk()
			w := write.New(d, paths(), write.Options{TargetFileBytes: 1})
			require.NoError(t, w.Write(t.Context(), batchOf(t, events, eventRows(0, 100))))
			require.Len(t, d.files, 1)
			breakIt(d)
			err := w.Write(t.Context(), batchOf(t, events, eventRows(100, 100)))
			require.ErrorIs(t, err, boom)

			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.NoError(t, w.Abort(ctx), "removal does not depend on the caller's context")
			require.Empty(t, d.files)
		})
	}
}

func TestAbortTellsWhatMayHaveStayed(t *testing.T) {
	d := newDisk()
	w := write.New(d, paths(), write.Options{})
	require.NoError(t, w.Write(t.Context(), batchOf(t, events, eventRows(0, 1))))
	d.erase = base.ErrUnavailable
	require.ErrorIs(t, w.Abort(t.Context()), base.ErrUnavailable)
}
