package blob

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func openTemp(t *testing.T, path string) *fileStore {
	t.Helper()
	s, err := openFileStore(path, disk{write: writeDurably, sync: syncFile})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func unfinished(t *testing.T, path string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(path, tempRoot, "*", "[0-9]*"))
	require.NoError(t, err)
	return files
}

func TestFirstCreateRemovesWhatADeadProcessLeft(t *testing.T) {
	path := t.TempDir()
	left := filepath.Join(path, tempRoot, "4711-0")
	require.NoError(t, os.MkdirAll(left, 0o700))
	for _, name := range []string{"1", lockName} {
		require.NoError(t, os.WriteFile(filepath.Join(left, name), []byte("x"), 0o600))
	}

	s := openTemp(t, path)
	require.DirExists(t, left, "a store that only reads changes nothing")
	w, err := s.Create(t.Context(), "a")
	require.NoError(t, err)
	require.NoDirExists(t, left)
	require.NoError(t, w.Commit())
}

func TestCreateLeavesTheUnfinishedWritesOfOthersAlone(t *testing.T) {
	path := t.TempDir()
	one, two := openTemp(t, path), openTemp(t, path)
	w1, err := one.Create(t.Context(), "one")
	require.NoError(t, err)
	w2, err := two.Create(t.Context(), "two")
	require.NoError(t, err)
	require.Len(t, unfinished(t, path), 2)
	require.NoError(t, w1.Commit())
	require.NoError(t, w2.Commit())
	require.Empty(t, unfinished(t, path), "a committed object has lost its hidden name")
	require.FileExists(t, filepath.Join(path, "one"))
	require.FileExists(t, filepath.Join(path, "two"))
}

func TestCloseDiscardsUnfinishedWrites(t *testing.T) {
	path := t.TempDir()
	s := openTemp(t, path)
	w, err := s.Create(t.Context(), "a")
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Empty(t, unfinished(t, path))
	require.Error(t, w.Commit())
	require.NoFileExists(t, filepath.Join(path, "a"))
}
