package write

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
)

const (
	// zstdLevel 1 costs the least time; higher ones barely shrink encoded pages.
	zstdLevel = 1
	// maxStatisticsBytes must never be reached: the library would keep a short
	// minimum and drop a long maximum, and readers of its statistics take the
	// missing one for the empty string. Skipping by that loses rows.
	maxStatisticsBytes = 1 << 30
	// longValueBytes is the length of a value in the first batch from which a
	// column gets no statistics: they would only make the file larger.
	longValueBytes = 4 << 10
	// sampleValues is how many values of a column decide its encoding.
	sampleValues = 2048
)

// properties chooses the encodings for a file that starts with this batch.
func properties(first arrow.RecordBatch) *parquet.WriterProperties {
	options := []parquet.WriterProperty{
		parquet.WithCreatedBy("lakestream"),
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithCompressionLevel(zstdLevel),
		parquet.WithPageIndexEnabled(true),
		parquet.WithMaxStatsSize(maxStatisticsBytes),
	}
	for i, field := range first.Schema().Fields() {
		options = append(options, encodings(field.Name, first.Column(i))...)
	}
	return parquet.NewWriterProperties(options...)
}

// encodings returns the properties of the leaf columns under a Parquet path.
func encodings(path string, values arrow.Array) []parquet.WriterProperty {
	switch a := values.(type) {
	case *array.Struct:
		var options []parquet.WriterProperty
		for i, field := range a.DataType().(*arrow.StructType).Fields() {
			options = append(options, encodings(path+"."+field.Name, a.Field(i))...)
		}
		return options
	case *array.Map:
		return append(encodings(path+".key_value.key", a.Keys()), encodings(path+".key_value.value", a.Items())...)
	case *array.List:
		return encodings(path+".list.element", a.ListValues())
	case *array.Int32, *array.Int64, *array.Timestamp, *array.Date32, *array.Time64:
		return plainly(path, parquet.Encodings.DeltaBinaryPacked)
	case *array.String:
		return append(statistics(path, a), byDistinct(path, parquet.Encodings.DeltaLengthByteArray, fewDistinct(a, a.Value))...)
	case *array.Binary:
		return append(statistics(path, a), byDistinct(path, parquet.Encodings.DeltaLengthByteArray, fewDistinct(a, a.ValueString))...)
	case *array.Float64:
		return byDistinct(path, parquet.Encodings.Plain, fewDistinct(a, a.Value))
	default:
		return plainly(path, parquet.Encodings.Plain)
	}
}

// statistics switches them off for a column of long values.
func statistics(path string, values interface {
	Len() int
	ValueLen(i int) int
},
) []parquet.WriterProperty {
	for i := range values.Len() {
		if values.ValueLen(i) > longValueBytes {
			return []parquet.WriterProperty{parquet.WithStatsFor(path, false), parquet.WithPageIndexEnabledFor(path, false)}
		}
	}
	return nil
}

// byDistinct takes a dictionary for columns of few distinct values.
func byDistinct(path string, encoding parquet.Encoding, few bool) []parquet.WriterProperty {
	if few {
		return []parquet.WriterProperty{parquet.WithDictionaryFor(path, true)}
	}
	return plainly(path, encoding)
}

func plainly(path string, encoding parquet.Encoding) []parquet.WriterProperty {
	return []parquet.WriterProperty{parquet.WithDictionaryFor(path, false), parquet.WithEncodingFor(path, encoding)}
}

// fewDistinct reports whether most of the first values of a column occur again.
func fewDistinct[V comparable](values arrow.Array, at func(int) V) bool {
	distinct := make(map[V]struct{})
	seen := 0
	for i := range values.Len() {
		if values.IsNull(i) {
			continue
		}
		if seen++; seen > sampleValues {
			break
		}
		distinct[at(i)] = struct{}{}
	}
	return 2*len(distinct) <= seen
}
