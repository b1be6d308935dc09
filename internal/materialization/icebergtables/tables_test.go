package icebergtables_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/materialization/icebergtables"
	"github.com/lakestream-go/lakestream/internal/materialization/tablestest"
)

// opened is a catalog in a directory of its own, with another user of it.
type opened struct {
	tables *icebergtables.Tables
	admin  *tablestest.SQLAdmin
	dir    string
}

func open(t *testing.T) opened {
	t.Helper()
	dir := t.TempDir()
	path, warehouse := filepath.Join(dir, "catalog.db"), "file://"+filepath.Join(dir, "warehouse")
	tables, err := icebergtables.Open(t.Context(), icebergtables.Config{Type: "sql", URI: path, Warehouse: warehouse})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tables.Close()) })
	return opened{tables: tables, admin: tablestest.OpenSQLAdmin(t, path, warehouse), dir: dir}
}

func TestAcceptance(t *testing.T) {
	tablestest.Run(t, func(t *testing.T) tablestest.Subject {
		o := open(t)
		return tablestest.Subject{Catalog: o.tables, Admin: o.admin}
	})
}

func TestAcceptanceInMemoryWarehouse(t *testing.T) {
	tablestest.Run(t, func(t *testing.T) tablestest.Subject {
		path := filepath.Join(t.TempDir(), "catalog.db")
		// Buckets in memory live as long as the process: one for each test.
		warehouse := "mem://" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())) + "/warehouse"
		tables, err := icebergtables.Open(t.Context(), icebergtables.Config{Type: "sql", URI: path, Warehouse: warehouse})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, tables.Close()) })
		return tablestest.Subject{Catalog: tables, Admin: tablestest.OpenSQLAdmin(t, path, warehouse)}
	})
}
