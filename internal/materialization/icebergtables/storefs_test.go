package icebergtables_test

import (
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/blob/servertest"
	"github.com/lakestream-go/lakestream/internal/materialization/icebergtables"
	"github.com/lakestream-go/lakestream/internal/materialization/tablestest"
)

// openStore opens a catalog whose files are in a store that is known as location.
func openStore(t *testing.T, store blob.Store, location string) opened {
	t.Helper()
	dir := t.TempDir()
	path, warehouse := filepath.Join(dir, "catalog.db"), location+"/warehouse"
	tables, err := icebergtables.Open(t.Context(), icebergtables.Config{
		Type: "sql", URI: path, Warehouse: warehouse, Store: store, StoreLocation: location,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tables.Close()) })
	return opened{tables: tables, admin: tablestest.OpenSQLAdmin(t, path, warehouse, tables.Properties()), dir: dir}
}

func memoryStore(t *testing.T) *blob.Counted {
	t.Helper()
	store, err := blob.Open(t.Context(), "mem://", blob.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return blob.NewCounted(store)
}

func TestAcceptanceInAnObjectStore(t *testing.T) {
	for _, location := range []string{"s3://lake/prod", "gs://lake", "abfss://lake@account.dfs.core.windows.net/a/b"} {
		t.Run(strings.SplitN(location, ":", 2)[0], func(t *testing.T) {
			tablestest.Run(t, func(t *testing.T) tablestest.Subject {
				o := openStore(t, memoryStore(t), location)
				return tablestest.Subject{Catalog: o.tables, Admin: o.admin}
			})
		})
	}
}

func TestAcceptanceOnAnS3Server(t *testing.T) {
	server := servertest.S3(t)
	tablestest.Run(t, func(t *testing.T) tablestest.Subject {
		location := server.Prefix()
		store, err := blob.Open(t.Context(), location, blob.Options{Cloud: server.Cloud})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		o := openStore(t, store, location)
		return tablestest.Subject{Catalog: o.tables, Admin: o.admin}
	})
}

// Given two catalogs of one process whose stores go by the same location, when
// each makes a table, then neither sees files of the other, also not when one is
// closed.
func TestEachCatalogHasItsOwnStore(t *testing.T) {
	one, other := memoryStore(t), memoryStore(t)
	a, b := openStore(t, one, "s3://lake/x"), openStore(t, other, "s3://lake/x")
	a.create(t)
	require.Positive(t, one.Stats().Puts)
	require.Zero(t, other.Stats())
	require.NoError(t, b.tables.Close())
	rows := tablestest.RangeRows(0, base.OffsetRange{End: 3})
	shown, err := a.tables.Load(t.Context(), events)
	require.NoError(t, err)
	require.Len(t, tablestest.Rows(t.Context(), t, a.tables, a.commit(t, shown, "f", rows)), 3)
}

func fileSystem(t *testing.T, o opened, location string) iceio.WriteFileIO {
	t.Helper()
	files, err := iceio.LoadFS(t.Context(), o.tables.Properties(), location)
	require.NoError(t, err)
	return files.(iceio.WriteFileIO)
}

func TestFilesInAStoreAreNeverOverwritten(t *testing.T) {
	files := fileSystem(t, openStore(t, memoryStore(t), "s3://lake/prod"), "s3://lake/prod")
	const name = "s3://lake/prod/warehouse/t/metadata/v1.json"
	require.NoError(t, files.WriteFile(name, []byte("first")))
	require.ErrorIs(t, files.WriteFile(name, []byte("second")), fs.ErrExist)
	late, err := files.Create(name)
	require.NoError(t, err)
	_, err = late.ReadFrom(strings.NewReader("third"))
	require.NoError(t, err)
	require.ErrorIs(t, late.Close(), fs.ErrExist)
	content, err := files.(iceio.ReadFileIO).ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "first", string(content))
	for range 2 {
		require.NoError(t, files.Remove(name), "and again")
	}
	_, err = files.Open(name)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, err, base.ErrNotFound)
}

func TestAWriteThatFailedLeavesNoFile(t *testing.T) {
	store := memoryStore(t)
	files := fileSystem(t, openStore(t, store, "s3://lake"), "s3://lake")
	w, err := files.Create("s3://lake/torn")
	require.NoError(t, err)
	broken := io.MultiReader(strings.NewReader("half"), failingReader{})
	_, err = w.ReadFrom(broken)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorIs(t, w.Close(), io.ErrUnexpectedEOF)
	_, err = store.Stat(t.Context(), "torn")
	require.ErrorIs(t, err, base.ErrNotFound)
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestLocationsOutsideTheStoreAreRefused(t *testing.T) {
	o := openStore(t, memoryStore(t), "s3://lake/prod")
	files := fileSystem(t, o, "s3://lake/prod")
	for _, name := range []string{"s3://lake/production/x", "s3://other/prod/x", "gs://lake/prod/x", "s3://lake/prod/../x"} {
		_, err := files.Open(name)
		require.ErrorIs(t, err, base.ErrInvalid, name)
		require.ErrorIs(t, files.WriteFile(name, nil), base.ErrInvalid, name)
		require.ErrorIs(t, files.Remove(name), base.ErrInvalid, name)
		_, err = files.Create(name)
		require.ErrorIs(t, err, base.ErrInvalid, name)
	}
	_, err := iceio.LoadFS(t.Context(), nil, "s3://lake/prod")
	require.ErrorIs(t, err, base.ErrInvalid, "nobody said which store")
}

// Given an object larger than what a small read fetches, when it is read at random,
// then each read is the object's bytes, as the contract of io.ReaderAt has it.
func TestReadsOfAnyRangeAreExact(t *testing.T) {
	store := memoryStore(t)
	files := fileSystem(t, openStore(t, store, "s3://lake"), "s3://lake")
	content := make([]byte, 3<<20+7)
	for i := range content {
		content[i] = byte(i) + byte(i>>8) + byte(i>>16)
	}
	require.NoError(t, files.WriteFile("s3://lake/f", content))
	opened, err := files.Open("s3://lake/f")
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		offset := rapid.OneOf(rapid.IntRange(0, len(content)+1), rapid.SampledFrom([]int{0, 1<<20 - 1, 1 << 20, len(content) - 1})).Draw(rt, "offset")
		length := rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(1, 3<<20)).Draw(rt, "length")
		p := make([]byte, length)
		n, err := opened.ReadAt(p, int64(offset))
		want := content[min(offset, len(content)):min(offset+length, len(content))]
		require.Equal(rt, len(want), n)
		require.True(rt, string(want) == string(p[:n]), "other bytes") //nolint:testifylint // a diff of megabytes helps nobody
		require.Equal(rt, n < length, err == io.EOF)                   //nolint:errorlint // io.ReaderAt returns it bare
	})
}

// Given metadata of a few kilobytes, when it is read in small pieces, then it is
// fetched once.
func TestSmallReadsShareARequest(t *testing.T) {
	store := memoryStore(t)
	files := fileSystem(t, openStore(t, store, "s3://lake"), "s3://lake")
	require.NoError(t, files.WriteFile("s3://lake/f", make([]byte, 10_000)))
	opened, err := files.Open("s3://lake/f")
	require.NoError(t, err)
	for p := make([]byte, 100); ; {
		if _, err := opened.Read(p); err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
	}
	info, err := opened.Stat()
	require.NoError(t, err)
	require.Equal(t, "f", info.Name())
	require.EqualValues(t, 10_000, info.Size())
	require.False(t, info.IsDir() || info.Mode().IsDir())
	require.Positive(t, info.ModTime().Unix())
	require.NoError(t, opened.Close())
	require.EqualValues(t, 1, store.Stats().Gets)
}
