package cursor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

func names() *rapid.Generator[string] {
	return rapid.StringMatching(`[A-Za-z0-9._-]{1,96}`).Filter(func(s string) bool { return s != "." && s != ".." })
}

func TestDifferentNamesHaveDifferentKeys(t *testing.T) {
	place := Place{Stream: Stream{Shard: 63, ID: 1<<64 - 1}, Partition: 1<<31 - 1}
	rapid.Check(t, func(t *rapid.T) {
		a, b := names().Draw(t, "a"), names().Draw(t, "b")
		require.NoError(t, CheckName(a))
		require.NoError(t, coord.CheckKey(place.key(commitKind, a)))
		require.NoError(t, coord.CheckKey(memberPrefix(a)+token("01J00000000000000000000000")))
		require.Equal(t, a == b, place.key(commitKind, a) == place.key(commitKind, b))
		partition, name, ok := place.Stream.split(commitKind, place.key(commitKind, a))
		require.True(t, ok)
		require.Equal(t, place.Partition, partition)
		require.Equal(t, a, name)
	})
	for _, near := range [][2]string{{"a.b", "a_b"}, {"a.b", "a_db"}, {"_", "."}, {"__", "_"}, {"..a", "_da"}} {
		require.NotEqual(t, token(near[0]), token(near[1]))
	}
}

func TestTheLongestNameFitsIntoAKey(t *testing.T) {
	place := Place{Stream: Stream{Shard: 63, ID: 1<<64 - 1}, Partition: 1<<31 - 1}
	for _, c := range []string{"_", ".", "a"} {
		name := strings.Repeat(c, MaxNameBytes)
		require.NoError(t, CheckName(name))
		for _, key := range []string{place.key(cursorKind, name), place.key(commitKind, name), groupKey(name), memberPrefix(name) + "01J00000000000000000000000"} {
			require.NoError(t, coord.CheckKey(key))
		}
	}
	for _, bad := range []string{"", ".", "..", "a b", "a/b", "ä", strings.Repeat("a", MaxNameBytes+1)} {
		require.ErrorIs(t, CheckName(bad), base.ErrInvalid, bad)
	}
}

func TestTheKeyOfAStreamIsNoPrefixOfAnother(t *testing.T) {
	one, twelve := Stream{ID: 1}, Stream{ID: 12}
	require.False(t, strings.HasPrefix(Place{Stream: twelve}.key(commitKind, "g"), one.prefix(commitKind)))
	_, _, ok := one.split(commitKind, "commit.s00-1.x.g")
	require.False(t, ok)
	_, _, ok = one.split(commitKind, "commit.s00-1.0")
	require.False(t, ok)
}

func FuzzToken(f *testing.F) {
	for _, seed := range []string{"a", "_d", "__", "_", "_x", "a_", "é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if name, ok := nameOf(text); ok && !strings.Contains(text, ".") {
			require.Equal(t, text, token(name), "one name, one token")
		}
	})
}
