package compacted

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files again")

// The bytes of a file depend on the version of the Parquet and zstd libraries;
// what must never change is that a file written once is read the same for ever.
func TestGoldenFileIsReadForEver(t *testing.T) {
	path := filepath.Join("testdata", "v1.parquet")
	records := testRecords(1000, 340)
	written, meta := writeObject(t, records, smallGroups)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, written, 0o600))
	}
	golden, err := os.ReadFile(path)
	require.NoError(t, err)
	got, err := readFrom(openObject(t, golden, meta), 1000, 100)
	require.NoError(t, err)
	require.Equal(t, records, got)
}

// A plain Parquet reader, which knows nothing of the checksum block, sees the
// documented schema and all rows.
func TestAnyParquetReaderOpensAnObject(t *testing.T) {
	object, _ := writeObject(t, testRecords(1000, 340), smallGroups)
	r, err := file.NewParquetReader(bytes.NewReader(object))
	require.NoError(t, err)
	require.Equal(t, int64(340), r.NumRows())
	golden := filepath.Join("testdata", "schema.txt")
	text := r.MetaData().Schema.String()
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(text), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}
