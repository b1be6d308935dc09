package schema_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

func TestStepsEscapeDotsAndTildes(t *testing.T) {
	for name, step := range map[string]string{
		"plain": "plain", "a.b": "a~1b", "a~b": "a~0b", "~1": "~01", ".": "~1", "": "", "é.": "é~1",
	} {
		require.Equal(t, step, string(schema.AppendStep(nil, []byte(name))))
		require.Equal(t, name, schema.NameOf(step))
	}
}

func TestAStepHasNoDotAndReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		step := string(schema.AppendStep(nil, []byte(name)))
		if strings.Contains(step, ".") || schema.NameOf(step) != name {
			t.Fatalf("%q became %q, which reads back as %q", name, step, schema.NameOf(step))
		}
	})
}

// leavesByPath lists the leaf columns of a schema with their types, sorted.
func leavesByPath(s *iceberg.Schema) string {
	leaves := map[string]string{}
	collect(leaves, "", s.Fields())
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(leaves)) {
		lines = append(lines, path+" "+leaves[path])
	}
	return strings.Join(lines, "\n")
}

func collect(leaves map[string]string, prefix string, fields []iceberg.NestedField) {
	for _, field := range fields {
		path := prefix + schema.Fold(field.Name)
		if nested, ok := field.Type.(iceberg.NestedType); ok {
			collect(leaves, path+".", nested.Fields())
			continue
		}
		leaves[path] = field.Type.String()
	}
}
