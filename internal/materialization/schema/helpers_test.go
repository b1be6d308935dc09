package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/document"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

// inferred is what payloads hold, within limits.
func inferred(t testing.TB, limits schema.Limits, payloads ...string) *schema.Inference {
	t.Helper()
	in := schema.NewInference(limits)
	for _, payload := range payloads {
		var doc document.Document
		require.NoError(t, doc.Parse([]byte(payload)), payload)
		in.Add(&doc)
	}
	return in
}

// columns renders the user columns of a schema: a long, b struct<c list<string>>.
func columns(s *iceberg.Schema) string {
	var user []iceberg.NestedField
	for _, field := range s.Fields() {
		if !schema.IsSystem(field.Name) {
			user = append(user, field)
		}
	}
	return render(user)
}

func render(fields []iceberg.NestedField) string {
	parts := make([]string, len(fields))
	for i, field := range fields {
		parts[i] = field.Name + " " + renderType(field.Type)
	}
	return strings.Join(parts, ", ")
}

func renderType(t iceberg.Type) string {
	switch t := t.(type) {
	case *iceberg.StructType:
		return "struct<" + render(t.FieldList) + ">"
	case *iceberg.ListType:
		return "list<" + renderType(t.Element) + ">"
	default:
		return fmt.Sprint(t)
	}
}

// infer returns the user columns of a new table.
func infer(t testing.TB, payloads ...string) string {
	t.Helper()
	return columns(schema.New(schema.DefaultSystemColumns(), inferred(t, schema.Limits{}, payloads...)))
}

// table is a landed schema with the highest id it ever gave out.
type table struct {
	schema *iceberg.Schema
	lastID int
}

func newTable(t testing.TB, payloads ...string) *table {
	t.Helper()
	s := schema.New(schema.DefaultSystemColumns(), inferred(t, schema.Limits{}, payloads...))
	return &table{schema: s, lastID: s.HighestFieldID()}
}

// evolve unions and lands, under the rules that any catalog enforces.
func (tb *table) evolve(t testing.TB, in *schema.Inference) bool {
	t.Helper()
	next, changed, err := schema.Union(tb.schema, tb.lastID, schema.DefaultSystemColumns(), in)
	require.NoError(t, err)
	require.NoError(t, materialization.CheckEvolution(tb.schema, tb.lastID, next))
	tb.schema, tb.lastID = next, max(tb.lastID, next.HighestFieldID())
	return changed
}
