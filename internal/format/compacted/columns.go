package compacted

import (
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// Indexes of the leaf columns, in file order. The small columns come first, so
// that they share the first read of a row group.
const (
	colOffset = iota
	colTimestamp
	colAppendTime
	colRevision
	colKey
	colValue
	colHeaderKey
	colHeaderValue
	numColumns
)

// Definition levels that say what is present. A header's name is at level 1
// when there is a header; its value at level 2 when it is not null.
const (
	levelPresent       int16 = 1
	levelHeaderPresent int16 = 1
	levelHeaderValue   int16 = 2
)

// Paths of the leaf columns as Parquet spells them.
var columnPaths = [numColumns]string{
	colOffset:      "offset",
	colTimestamp:   "timestamp",
	colAppendTime:  "append_time",
	colRevision:    "revision",
	colKey:         "key",
	colValue:       "value",
	colHeaderKey:   "headers.list.element.key",
	colHeaderValue: "headers.list.element.value",
}

// fileSchema is the one schema of the current format version. Field ids are
// those that Iceberg would need to read the files as a table.
var fileSchema = newFileSchema()

func newFileSchema() *schema.GroupNode {
	required, optional := parquet.Repetitions.Required, parquet.Repetitions.Optional
	header := schema.MustGroup(schema.NewGroupNode("element", required, schema.FieldList{
		schema.MustPrimitive(schema.NewPrimitiveNodeLogical("key", required, schema.StringLogicalType{}, parquet.Types.ByteArray, -1, 9)),
		schema.NewByteArrayNode("value", optional, 10),
	}, 8))
	list := schema.MustGroup(schema.NewGroupNode("list", parquet.Repetitions.Repeated, schema.FieldList{header}, -1))
	return schema.MustGroup(schema.NewGroupNode("record", required, schema.FieldList{
		schema.NewInt64Node("offset", required, 1),
		timeNode("timestamp", 2),
		timeNode("append_time", 3),
		schema.NewInt64Node("revision", required, 4),
		schema.NewByteArrayNode("key", optional, 5),
		schema.NewByteArrayNode("value", optional, 6),
		schema.MustGroup(schema.NewGroupNodeLogical("headers", required, schema.FieldList{list}, schema.NewListLogicalType(), 7)),
	}, -1))
}

func timeNode(name string, id int32) schema.Node {
	utcMillis := schema.NewTimestampLogicalType(true, schema.TimeUnitMillis)
	return schema.MustPrimitive(schema.NewPrimitiveNodeLogical(name, parquet.Repetitions.Required, utcMillis, parquet.Types.Int64, -1, id))
}

// writerProperties are the encodings that measured best for logs: deltas for
// numbers that hardly change, lengths apart from bytes, no dictionaries, and
// statistics only where a search uses them.
func writerProperties(o Options) *parquet.WriterProperties {
	props := []parquet.WriterProperty{
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithCreatedBy("lakestream"),
		parquet.WithDictionaryDefault(false),
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithCompressionLevel(1),
		parquet.WithDataPageSize(o.PageBytes),
		parquet.WithBatchSize(pieceRows),
		parquet.WithPageIndexEnabled(true),
		parquet.WithStats(false),
	}
	for _, col := range []int{colOffset, colTimestamp, colAppendTime, colRevision} {
		props = append(props,
			parquet.WithEncodingFor(columnPaths[col], parquet.Encodings.DeltaBinaryPacked),
			parquet.WithStatsFor(columnPaths[col], true))
	}
	for _, col := range []int{colKey, colValue, colHeaderKey, colHeaderValue} {
		props = append(props, parquet.WithEncodingFor(columnPaths[col], parquet.Encodings.DeltaLengthByteArray))
	}
	return parquet.NewWriterProperties(props...)
}
