package materialization_test

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

var (
	text   = iceberg.PrimitiveTypes.String
	number = iceberg.PrimitiveTypes.Int32
	long   = iceberg.PrimitiveTypes.Int64
)

func col(id int, name string, typ iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: typ}
}

func must(field iceberg.NestedField) iceberg.NestedField {
	field.Required = true
	return field
}

func group(fields ...iceberg.NestedField) iceberg.Type {
	return &iceberg.StructType{FieldList: fields}
}

func list(id int, element iceberg.Type) iceberg.Type {
	return &iceberg.ListType{ElementID: id, Element: element}
}

func dict(keyID int, key iceberg.Type, valueID int, value iceberg.Type) iceberg.Type {
	return &iceberg.MapType{KeyID: keyID, KeyType: key, ValueID: valueID, ValueType: value}
}

func price(precision, scale int) iceberg.Type { return iceberg.DecimalTypeOf(precision, scale) }

// before is the schema that each story starts from; its last column id is 20.
func before() []iceberg.NestedField {
	return []iceberg.NestedField{
		must(col(1, "id", number)),
		col(2, "ratio", iceberg.PrimitiveTypes.Float32),
		col(3, "price", price(9, 2)),
		col(4, "user", group(col(5, "name", text))),
		col(6, "tags", list(7, group(col(8, "k", text)))),
		col(9, "by", dict(10, text, 11, group(col(12, "n", number)))),
	}
}

// changed returns before with one field replaced, by position.
func changed(at int, field iceberg.NestedField) []iceberg.NestedField {
	fields := before()
	fields[at] = field
	return fields
}

func TestASchemaMayGrow(t *testing.T) {
	for name, next := range map[string][]iceberg.NestedField{
		"nothing changes":             before(),
		"a column":                    append(before(), col(21, "more", text)),
		"a whole tree":                append(before(), col(21, "more", group(must(col(22, "a", list(23, text)))))),
		"in a struct":                 changed(3, col(4, "user", group(col(5, "name", text), col(21, "age", long)))),
		"in the elements of a list":   changed(4, col(6, "tags", list(7, group(col(8, "k", text), col(21, "v", text))))),
		"in the values of a map":      changed(5, col(9, "by", dict(10, text, 11, group(col(12, "n", number), col(21, "m", text))))),
		"an int to a long":            changed(0, must(col(1, "id", long))),
		"an int in a map to a long":   changed(5, col(9, "by", dict(10, text, 11, group(col(12, "n", long))))),
		"a float to a double":         changed(1, col(2, "ratio", iceberg.PrimitiveTypes.Float64)),
		"a decimal to more precision": changed(2, col(3, "price", price(12, 2))),
		"a required one to optional":  changed(0, col(1, "id", number)),
		"columns in another order":    append(before()[1:], before()[0]),
	} {
		require.NoError(t, materialization.CheckEvolution(iceberg.NewSchema(0, before()...), 20, iceberg.NewSchema(0, next...)), name)
	}
}

func TestASchemaMayNotBetrayOldFiles(t *testing.T) {
	for name, story := range map[string]struct {
		next   []iceberg.NestedField
		column string
	}{
		"a column is dropped":             {before()[:5], "by"},
		"a nested column is dropped":      {changed(3, col(4, "user", group())), "user.name"},
		"a column is renamed":             {changed(3, col(4, "person", group(col(5, "name", text)))), "user"},
		"a spent id comes back":           {append(before(), col(20, "more", text)), "more"},
		"a spent id comes back in a tree": {append(before(), col(21, "more", group(col(13, "a", text)))), "more.a"},
		"a column moves into another":     {append(before()[:3], col(4, "user", group(col(5, "name", text), col(6, "tags", list(7, text))))), "user.tags"},
		"a new column is required":        {append(before(), must(col(21, "more", text))), "more"},
		"an optional one gets required":   {changed(1, must(col(2, "ratio", iceberg.PrimitiveTypes.Float32))), "ratio"},
		"an int to text":                  {changed(0, must(col(1, "id", text))), "id"},
		"a long to a double":              {changed(0, must(col(1, "id", iceberg.PrimitiveTypes.Float64))), "id"},
		"a decimal to another scale":      {changed(2, col(3, "price", price(12, 3))), "price"},
		"a decimal to less precision":     {changed(2, col(3, "price", price(8, 2))), "price"},
		"a struct to text":                {changed(3, col(4, "user", text)), "user"},
		"a list to a map":                 {changed(4, col(6, "tags", dict(30, text, 31, text))), "tags"},
		"a map to a list":                 {changed(5, col(9, "by", list(30, text))), "by"},
		"a list's element gets a new id":  {changed(4, col(6, "tags", list(21, group(col(8, "k", text))))), "tags.element"},
		"a map's key changes its type":    {changed(5, col(9, "by", dict(10, long, 11, group(col(12, "n", number))))), "by"},
	} {
		err := materialization.CheckEvolution(iceberg.NewSchema(0, before()...), 20, iceberg.NewSchema(0, story.next...))
		require.ErrorIs(t, err, base.ErrInvalid, name)
		require.ErrorContains(t, err, "column "+story.column+":", name)
	}
}
