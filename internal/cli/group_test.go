package cli_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// Given a group that has consumed part of a stream, when it is looked at, sought and
// deleted, then each command does what it says, and refuses while a member lives.
func TestAGroupIsLookedAtSoughtAndDeleted(t *testing.T) {
	dir := t.TempDir()
	e, err := engine.Open(t.Context(), engine.Options{DataDir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
	stream, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	batch := engine.Batch{Logs: []engine.LogRecords{{Records: make([]engine.Record, 10)}}}
	require.NoError(t, stream.Append(t.Context(), &batch))
	subscription, err := e.Subscribe(t.Context(), engine.SubscribeOptions{
		Group: "audit", Selections: []engine.Selection{{Stream: "shop/orders", All: true}}, Heartbeat: 50 * time.Millisecond,
	})
	require.NoError(t, err)
	claim, err := subscription.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, claim.Cursor().Reset(t.Context(), 4))

	list := inProcess(t, "group", "ls", "--data-dir", dir)
	require.Contains(t, list.stdout, "audit  STABLE        1           1    6      0")
	shown := inProcess(t, "group", "describe", "audit", "--json", "--data-dir", dir)
	var status engine.GroupStatus
	require.NoError(t, json.Unmarshal([]byte(shown.stdout), &status))
	require.EqualValues(t, 4, *status.Partitions[0].Committed)
	require.EqualValues(t, 10, status.Partitions[0].Head)
	require.Contains(t, inProcess(t, "group", "describe", "audit", "--data-dir", dir).stdout, "shop/orders")
	refused := inProcess(t, "group", "seek", "audit", "--to", "earliest", "--yes", "--data-dir", dir)
	require.Equal(t, 1, refused.code)
	require.Contains(t, refused.stderr, "the group has members")

	require.NoError(t, claim.Release(t.Context()))
	require.NoError(t, subscription.Close(t.Context()))
	require.Equal(t, 2, inProcess(t, "group", "seek", "audit", "--to", "committed", "--yes", "--data-dir", dir).code)
	require.Equal(t, 2, inProcess(t, "group", "seek", "audit", "--to", "7", "--data-dir", dir).code, "nobody can be asked")
	sought := inProcess(t, "group", "seek", "audit", "--to", "7", "--yes", "--data-dir", dir)
	require.Equal(t, "group audit goes on at 7 in 1 partition\n", sought.stdout, sought.stderr)
	g, err := e.Group(t.Context(), "audit")
	require.NoError(t, err)
	require.EqualValues(t, 3, g.Lag)
	require.Equal(t, engine.GroupInactive, g.State)
	require.Zero(t, inProcess(t, "group", "delete", "audit", "--yes", "--data-dir", dir).code)
	for _, args := range [][]string{{"describe", "audit"}, {"delete", "audit", "--yes"}, {"seek", "audit", "--to", "7", "--yes"}} {
		gone := inProcess(t, append(append([]string{"group"}, args...), "--data-dir", dir)...)
		require.Equal(t, 1, gone.code)
		require.Contains(t, gone.stderr, "not found; group ls shows those that are")
	}
	require.Equal(t, "no consumer groups yet\n", inProcess(t, "group", "ls", "--data-dir", dir).stdout)
}
