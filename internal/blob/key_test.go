package blob

import (
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
)

func TestKeysOfTheEngineAreValid(t *testing.T) {
	log := base.LogID{Stream: 12, Partition: 3}
	for _, key := range []string{
		base.WALKey(0, 1, 1),
		base.CompactedKey(63, 1<<63, log, base.OffsetRange{Start: 0, End: 1 << 62}, 1<<63),
		"checkpoint/s00/17-4", "commits/s00/1-900", "identity",
		"warehouse/github/webhooks/metadata/00001-0b5c.metadata.json",
		"warehouse/a/data/day=2026-11-29/k=a@b/part-0~1,2+3.parquet",
	} {
		require.NoError(t, checkKey(key), key)
	}
}

func TestPrefixMayEndInsideAPartOrAfterOne(t *testing.T) {
	for _, prefix := range []string{"", "w", "wal/", "wal/s0", "wal.", "wal/s0."} {
		require.NoError(t, checkPrefix(prefix), prefix)
	}
	for _, prefix := range []string{"/", "wal//", "../", ".tmp", "wal/.", "wal/../x", "wal./"} {
		require.ErrorIs(t, checkPrefix(prefix), base.ErrInvalid, prefix)
	}
}

// A valid key names a path below the store's folder that is no hidden one, and
// cleaning it changes nothing, so that no two keys are one file.
func FuzzCheckKey(f *testing.F) {
	for _, seed := range []string{"a/b", "../a", "a/./b", "a//b", "/a", "a/", ".tmp/1", "a\\b", "C:a", "a\x00", "é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if err := checkKey(key); err != nil {
			require.ErrorIs(t, err, base.ErrInvalid)
			return
		}
		require.True(t, filepath.IsLocal(filepath.FromSlash(key)))
		require.Equal(t, path.Clean(key), key)
		require.NotContains(t, "/"+key, "/.")
		require.NotContains(t, key, "\\")
		require.LessOrEqual(t, len(key), MaxKeyBytes)
		for part := range strings.SplitSeq(key, "/") {
			require.LessOrEqual(t, len(part), MaxKeyPartBytes)
		}
	})
}
