package write

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakestream-go/lakestream/internal/base"
)

// checkRequired refuses a null in a required column: the Parquet writer would
// silently store a zero for it.
func checkRequired(batch arrow.RecordBatch) error {
	for i, field := range batch.Schema().Fields() {
		if err := checkColumn(field, batch.Column(i), nil); err != nil {
			return err
		}
	}
	return nil
}

// checkColumn checks the slots of a column whose parent, if any, is not null.
func checkColumn(field arrow.Field, values, parent arrow.Array) error {
	if !field.Nullable && values.NullN() > 0 {
		for i := range values.Len() {
			if values.IsNull(i) && (parent == nil || parent.IsValid(i)) {
				return fmt.Errorf("%w: row %d has no value in required column %s", base.ErrInvalid, i, field.Name)
			}
		}
	}
	switch a := values.(type) {
	case *array.Struct:
		for i, inner := range a.DataType().(*arrow.StructType).Fields() {
			if err := checkColumn(inner, a.Field(i), a); err != nil {
				return fmt.Errorf("%s: %w", field.Name, err)
			}
		}
	case *array.Map:
		return checkColumn(a.DataType().(*arrow.MapType).ItemField(), a.Items(), nil)
	case *array.List:
		return checkColumn(a.DataType().(*arrow.ListType).ElemField(), a.ListValues(), nil)
	}
	return nil
}
