package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Names of the columns that the engine fills. A user field of such a name at
// the top of a payload overflows, whether or not the column is on.
const (
	// PartitionColumn is the partition index of the log, int.
	PartitionColumn = "__partition"
	// OffsetColumn is the record's offset in its log, long.
	OffsetColumn = "__offset"
	// TimestampColumn is the record time, timestamptz; null for a time that
	// microseconds in 64 bits cannot hold.
	TimestampColumn = "__timestamp"
	// KeyColumn is the record's key, binary.
	KeyColumn = "__key"
	// HeadersColumn is the record's headers, list<struct<key string, value
	// binary>>. Bytes of a header's name that are not UTF-8 become U+FFFD.
	HeadersColumn = "__headers"
	// OverflowColumn is a JSON object, path to value, of what fits no column.
	OverflowColumn = "__overflow"
)

// ValueColumn holds a payload that is not an object.
const ValueColumn = "value"

var reserved = []string{
	PartitionColumn, OffsetColumn, TimestampColumn, KeyColumn, HeadersColumn, OverflowColumn,
}

func isReserved(folded string) bool { return slices.Contains(reserved, folded) }

// IsSystem reports whether a landed column is one that the engine fills, so
// that no payload may.
func IsSystem(column string) bool { return isReserved(Fold(column)) }

// SystemColumns says which optional system columns a table has. The zero value
// is none; __overflow is always there.
type SystemColumns struct {
	Partition, Offset, Timestamp, Key, Headers bool
}

// DefaultSystemColumns are partition, offset and timestamp.
func DefaultSystemColumns() SystemColumns {
	return SystemColumns{Partition: true, Offset: true, Timestamp: true}
}

// ParseSystemColumns reads the names of a configuration: partition, offset,
// timestamp, key, headers. Errors match base.ErrInvalid.
func ParseSystemColumns(names []string) (SystemColumns, error) {
	var columns SystemColumns
	known := map[string]*bool{
		"partition": &columns.Partition, "offset": &columns.Offset, "timestamp": &columns.Timestamp,
		"key": &columns.Key, "headers": &columns.Headers,
	}
	for _, name := range names {
		on, ok := known[name]
		if !ok {
			return SystemColumns{}, fmt.Errorf(
				"%w: system column %q: want partition, offset, timestamp, key or headers", base.ErrInvalid, name)
		}
		*on = true
	}
	return columns, nil
}

// fields returns the system columns of a new table, without ids.
func (s SystemColumns) fields() []iceberg.NestedField {
	all := []struct {
		on    bool
		field iceberg.NestedField
	}{
		{s.Partition, iceberg.NestedField{Name: PartitionColumn, Type: iceberg.PrimitiveTypes.Int32, Required: true}},
		{s.Offset, iceberg.NestedField{Name: OffsetColumn, Type: iceberg.PrimitiveTypes.Int64, Required: true}},
		{s.Timestamp, iceberg.NestedField{Name: TimestampColumn, Type: iceberg.PrimitiveTypes.TimestampTz}},
		{s.Key, iceberg.NestedField{Name: KeyColumn, Type: iceberg.PrimitiveTypes.Binary}},
		{s.Headers, iceberg.NestedField{Name: HeadersColumn, Type: headersType()}},
		{true, iceberg.NestedField{Name: OverflowColumn, Type: iceberg.PrimitiveTypes.String}},
	}
	var fields []iceberg.NestedField
	for _, column := range all {
		if column.on {
			fields = append(fields, column.field)
		}
	}
	return fields
}

func headersType() *iceberg.ListType {
	return &iceberg.ListType{Element: &iceberg.StructType{FieldList: []iceberg.NestedField{
		{Name: "key", Type: iceberg.PrimitiveTypes.String},
		{Name: "value", Type: iceberg.PrimitiveTypes.Binary},
	}}}
}

// sameShape compares types without regard to ids and whether fields are required.
func sameShape(a, b iceberg.Type) bool {
	switch a := a.(type) {
	case *iceberg.ListType:
		list, ok := b.(*iceberg.ListType)
		return ok && sameShape(a.Element, list.Element)
	case *iceberg.StructType:
		other, ok := b.(*iceberg.StructType)
		return ok && slices.EqualFunc(a.FieldList, other.FieldList, func(x, y iceberg.NestedField) bool {
			return x.Name == y.Name && sameShape(x.Type, y.Type)
		})
	default:
		return a.Equals(b)
	}
}

// checkSystem refuses a landed column that has a system column's name and
// another type.
func checkSystem(landed []iceberg.NestedField, system iceberg.NestedField) (found bool, err error) {
	for _, field := range landed {
		if field.Name != system.Name {
			continue
		}
		if !sameShape(field.Type, system.Type) {
			return true, fmt.Errorf("%w: column %s is %s and must be %s: rename it, or leave the system column %q out",
				base.ErrInvalid, field.Name, field.Type, system.Type, strings.TrimPrefix(field.Name, "__"))
		}
		return true, nil
	}
	return false, nil
}
