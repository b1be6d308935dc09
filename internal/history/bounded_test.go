package history_test

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/history"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

var million = flag.Bool("million", false, "commit a million records instead of twenty thousand")

// However many records are committed, the log holds those since the checkpoint
// before the newest, and the object store three checkpoints and the segments that
// belong to them.
func TestWhatCoordinationHoldsIsBoundedHoweverMuchIsCommitted(t *testing.T) {
	commits, every := 20_000, 1000
	if *million {
		commits, every = 1_000_000, 20_000
	}
	w := newWorld(t)
	view := w.view()
	w.create(view, 0, 1)
	c := history.NewCheckpointer(history.CheckpointerOptions{
		Loader: w.loader(), Log: w.log(), View: view, Instance: "me", Clock: w.clock,
		Due: history.Due{Records: uint64(every)}, Interval: time.Second,
	})
	records := [][]byte{
		shardtest.Encode(t, &commitpb.StreamUpdate{Stream: 2, ExpectedVersion: 999, Table: &commitpb.TablePolicy{}}),
		shardtest.Encode(t, &commitpb.StreamCreate{Namespace: "shop", Name: "stream-0", Partitions: 1}),
	}
	var most base.Revision
	for done := 0; done < commits; {
		for range 500 { // fewer than a watch holds
			w.server.Stray(testShard.String(), records[done%len(records)])
			done++
		}
		w.until("the records are folded", func() bool { return int(view.Revision()) == done+2 }) //nolint:gosec // small
		if done%every == 0 {
			w.archive(view)
			made, err := c.RunOnce(t.Context())
			require.NoError(t, err)
			require.True(t, made)
		}
		first, last := w.bounds()
		most = max(most, last-first+1)
	}
	require.LessOrEqual(t, most, base.Revision(3*every))
	stored := w.stored()
	require.Len(t, stored.Checkpoints, 3)
	require.LessOrEqual(t, len(stored.Segments), 10)
	t.Logf("%d commits: at most %d records in the log, %d segments", commits, most, len(stored.Segments))

	rebuilt, err := history.Rebuild(t.Context(), w.objects, shardtest.Cluster, testShard)
	require.NoError(t, err)
	require.Equal(t, hashOf(view), rebuilt.Snapshot.State.Hash())
	require.Equal(t, hashOf(view), hashOf(w.view()))
}
