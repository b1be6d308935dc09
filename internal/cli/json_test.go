package cli_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write golden files")

// Given scripts that read JSON, when commands print it, then it has the fields and
// types that it always had.
func TestJSONKeepsItsShape(t *testing.T) {
	dir := filled(t)
	wal, _ := findObject(t, dir, "wal")
	compacted, _ := findObject(t, dir, "compacted")
	tests := map[string][]string{
		"status":            {"status"},
		"stream-ls":         {"stream", "ls"},
		"stream-describe":   {"stream", "describe", "shop/orders"},
		"table-ls":          {"table", "ls"},
		"table-describe":    {"table", "describe", "shop.orders"},
		"table-head":        {"table", "head", "shop.orders"},
		"table-verify":      {"table", "verify", "shop.orders"},
		"compact":           {"compact", "--once"},
		"gc":                {"gc", "--dry-run"},
		"inspect-wal":       {"inspect", wal},
		"inspect-compacted": {"inspect", compacted},
		"inspect-commit":    {"inspect", "s00@1"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			got := inProcess(t, append(args, "--json", "--data-dir", dir)...)
			require.Zero(t, got.code, got.stderr)
			require.Empty(t, got.stderr)
			checkShape(t, name, got.stdout)
		})
	}
}

// checkShape compares the paths and types of a document with a golden file.
func checkShape(t *testing.T, name, document string) {
	t.Helper()
	var value any
	require.NoError(t, json.Unmarshal([]byte(document), &value))
	paths := make(map[string]bool)
	collect(paths, "", value)
	shape := strings.Join(slices.Sorted(maps.Keys(paths)), "\n") + "\n"
	path := filepath.Join("testdata", name+".shape")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, []byte(shape), 0o600))
	}
	golden, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(golden), shape)
}

func collect(paths map[string]bool, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		paths[path+" object"] = true
		for name, field := range v {
			collect(paths, path+"."+name, field)
		}
	case []any:
		paths[path+" list"] = true
		for _, element := range v {
			collect(paths, path+"[]", element)
		}
	default:
		paths[fmt.Sprintf("%s %T", path, v)] = true
	}
}

// Given rows, when they are printed as JSON, then each value is the one in the
// table.
func TestJSONRowsHoldTheValues(t *testing.T) {
	got := inProcess(t, "table", "head", "shop/orders", "-n", "20", "--columns", "id,name,address", "--json", "--data-dir", filled(t))
	require.Zero(t, got.code, got.stderr)
	var rows []struct {
		ID      int               `json:"id"`
		Name    string            `json:"name"`
		Address map[string]string `json:"address"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &rows))
	require.Len(t, rows, 20)
	for _, row := range rows {
		require.Equal(t, fmt.Sprintf("order %d", row.ID), row.Name)
		require.Equal(t, map[string]string{"city": "Zürich"}, row.Address)
	}
}
