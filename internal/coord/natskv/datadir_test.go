package natskv

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Given directories that no server ever ran in, when one is asked about them,
// then they are no data directories, and they are as they were.
func TestADirectoryOfSomethingElseIsNoDataDirectory(t *testing.T) {
	dir := t.TempDir()
	require.False(t, IsDataDir(dir))
	require.False(t, IsDataDir(filepath.Join(dir, "absent")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, natsDirName), nil, 0o600))
	require.False(t, IsDataDir(dir), "a file of that name")
	found, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, found, 1)
}
