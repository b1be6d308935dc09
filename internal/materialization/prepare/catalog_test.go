package prepare_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/decode/decodetest"
	"github.com/lakestream-go/lakestream/internal/materialization/icebergtables"
	"github.com/lakestream-go/lakestream/internal/materialization/prepare"
	"github.com/lakestream-go/lakestream/internal/materialization/tablestest"
)

// catalog is a real Iceberg catalog, and the library's own view of it.
type catalog struct {
	*icebergtables.Tables
	admin *tablestest.SQLAdmin
}

func openCatalog(t *testing.T) catalog {
	t.Helper()
	dir := t.TempDir()
	path, warehouse := filepath.Join(dir, "catalog.db"), "file://"+filepath.Join(dir, "warehouse")
	tables, err := icebergtables.Open(t.Context(), icebergtables.Config{Type: "sql", URI: path, Warehouse: warehouse})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tables.Close()) })
	return catalog{Tables: tables, admin: tablestest.OpenSQLAdmin(t, path, warehouse)}
}

// commit adds prepared files to the table.
func (c catalog) commit(t *testing.T, prepared ...materialization.Prepared) {
	t.Helper()
	var files []materialization.DataFile
	for _, p := range prepared {
		files = append(files, p.Main...)
	}
	_, err := c.Commit(t.Context(), landed(t, c), materialization.Update{Files: files})
	require.NoError(t, err)
}

// scan reads the main table with the library, which skips files by statistics,
// and tells how many files it did not skip.
func (c catalog) scan(t *testing.T, options ...table.ScanOption) (rows []decodetest.Row, files int) {
	t.Helper()
	loaded, err := c.admin.Catalog.LoadTable(t.Context(), table.Identifier{mainTable.Namespace, mainTable.Name})
	require.NoError(t, err)
	scan := loaded.Scan(options...)
	tasks, err := scan.PlanFiles(t.Context())
	require.NoError(t, err)
	_, batches, err := scan.ToArrowRecords(t.Context())
	require.NoError(t, err)
	for batch, err := range batches {
		require.NoError(t, err)
		rows = append(rows, decodetest.Rows(t, batch)...)
		batch.Release()
	}
	return rows, len(tasks)
}

func TestRealPayloadsLandInARealCatalog(t *testing.T) {
	payloads := githubPayloads(t)
	c := openCatalog(t)
	half := len(payloads) / 2
	first := request(payloads[:half])
	second := requestFor(source(1, 0, payloads[half:]...))
	second.FilePrefix = "s00-4-12"
	c.commit(t, prepareAll(t, c, first)...)
	c.commit(t, prepareAll(t, c, second)...)

	rows, _ := c.scan(t)
	require.Len(t, rows, len(payloads))
	for _, row := range rows {
		delivery := row["delivery"].(int64)
		decodetest.RequireSame(t, payloads[delivery-1], row)
	}
}

// Given three files a commit and texts of 100 characters, a filter finds what a
// full scan finds, and skips files.
func TestAFilterFindsWhatAFullScanFinds(t *testing.T) {
	c := openCatalog(t)
	text := func(n int) string { return fmt.Sprintf("%s%05d", strings.Repeat("prefix-", 14), n) }
	var sources []prepare.Source
	for i := range 3 {
		var payloads [][]byte
		for n := i * 100; n < (i+1)*100; n++ {
			payloads = append(payloads, fmt.Appendf(nil, `{"text":%q,"n":%d,"d":-%d.5,"o":{"n":%d}}`, text(n), n, n, n))
		}
		sources = append(sources, source(base.Partition(i), 0, payloads...))
	}
	c.commit(t, prepareAll(t, c, requestFor(sources...))...)

	all, files := c.scan(t)
	require.Len(t, all, 300)
	require.Equal(t, 3, files)
	for n := 0; n < 300; n += 37 {
		for _, filter := range []iceberg.BooleanExpression{
			iceberg.EqualTo(iceberg.Reference("text"), text(n)),
			iceberg.EqualTo(iceberg.Reference("n"), int64(n)),
			iceberg.EqualTo(iceberg.Reference("d"), -float64(n)-0.5),
		} {
			rows, _ := c.scan(t, table.WithRowFilter(filter))
			require.Len(t, rows, 1, filter)
			require.Equal(t, int64(n), rows[0]["n"])
		}
	}
	_, files = c.scan(t, table.WithRowFilter(iceberg.EqualTo(iceberg.Reference("n"), int64(7))))
	require.Equal(t, 1, files, "two files are skipped")
}

// Names that collide with each other, with dots and with Parquet's own names
// make a table that the library can commit to and read.
func TestNamesThatCollideAreSafe(t *testing.T) {
	c := openCatalog(t)
	payloads := texts(
		`{"a.b":1,"a":{"b":2,"b.c":{"d":3}},"a~1b":4,"list":[{"element":{"list":[5]}}],"element":6,"key_value":{"key":7,"value":8}}`,
		`{"A.B":9,"a":{"b":{"c":10}},"é É":11,"":12,"value":13,"quote\"back\\slash":14," space ":15,"\u0000":16,"`+strings.Repeat("n", 300)+`":17}`,
	)
	c.commit(t, prepareAll(t, c, request(payloads))...)
	rows, _ := c.scan(t)
	require.Len(t, rows, 2)
	for _, row := range rows {
		decodetest.RequireSame(t, payloads[row["__offset"].(int64)], row)
	}
}
