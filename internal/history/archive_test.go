package history_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/history"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

func (w *world) rebuild() history.Rebuilt {
	w.t.Helper()
	r, err := history.Rebuild(w.t.Context(), w.objects, shardtest.Cluster, testShard)
	require.NoError(w.t, err)
	return r
}

// requireRebuilds checks that the object store alone gives the state of the view.
func (w *world) requireRebuilds(v *shard.View) {
	w.t.Helper()
	r := w.rebuild()
	require.NotNil(w.t, r.Snapshot.State)
	require.Equal(w.t, v.Revision(), r.Snapshot.State.Revision())
	require.Equal(w.t, hashOf(v), r.Snapshot.State.Hash())
	require.Zero(w.t, r.Gap)
}

func TestTheArchiveAloneGivesTheState(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	require.Nil(t, w.rebuild().Snapshot.State, "nothing is there yet")
	for i := range 5 {
		w.create(view, 10*i, 10)
		w.server.Stray(testShard.String(), nil)
		w.until("the marker is folded", func() bool { return int(view.Revision()) == 11*(i+1)+1 }) //nolint:gosec // small
		w.archive(view)
		w.requireRebuilds(view)
	}
	r := w.rebuild()
	require.Empty(t, r.Checkpoint)
	require.Equal(t, len(w.stored().Segments), r.Segments)
	require.NotZero(t, r.LastRecord)
}

func TestAnIdleShardIsArchivedOnce(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	w.create(view, 0, 10)
	w.archive(view)
	before := w.stored()
	puts := 0
	w.faults = func(call blob.Call) blob.Fault {
		if call.Op == blob.OpCreate {
			puts++
		}
		return blob.Fault{}
	}
	archiver := w.archiver(view)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		archiver.Run(ctx)
	}()
	for range 100 {
		w.clock.Advance(5 * time.Second)
		time.Sleep(100 * time.Microsecond)
	}
	cancel()
	<-ended
	require.Equal(t, before, w.stored())
	require.Zero(t, puts)
}

// Two archivers, one of them unaware that it lost its lease, write the same log
// twice at worst.
func TestTwoArchiversDoNoHarm(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	for _, archiver := range []*history.Archiver{w.archiver(view), w.archiver(view)} {
		ended.Go(func() { archiver.Run(ctx) })
	}
	for i := range 20 {
		w.create(view, 10*i, 10)
		w.clock.Advance(5 * time.Second)
	}
	w.until("everything is archived", func() bool { return w.archived() == view.Revision() })
	cancel()
	ended.Wait()
	w.requireRebuilds(view)
	require.NotContains(t, w.logged.String(), "not archived")
}

func TestWhatTheViewHasAtTheEndIsArchivedToo(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	archiver := w.archiver(view)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		archiver.Run(ctx)
	}()
	w.until("the first record is archived", func() bool { return w.archived() == 1 })
	w.create(view, 0, 10)
	cancel() // long before the next segment is due
	<-ended
	w.requireRebuilds(view)
}

func TestADamagedSegmentIsWrittenAgainFromTheLog(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	for i := range 3 {
		w.create(view, 10*i, 10)
		w.archive(view)
	}
	segments := w.stored().Segments
	w.damage(segments[len(segments)-1].Key)
	r := w.rebuild()
	require.Len(t, r.Damaged, 1)
	require.Equal(t, segments[len(segments)-2].To, r.Snapshot.State.Revision())
	require.NotZero(t, r.Gap)

	w.create(view, 30, 10)
	w.archive(view)
	w.requireRebuilds(view)
	require.Contains(t, w.logged.String(), "cannot be read")
}

func TestAMissingSegmentIsAGap(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	for i := range 3 {
		w.create(view, 10*i, 10)
		w.archive(view)
	}
	segments := w.stored().Segments
	require.NoError(t, w.objects.Delete(t.Context(), segments[1].Key))
	r := w.rebuild()
	require.Equal(t, segments[1].From, r.Gap)
	require.Equal(t, segments[0].To, r.Snapshot.State.Revision())
}

// A log that ends before the archive, or holds another record where that ends, was
// set back: the archive is not touched.
func TestALogThatWasSetBackIsNotArchived(t *testing.T) {
	for name, put := range map[string]int{"shorter": 5, "longer": 40} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			view := w.view()
			w.create(view, 0, 20)
			w.archive(view)
			before := w.stored()

			other := newWorld(t)
			other.objects = w.objects
			again := other.view()
			other.create(again, 100, put)
			ctx, cancel := context.WithCancel(t.Context())
			archiver := other.archiver(again)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				archiver.Run(ctx)
			}()
			other.until("the archiver notices", func() bool { return archiver.Trouble() != nil })
			require.ErrorIs(t, archiver.Trouble(), base.ErrCorrupt)
			cancel()
			<-ended
			require.Equal(t, before, w.stored())
		})
	}
}

// When the log was purged beyond the archive, the archive begins anew: a checkpoint
// reaches its start.
func TestAnArchiveThatFellBehindBeginsAnew(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	w.create(view, 0, 10)
	w.archive(view)
	w.create(view, 10, 20)
	require.NoError(t, w.checkpointer(view).Checkpoint(t.Context()))
	require.NoError(t, w.log().Purge(t.Context(), 25))
	w.create(view, 30, 10)
	w.archive(view)
	w.requireRebuilds(view)
	require.Equal(t, w.pointer().Current.Key, w.rebuild().Checkpoint)
}

func TestRebuildingGoesOnPastDamagedCheckpoints(t *testing.T) {
	w := newWorld(t)
	view := w.view()
	for i := range 4 {
		w.create(view, 10*i, 10)
		w.archive(view)
		require.NoError(t, w.checkpointer(view).Checkpoint(t.Context()))
	}
	w.create(view, 40, 10)
	w.archive(view)
	checkpoints := w.stored().Checkpoints
	for i := len(checkpoints) - 1; i > 0; i-- {
		w.damage(checkpoints[i].Key)
		w.requireRebuilds(view)
		require.Equal(t, checkpoints[i-1].Key, w.rebuild().Checkpoint)
	}
}
