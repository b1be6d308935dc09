package natskv

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
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

// Given directories that will never serve, when one is checked, then the reason is
// told before anything is created; one that would be created serves.
func TestADirectoryIsCheckedWithoutATrace(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for path, want := range map[string]string{
		"":                           "no directory given",
		file:                         "it is a file, not a directory",
		filepath.Join(file, "below"): "file is a file, not a directory",
	} {
		err := CheckDir(path)
		require.ErrorIs(t, err, base.ErrInvalid, path)
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, CheckDir(dir))
	require.NoError(t, CheckDir(filepath.Join(dir, "to", "be", "created")))
	found, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, found, 1)
}
