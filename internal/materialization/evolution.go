package materialization

import (
	"fmt"

	"github.com/apache/iceberg-go"

	"github.com/lakestream-go/lakestream/internal/base"
)

// CheckEvolution checks that next only adds to current, at any depth, so that
// each file written under current reads the same under next:
//
//   - each field of current is there, with its id, name and place in the tree,
//     its type the same or wider (int to long, float to double, a decimal of
//     higher precision), and required only if it was;
//   - each new field is optional and has an id above lastColumnID, the highest
//     that the table ever assigned: the id of a dropped column, which old files
//     still carry, never comes back.
//
// Anything else is ErrInvalid and names the column.
func CheckEvolution(current *iceberg.Schema, lastColumnID int, next *iceberg.Schema) error {
	e := evolution{lastColumnID: lastColumnID}
	return e.structs("", current.AsStruct(), next.AsStruct())
}

// evolution walks two versions of a schema side by side.
type evolution struct {
	lastColumnID int
}

func (e evolution) structs(path string, current, next iceberg.StructType) error {
	known := make(map[int]iceberg.NestedField, len(current.FieldList))
	for _, field := range current.FieldList {
		known[field.ID] = field
	}
	for _, field := range next.FieldList {
		was, old := known[field.ID]
		delete(known, field.ID)
		var err error
		if old {
			err = e.kept(path, was, field)
		} else {
			err = e.added(join(path, field.Name), field)
		}
		if err != nil {
			return err
		}
	}
	for _, field := range known {
		return refuse(join(path, field.Name), "column %d is missing", field.ID)
	}
	return nil
}

func (e evolution) kept(path string, was, now iceberg.NestedField) error {
	path = join(path, was.Name)
	if was.ID != now.ID {
		return refuse(path, "id %d became %d", was.ID, now.ID)
	}
	if was.Name != now.Name {
		return refuse(path, "renamed to %s", now.Name)
	}
	if now.Required && !was.Required {
		return refuse(path, "an optional column cannot become required")
	}
	return e.types(path, was.Type, now.Type)
}

// added checks a field that is new, and all fields under it: only the topmost
// must be optional, since below it a value exists only in new files.
func (e evolution) added(path string, field iceberg.NestedField) error {
	if field.Required {
		return refuse(path, "a new column must be optional")
	}
	return e.fresh(path, field)
}

func (e evolution) fresh(path string, field iceberg.NestedField) error {
	if field.ID <= e.lastColumnID {
		return refuse(path, "id %d was assigned before: want above %d", field.ID, e.lastColumnID)
	}
	nested, ok := field.Type.(iceberg.NestedType)
	if !ok {
		return nil
	}
	for _, child := range nested.Fields() {
		if err := e.fresh(join(path, child.Name), child); err != nil {
			return err
		}
	}
	return nil
}

func (e evolution) types(path string, was, now iceberg.Type) error {
	switch was := was.(type) {
	case *iceberg.StructType:
		if now, ok := now.(*iceberg.StructType); ok {
			return e.structs(path, *was, *now)
		}
	case *iceberg.ListType:
		if now, ok := now.(*iceberg.ListType); ok {
			return e.kept(path, was.ElementField(), now.ElementField())
		}
	case *iceberg.MapType:
		if now, ok := now.(*iceberg.MapType); ok {
			return e.maps(path, was, now)
		}
	default:
		if was.Equals(now) || widens(was, now) {
			return nil
		}
	}
	return refuse(path, "%s cannot become %s", was, now)
}

func (e evolution) maps(path string, was, now *iceberg.MapType) error {
	// A key whose type changed would no longer find its value.
	if was.KeyID != now.KeyID || !was.KeyType.Equals(now.KeyType) {
		return refuse(path, "a map's key cannot change")
	}
	return e.kept(path, was.ValueField(), now.ValueField())
}

// widens reports whether Iceberg lets a column of type was become type now.
func widens(was, now iceberg.Type) bool {
	switch was := was.(type) {
	case iceberg.Int32Type:
		return now.Equals(iceberg.PrimitiveTypes.Int64)
	case iceberg.Float32Type:
		return now.Equals(iceberg.PrimitiveTypes.Float64)
	case iceberg.DecimalType:
		wider, ok := now.(iceberg.DecimalType)
		return ok && wider.Scale() == was.Scale() && wider.Precision() > was.Precision()
	default:
		return false
	}
}

func refuse(path, format string, args ...any) error {
	return fmt.Errorf("%w: column %s: "+format, append([]any{base.ErrInvalid, path}, args...)...)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
