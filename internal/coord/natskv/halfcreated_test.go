package natskv_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Given buckets that were half created when their process was killed, when another
// start finishes them, then they are like others from then on: what is put stays,
// and the leases of that start are gone at the next.
func TestHalfCreatedBucketsAreFinished(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	openLog(t, s)
	require.NoError(t, s.Close(t.Context()))
	checksums, err := filepath.Glob(filepath.Join(dir, "nats", "jetstream", "*", "streams", "*", "meta.sum"))
	require.NoError(t, err)
	require.Len(t, checksums, 2, "documents and a log")
	for _, path := range checksums {
		require.NoError(t, os.Remove(path))
	}

	s = openDir(t, dir)
	put(t, openLog(t, s), "kept")
	_, err = s.Documents().Create(t.Context(), "lease.job", []byte("held"), leaseTTL)
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	for _, path := range checksums {
		require.FileExists(t, path)
	}

	s = openDir(t, dir)
	require.Equal(t, []string{"kept"}, replay(t, openLog(t, s)))
	_, err = s.Documents().Get(t.Context(), "lease.job")
	require.ErrorIs(t, err, base.ErrNotFound)
}
