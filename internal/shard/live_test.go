package shard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

// Given the golden history, after each record, then the live objects are as many and as
// large as the state counts, none twice, and none of them is dead.
func TestLiveObjectsAreThoseThatTheStateCounts(t *testing.T) {
	l := ledger{t: t, State: shard.NewState(shardtest.Cluster, testShard)}
	most := 0
	for _, data := range goldenHistory(t) {
		_, err := l.put(data)
		require.NoError(t, err)
		live := make(map[string]int64)
		var bytes int64
		for key, size := range l.LiveObjects() {
			require.NotContains(t, live, key)
			live[key] = size
			bytes += size
		}
		wanted, _ := l.ObjectBytes()
		require.Len(t, live, l.Objects())
		require.Equal(t, wanted, bytes)
		for _, dead := range l.Dead() {
			require.NotContains(t, live, dead.Key)
		}
		most = max(most, len(live))
	}
	require.Greater(t, most, 1)
	for range l.LiveObjects() {
		break // whoever has seen enough may stop
	}
}
