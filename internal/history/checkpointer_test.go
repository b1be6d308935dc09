package history_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/history"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

func TestCheckpointsShortenTheLogAndViewsStartAtThem(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	c := w.checkpointer(view)
	w.create(view, 0, 20)
	require.NoError(t, c.Checkpoint(t.Context()))
	require.Nil(t, w.pointer().Previous)
	first, _ := w.bounds()
	require.EqualValues(t, 1, first, "the first checkpoint has none before it")

	w.create(view, 20, 20)
	w.archive(view)
	require.NoError(t, c.Checkpoint(t.Context()))
	p := w.pointer()
	require.EqualValues(t, 41, p.Current.Revision)
	require.EqualValues(t, 21, p.Previous.Revision)
	first, last := w.bounds()
	require.EqualValues(t, 21, first)
	require.EqualValues(t, 41, last)

	w.create(view, 40, 5)
	other := w.view()
	require.Equal(t, hashOf(view), hashOf(other))
	require.EqualValues(t, 41, other.Jumped(), "it folded the tail only")
	covered, err := w.loader().Covered(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 21, covered)
}

func TestTheThirdCheckpointIsKeptAndOlderOnesGo(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	c := w.checkpointer(view)
	for i := range 6 {
		w.create(view, 10*i, 10)
		w.archive(view)
		require.NoError(t, c.Checkpoint(t.Context()))
		stored := w.stored()
		require.Len(t, stored.Checkpoints, min(i+1, 3))
		require.LessOrEqual(t, len(stored.Segments), 4)
	}
	require.Len(t, w.stored().Checkpoints, 3)
	rebuilt, err := history.Rebuild(t.Context(), w.objects, view.Snapshot().State.Cluster(), testShard)
	require.NoError(t, err)
	require.Equal(t, hashOf(view), rebuilt.Snapshot.State.Hash())
}

func TestADamagedCheckpointIsToldOfAndTheOneBeforeItTaken(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	c := w.checkpointer(view)
	for i := range 2 {
		w.create(view, 10*i, 10)
		w.archive(view)
		require.NoError(t, c.Checkpoint(t.Context()))
	}
	w.damage(w.pointer().Current.Key)
	other := w.view()
	require.Equal(t, hashOf(view), hashOf(other))
	require.Equal(t, w.pointer().Previous.Revision, other.Jumped())
	require.Contains(t, w.logged.String(), "cannot be read")

	w.create(view, 20, 10)
	whole := *w.pointer().Previous
	require.NoError(t, c.Checkpoint(t.Context()), "the next checkpoint is folded from what is whole")
	require.Equal(t, whole, *w.pointer().Previous, "and that stays the one before it")
	w.damage(w.pointer().Current.Key)
	w.damage(w.pointer().Previous.Key)
	_, err := w.loader().Load(t.Context())
	require.ErrorIs(t, err, base.ErrCorrupt)
}

// Nothing is purged before there are two checkpoints, so that the log makes up for
// the first one.
func TestADamagedFirstCheckpointKeepsNobodyFromStarting(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	c := w.checkpointer(view)
	w.create(view, 0, 10)
	w.archive(view)
	require.NoError(t, c.Checkpoint(t.Context()))
	first := w.pointer().Current
	w.damage(first.Key)
	other := w.view()
	require.Equal(t, hashOf(view), hashOf(other))
	require.Zero(t, other.Jumped())
	require.Contains(t, w.logged.String(), "the only checkpoint cannot be read")

	w.create(view, 10, 10)
	w.archive(view)
	require.NoError(t, c.Checkpoint(t.Context()), "the next one is folded from the log alone")
	require.Nil(t, w.pointer().Previous, "the damaged one is not relied on")
	begin, _ := w.bounds()
	require.EqualValues(t, 1, begin, "so nothing is purged for its sake")
	require.Equal(t, w.pointer().Current.Revision, w.view().Jumped())
}

// A log that begins later, as after a recovery, does not make up for it.
func TestADamagedOnlyCheckpointOfALogThatBeginsLaterStopsAView(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	w.create(view, 0, 10)
	require.NoError(t, w.checkpointer(view).Checkpoint(t.Context()))
	require.NoError(t, w.log().Purge(t.Context(), view.Revision()))
	w.damage(w.pointer().Current.Key)
	_, err := shard.OpenView(t.Context(), shard.ViewOptions{
		Cluster: shardtest.Cluster, Shard: testShard, Log: w.log(), Checkpoints: w.loader(), Reconnects: w.coord.Reconnects,
		Clock: w.clock, Logger: slog.New(slog.DiscardHandler), Entropy: rand.Reader,
	})
	require.ErrorIs(t, err, base.ErrCorrupt)
}

// A state that differs from what the log folds to, for whatever reason, is not what
// others would start from.
func TestAStateThatTheLogDoesNotFoldToIsNeverNamed(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	w.create(view, 0, 10)
	require.NoError(t, w.checkpointer(view).Checkpoint(t.Context()))
	before := w.pointer()
	strayed := held{view, view.Snapshot()}
	_, err := strayed.sn.State.Apply(12, 0, []byte("not what the log holds"))
	require.NoError(t, err)
	w.create(view, 10, 1)
	require.ErrorIs(t, w.checkpointer(strayed).Checkpoint(t.Context()), base.ErrCorrupt)
	require.Equal(t, before, w.pointer())
	require.Len(t, w.stored().Checkpoints, 1)
}

func TestThePointerOnlyMovesForward(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	w.create(view, 0, 10)
	behind := held{view, view.Snapshot()}
	w.create(view, 10, 10)
	require.NoError(t, w.checkpointer(view).Checkpoint(t.Context()))
	before := w.pointer()
	require.NoError(t, w.checkpointer(behind).Checkpoint(t.Context()), "one that comes too late is no error")
	require.Equal(t, before, w.pointer())
	require.NoError(t, w.checkpointer(view).Checkpoint(t.Context()), "nor is the same again")
	require.Equal(t, before, w.pointer())
}

// held is a view that shows an old snapshot.
type held struct {
	*shard.View
	sn shard.Snapshot
}

func (h held) Snapshot() shard.Snapshot {
	return shard.Snapshot{State: h.sn.State.Clone(), Record: h.sn.Record}
}

// However a checkpoint is cut short, the one before it stands, and the next attempt
// finds its way.
func TestACheckpointThatIsCutShortChangesNothing(t *testing.T) {
	for _, op := range []blob.Op{blob.OpCreate, blob.OpCommit, blob.OpList, blob.OpStat, blob.OpReadRange} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(op, after), func(t *testing.T) {
				w := newWorld(t)
				view := w.view()
				c := w.checkpointer(view)
				w.create(view, 0, 10)
				require.NoError(t, c.Checkpoint(t.Context()))
				w.create(view, 10, 10)
				w.archive(view)
				w.faults = func(call blob.Call) blob.Fault {
					switch {
					case call.Op != op:
						return blob.Fault{}
					case after:
						return blob.Fault{After: base.ErrUnknown}
					}
					return blob.Fault{Before: base.ErrUnavailable}
				}
				_ = c.Checkpoint(t.Context())
				w.faults = nil
				require.Equal(t, hashOf(view), hashOf(w.view()))
				w.create(view, 20, 1)
				w.archive(view)
				require.NoError(t, c.Checkpoint(t.Context()))
				require.Equal(t, view.Revision(), w.pointer().Current.Revision)
				require.Equal(t, hashOf(view), hashOf(w.view()))
			})
		}
	}
}

func TestCheckpointsAreMadeWhenTheyAreDueAndTroubleIsToldOnce(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	c := w.checkpointer(view)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	w.create(view, 0, 98) // and the ClusterCreate record
	made, err := c.RunOnce(t.Context())
	require.NoError(t, err)
	require.False(t, made)
	w.create(view, 98, 1)
	w.until("a checkpoint is made", func() bool { return w.pointer() != nil })
	w.clock.Advance(time.Minute)
	require.NoError(t, c.Trouble())
	cancel()
	<-ended
	w.create(view, 99, 1)
}
