package cli_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// Given an object of which one bit flipped, when it is inspected by its key, then
// that is found, wherever the bit is.
func TestAFlippedBitIsFound(t *testing.T) {
	for _, prefix := range []string{"wal", "compacted"} {
		t.Run(prefix, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(filled(t))))
			key, path := findObject(t, dir, prefix)
			whole, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, at := range []int{0, 5, len(whole) / 2, len(whole) - 1} {
				damaged := bytes.Clone(whole)
				damaged[at] ^= 1
				require.NoError(t, os.WriteFile(path, damaged, 0o600))
				got := inProcess(t, "inspect", key, "--data-dir", dir)
				require.Equal(t, 1, got.code, "bit of byte %d: %s", at, got.stdout)
				require.Empty(t, got.stdout)
				require.Contains(t, got.stderr, "error: inspecting "+key)
				require.NotContains(t, got.stderr, "another cluster")
			}
			require.NoError(t, os.WriteFile(path, whole[:len(whole)/2], 0o600))
			require.Equal(t, 1, inProcess(t, "inspect", path).code, "half an object")
		})
	}
}

// Given a commit record of a version to come, when it is inspected, then the error
// says to upgrade.
func TestANewerCommitRecordIsToldFromDamage(t *testing.T) {
	data, err := commitrecord.Encode(commitrecord.Envelope{Cluster: base.ClusterID{1}}, &commitpb.ClusterCreate{Shards: 4, FoldVersion: commitrecord.FoldVersion})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "record")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	require.Zero(t, inProcess(t, "inspect", path).code)

	binary.BigEndian.PutUint16(data[4:], commitrecord.Version+1)
	body := data[:len(data)-4]
	binary.BigEndian.PutUint32(data[len(body):], crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
	require.NoError(t, os.WriteFile(path, data, 0o600))
	got := inProcess(t, "inspect", path)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "written by a newer version")
}

// Given a directory whose objects belong to another cluster, or to none, when a
// command looks at it, then it says so.
func TestForeignObjectsAreRefused(t *testing.T) {
	tests := map[string]struct {
		change func(identity string) string
		says   string
	}{
		"another cluster":  {func(identity string) string { return strings.Replace(identity, `"cluster":"0`, `"cluster":"f`, 1) }, "belong to different clusters"},
		"another software": {func(string) string { return "{}" }, "belong to different clusters"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(filled(t))))
			path := filepath.Join(dir, "objects", "cluster.json")
			identity, err := os.ReadFile(path)
			require.NoError(t, err)
			changed := test.change(string(identity))
			require.NotEqual(t, string(identity), changed)
			require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
			got := inProcess(t, "status", "--data-dir", dir)
			require.Equal(t, 1, got.code)
			require.Contains(t, got.stderr, test.says)
		})
	}
	t.Run("no objects", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(filled(t))))
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "objects")))
		require.Equal(t, 1, inProcess(t, "status", "--data-dir", dir).code)
		require.NoDirExists(t, filepath.Join(dir, "objects"))
	})
}
