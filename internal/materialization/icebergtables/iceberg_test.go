package icebergtables_test

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/icebergtables"
	"github.com/lakestream-go/lakestream/internal/materialization/tablestest"
)

var events = materialization.Ident{Namespace: "web", Name: "events"}

func (o opened) create(t *testing.T) *materialization.Table {
	t.Helper()
	created, err := o.tables.Create(t.Context(), events, tablestest.Schema(), nil)
	require.NoError(t, err)
	return created
}

func (o opened) commit(t *testing.T, shown *materialization.Table, name string, rows []tablestest.Row) *materialization.Table {
	t.Helper()
	file := tablestest.Write(t.Context(), t, o.tables, shown, name, rows)
	committed, err := o.tables.Commit(t.Context(), shown, materialization.Update{Files: []materialization.DataFile{file}})
	require.NoError(t, err)
	return committed
}

func TestConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	for name, config := range map[string]icebergtables.Config{
		"no type":      {URI: "/tmp/x", Warehouse: "file:///tmp/w"},
		"no warehouse": {Type: "sql", URI: "/tmp/x"},
		"no uri":       {Type: "sql", Warehouse: "file:///tmp/w"},
		"not sqlite":   {Type: "sql", URI: "postgresql://host/db", Warehouse: "file:///tmp/w"},
	} {
		_, err := icebergtables.Open(t.Context(), config)
		require.ErrorIs(t, err, base.ErrInvalid, name)
	}
}

func TestADirectoryThatCannotBeWrittenIsUnavailable(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	_, err := icebergtables.Open(t.Context(), icebergtables.Config{
		Type: "sql", URI: filepath.Join(blocked, "catalog.db"), Warehouse: "file:///tmp/w",
	})
	require.ErrorIs(t, err, base.ErrUnavailable)
}

func TestTheCatalogIsItsOwnersAlone(t *testing.T) {
	o := open(t)
	o.create(t)
	found, err := filepath.Glob(filepath.Join(o.dir, "catalog.db*"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for _, path := range found {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), path)
	}
}

func TestAnOddPathIsOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c#d%20e", "catalog.db")
	for range 2 { // made, then found again
		tables, err := icebergtables.Open(t.Context(), icebergtables.Config{Type: "sql", URI: path, Warehouse: "mem://odd/w"})
		require.NoError(t, err)
		require.NoError(t, tables.Close())
		require.FileExists(t, path)
	}
}

func TestTwoProcessesOnOneCatalogSeeEachOther(t *testing.T) {
	o := open(t)
	created := o.create(t)
	other, err := icebergtables.Open(t.Context(), icebergtables.Config{
		Type: "sql", URI: "sqlite://" + filepath.Join(o.dir, "catalog.db"), Warehouse: "file://" + filepath.Join(o.dir, "warehouse"),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	seen, err := other.Load(t.Context(), events)
	require.NoError(t, err)
	require.Equal(t, created.UUID, seen.UUID)
	o.commit(t, created, "ours", tablestest.RangeRows(0, base.OffsetRange{End: 1}))
	_, err = other.Commit(t.Context(), seen, materialization.Update{})
	require.ErrorIs(t, err, base.ErrConflict)
}

func TestAColumnAddedAndDroppedMeanwhileSpendsItsID(t *testing.T) {
	o := open(t)
	stale := o.create(t)
	require.NoError(t, o.admin.Change(events, func(tx *table.Transaction, _ *table.Table) error {
		return tx.UpdateSchema(true, false).AddColumn([]string{"brief"}, iceberg.PrimitiveTypes.String, "", false, nil).Commit()
	}))
	require.NoError(t, o.admin.Change(events, func(tx *table.Transaction, _ *table.Table) error {
		return tx.UpdateSchema(true, false).DeleteColumn([]string{"brief"}).Commit()
	}))
	next := iceberg.NewSchema(0, append(tablestest.Schema().Fields(),
		iceberg.NestedField{ID: 4, Name: "more", Type: iceberg.PrimitiveTypes.Int64})...)
	_, err := o.tables.Evolve(t.Context(), stale, next)
	require.ErrorIs(t, err, base.ErrConflict)

	loaded, err := o.tables.Load(t.Context(), events)
	require.NoError(t, err)
	require.Equal(t, 4, loaded.LastColumnID)
	_, err = o.tables.Evolve(t.Context(), loaded, next)
	require.ErrorIs(t, err, base.ErrInvalid)
	fresh := iceberg.NewSchema(0, append(tablestest.Schema().Fields(),
		iceberg.NestedField{ID: 5, Name: "more", Type: iceberg.PrimitiveTypes.Int64})...)
	evolved, err := o.tables.Evolve(t.Context(), loaded, fresh)
	require.NoError(t, err)
	require.Equal(t, 5, evolved.LastColumnID)
}

// TestStatisticsLetReadersSkipFilesAndNeverRows commits three files of long
// strings at once and compares filtered scans with the rows themselves.
func TestStatisticsLetReadersSkipFilesAndNeverRows(t *testing.T) {
	o := open(t)
	shown := o.create(t)
	var files []materialization.DataFile
	var all []tablestest.Row
	for n := range 3 {
		var rows []tablestest.Row
		for i := range 20 {
			long := strings.Repeat(string(rune('a'+n)), 60) + strings.Repeat("z", 40) + fmt.Sprintf("%02d", i)
			rows = append(rows, tablestest.Row{Partition: base.Partition(n), Offset: base.Offset(i), Text: long})
		}
		files = append(files, tablestest.Write(t.Context(), t, o.tables, shown, fmt.Sprintf("f%d", n), rows))
		all = append(all, rows...)
	}
	shown, err := o.tables.Commit(t.Context(), shown, materialization.Update{Files: files})
	require.NoError(t, err)
	loaded := shown.Handle.(*table.Table)
	tasks, err := loaded.Scan().PlanFiles(t.Context())
	require.NoError(t, err)
	require.Len(t, tasks, 3)
	for _, task := range tasks {
		require.EqualValues(t, 20, task.File.Count())
		lower, upper := task.File.LowerBoundValues()[3], task.File.UpperBoundValues()[3]
		require.Len(t, lower, 16, "a string's bound is cut")
		require.Len(t, upper, 16)
		require.EqualValues(t, 20, task.File.ValueCounts()[2])
		require.EqualValues(t, 0, task.File.NullValueCounts()[2])
	}
	for _, row := range all {
		filter := iceberg.EqualTo(iceberg.Reference("text"), row.Text)
		result, err := loaded.Scan(table.WithRowFilter(filter)).ToArrowTable(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, result.NumRows())
		result.Release()
		planned, err := loaded.Scan(table.WithRowFilter(filter)).PlanFiles(t.Context())
		require.NoError(t, err)
		require.Len(t, planned, 1, "the other files are skipped")
	}
}

func TestAFileThatIsNotWhatItsRecordSaysIsRefused(t *testing.T) {
	o := open(t)
	shown := o.create(t)
	file := tablestest.Write(t.Context(), t, o.tables, shown, "f", tablestest.RangeRows(0, base.OffsetRange{End: 3}))
	for name, claim := range map[string]materialization.DataFile{
		"rows":  {Path: file.Path, Size: file.Size, Rows: 4},
		"bytes": {Path: file.Path, Size: file.Size + 1, Rows: 3},
	} {
		_, err := o.tables.Commit(t.Context(), shown, materialization.Update{Files: []materialization.DataFile{claim}})
		require.ErrorIs(t, err, base.ErrCorrupt, name)
	}
	_, err := o.tables.Commit(t.Context(), shown, materialization.Update{Files: []materialization.DataFile{file}})
	require.NoError(t, err)
}

// TestMetadataFilesAreBounded checks that the library does what the table's
// properties ask of it.
func TestMetadataFilesAreBounded(t *testing.T) {
	o := open(t)
	shown := o.create(t)
	for n := range 60 {
		at := base.Offset(n)
		shown = o.commit(t, shown, fmt.Sprintf("f%d", n), tablestest.RangeRows(0, base.OffsetRange{Start: at, End: at + 1}))
	}
	location, err := url.Parse(shown.Location)
	require.NoError(t, err)
	found, err := filepath.Glob(filepath.Join(location.Path, "metadata", "*.metadata.json"))
	require.NoError(t, err)
	require.Len(t, found, 21, "the current one and twenty before it")
	require.Len(t, tablestest.Rows(t.Context(), t, o.tables, shown), 60)
	loaded := shown.Handle.(*table.Table)
	files, err := loaded.FS(t.Context())
	require.NoError(t, err)
	current, err := loaded.CurrentSnapshot().Manifests(files)
	require.NoError(t, err)
	require.Less(t, len(current), 50, "many small manifests were folded into few")
}

func TestNoCommitSetsANameMapping(t *testing.T) {
	o := open(t)
	shown := o.commit(t, o.create(t), "f", tablestest.RangeRows(0, base.OffsetRange{End: 1}))
	shown, err := o.tables.Commit(t.Context(), shown, materialization.Update{})
	require.NoError(t, err)
	require.NotContains(t, shown.Properties, table.DefaultNameMappingKey)
}

func TestFilesAreNeverOverwritten(t *testing.T) {
	open(t)
	files, err := iceio.LoadFS(t.Context(), nil, "file:///")
	require.NoError(t, err)
	path := "file://" + filepath.Join(t.TempDir(), "new", "dir", "v1.metadata.json")
	writable := files.(iceio.WriteFileIO)
	require.NoError(t, writable.WriteFile(path, []byte("first")))
	require.ErrorIs(t, writable.WriteFile(path, []byte("second")), fs.ErrExist)
	created, err := writable.Create(path + ".more")
	require.NoError(t, err)
	n, err := created.ReadFrom(strings.NewReader("streamed"))
	require.NoError(t, err)
	require.EqualValues(t, 8, n)
	require.NoError(t, created.Close())
	read, err := files.Open(path)
	require.NoError(t, err)
	content := make([]byte, 5)
	_, err = read.Read(content)
	require.NoError(t, err)
	require.Equal(t, "first", string(content))
	require.NoError(t, read.Close())
	require.ErrorIs(t, writable.WriteFile("file://other.host/x", nil), fs.ErrInvalid)
}

func TestATableOfAnotherCatalogIsRefused(t *testing.T) {
	o := open(t)
	foreign := &materialization.Table{Ident: events, Handle: "else"}
	_, err := o.tables.Commit(t.Context(), foreign, materialization.Update{})
	require.ErrorIs(t, err, base.ErrInvalid)
	_, err = o.tables.Evolve(t.Context(), foreign, tablestest.Schema())
	require.ErrorIs(t, err, base.ErrInvalid)
	_, err = materialization.Head(t.Context(), o.tables, foreign, nil, 1)
	require.ErrorIs(t, err, base.ErrInvalid)
}
