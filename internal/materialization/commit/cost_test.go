package commit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/materialization/memtables"
)

// TestTheTwoThousandthCommitAsksAsLittleAsTheTwentieth counts the operations of
// a commit: none may depend on how many came before.
func TestTheTwoThousandthCommitAsksAsLittleAsTheTwentieth(t *testing.T) {
	w := memWorld(t.Context(), t)
	operations := 0
	w.mem.SetHook(func(op memtables.Op) memtables.Fault {
		if op.Kind != memtables.OpWrite {
			operations++
		}
		return memtables.Fault{}
	})
	c := w.committer(t)
	cost := map[int]int{}
	for n := 1; n <= 2000; n++ {
		w.prepare(t.Context(), t, 0, 1, 0)
		before := operations
		w.settle(t.Context(), t, c)
		cost[n] = operations - before
		w.clock.advance(commit.DefaultInterval)
	}
	require.Equal(t, cost[20], cost[2000])
	require.LessOrEqual(t, cost[2000], 4, "two loads and a commit, and one more look")
	w.requireExactlyOnce(t.Context(), t)
}

func TestSixtyCommitsOverSQLite(t *testing.T) {
	w := sqliteWorld(t)
	c := w.committer(t)
	for range 60 {
		w.prepare(t.Context(), t, 0, 2, 0)
		w.settle(t.Context(), t, c)
		w.clock.advance(commit.DefaultInterval)
	}
	w.requireExactlyOnce(t.Context(), t)
	require.Len(t, w.load(t.Context(), t, events).CommitIDs, 60)
}
