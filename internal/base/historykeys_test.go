package base_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
)

func TestKeysOfCheckpointsAndSegmentsHaveTheirDocumentedForm(t *testing.T) {
	require.Equal(t, "checkpoint/s03/00000000000000000042-01ARZ3", base.CheckpointKey(3, 42, "01ARZ3"))
	require.Equal(t, "commits/meta/00000000000000000007-00000000000000000019", base.SegmentKey(base.MetaShard, 7, 19))
}

func drawShard(t *rapid.T) base.Shard {
	if rapid.Bool().Draw(t, "meta") {
		return base.MetaShard
	}
	return base.Shard(rapid.Uint16Range(0, base.MaxShards-1).Draw(t, "shard"))
}

func TestAKeyNamesItsRevisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shard := drawShard(t)
		from := base.Revision(rapid.Uint64Min(1).Draw(t, "from"))
		to := base.Revision(rapid.Uint64Min(uint64(from)).Draw(t, "to"))
		gotShard, gotFrom, gotTo, err := base.RangeOfSegmentKey(base.SegmentKey(shard, from, to))
		require.NoError(t, err)
		require.Equal(t, shard, gotShard)
		require.Equal(t, [2]base.Revision{from, to}, [2]base.Revision{gotFrom, gotTo})

		gotShard, revision, err := base.RevisionOfCheckpointKey(base.CheckpointKey(shard, from, "an-instance"))
		require.NoError(t, err)
		require.Equal(t, shard, gotShard)
		require.Equal(t, from, revision)
	})
}

// Revisions are padded so that the newest object stands at the end of a list.
func TestKeysSortByRevision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := base.Revision(rapid.Uint64Min(1).Draw(t, "a")), base.Revision(rapid.Uint64Min(1).Draw(t, "b"))
		require.Equal(t, a < b, strings.Compare(base.SegmentKey(0, a, a), base.SegmentKey(0, b, b)) < 0)
		require.Equal(t, a < b, strings.Compare(base.CheckpointKey(0, a, "x"), base.CheckpointKey(0, b, "x")) < 0)
	})
}

func TestWhatWeDidNotNameIsRefused(t *testing.T) {
	good := base.SegmentKey(0, 7, 19)
	for _, key := range []string{
		"", "commits/", "commits/s00/7-19", good + "0", "x" + good, strings.Replace(good, "s00", "s0", 1),
		base.SegmentKey(0, 19, 7), base.SegmentKey(0, 0, 7), good + "/x", base.CheckpointKey(0, 7, "i"),
	} {
		_, _, _, err := base.RangeOfSegmentKey(key)
		require.ErrorIs(t, err, base.ErrInvalid, key)
	}
	for _, key := range []string{"", "checkpoint/s00/", "checkpoint/s00/42-i", base.CheckpointKey(0, 42, ""), base.CheckpointKey(0, 42, "a/b"), good} {
		_, _, err := base.RevisionOfCheckpointKey(key)
		require.ErrorIs(t, err, base.ErrInvalid, key)
	}
}
