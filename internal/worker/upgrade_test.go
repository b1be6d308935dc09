package worker_test

import (
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/worker"
)

// viewOf opens a view of a log of a cluster that was created at fold version 1.
func (c *cluster) viewOf(log string) *shard.View {
	store := c.server.Open("view")
	commits, err := store.Log(c.t.Context(), log)
	require.NoError(c.t, err)
	genesis, err := commitrecord.Encode(commitrecord.Envelope{Cluster: base.ClusterID{1}}, &commitpb.ClusterCreate{Shards: 1, FoldVersion: 1})
	require.NoError(c.t, err)
	_, err = commits.Put(c.t.Context(), genesis)
	require.NoError(c.t, err)
	view, err := shard.OpenView(c.t.Context(), shard.ViewOptions{
		Cluster: base.ClusterID{1}, Log: commits, Reconnects: store.Reconnects, Clock: base.SystemClock{},
		Logger: slog.New(slog.DiscardHandler), Entropy: rand.Reader,
	})
	require.NoError(c.t, err)
	c.t.Cleanup(view.Close)
	return view
}

// Given a cluster at version 1 with an instance that knows 2, and one that knows 1,
// then it stays at 1; when the old one was replaced, then both logs move on, not before
// a full time to live.
func TestTheFoldVersionWaitsForEveryInstance(t *testing.T) {
	c := newCluster(t)
	shards, meta := c.viewOf("s00"), c.viewOf("meta")
	newer := c.leases("new")
	newer.FoldVersion = 2
	defer c.live(folds("new", 2))()
	old := c.live(worker.Instance{ID: "old"})
	run := c.start()
	run(func() {
		newer.Upgrade(c.ctx, []worker.Ledger{shards, meta}, func() uint64 { return 0 })
	})
	for range 100 {
		c.clock.Advance(ttl / 20)
		time.Sleep(time.Millisecond)
	}
	require.EqualValues(t, 1, worker.FoldVersion(shards))

	old()
	replaced := c.clock.Now()
	defer c.live(folds("replacement", 2))()
	c.passUntil(func() bool { return worker.FoldVersion(meta) == 2 }, "it moves on")
	require.EqualValues(t, 2, worker.FoldVersion(shards), "meta is the last")
	require.Greater(t, c.clock.Now().Sub(replaced), ttl)
}

// Given an instance whose connection keeps being made again, then it advances nothing:
// whom it does not see may have had no chance to come back.
func TestNothingIsAdvancedRightAfterAReconnect(t *testing.T) {
	c := newCluster(t)
	view := c.viewOf("s00")
	leases := c.leases("new")
	leases.FoldVersion = 2
	defer c.live(folds("new", 2))()
	run := c.start()
	var reconnects uint64
	run(func() {
		leases.Upgrade(c.ctx, []worker.Ledger{view}, func() uint64 { reconnects++; return reconnects })
	})
	for range 200 {
		c.clock.Advance(ttl / 20)
		time.Sleep(100 * time.Microsecond)
	}
	require.EqualValues(t, 1, worker.FoldVersion(view))
}

// What all fold is what the oldest folds, and just those that fold no more are named.
func TestTheOldestDecides(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		versions := rapid.SliceOfN(rapid.Uint32Range(1, 4), 0, 6).Draw(t, "versions")
		var instances []worker.Instance
		for i, v := range versions {
			instances = append(instances, folds(string(rune('a'+i)), v))
		}
		version, oldest := worker.Supported(instances)
		if len(versions) == 0 {
			require.Zero(t, version)
			return
		}
		require.Contains(t, versions, version)
		named := 0
		for i, v := range versions {
			require.GreaterOrEqual(t, v, version)
			if v == version {
				require.Equal(t, instances[i].ID, oldest[named])
				named++
			}
		}
		require.Len(t, oldest, named)
	})
}
