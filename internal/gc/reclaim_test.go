package gc_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/gc"
)

func TestADeadObjectIsDeletedAfterTheGraceAndForgotten(t *testing.T) {
	w := newWorld(t)
	id := w.writer()
	raw := w.append(id, 10, 0)
	compacted := w.compact(id, 0, 0, 10)
	require.Empty(t, w.round(grace-time.Second).Deleted, "a reader may still hold it")
	require.True(t, w.holds(raw))
	require.Equal(t, 1, w.round(time.Second).Dead)
	round := w.round(0)
	require.Equal(t, []string{raw}, round.Deleted)
	require.Zero(t, round.Dead)
	require.Equal(t, []string{compacted}, w.stored())
	require.Empty(t, w.state.Dead())
}

// Whoever starts from a checkpoint believes that what lives in it is there.
func TestWhatACheckpointHoldsLiveIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	id := w.writer()
	raw := w.append(id, 10, 0)
	w.covered = w.state.Revision()
	w.compact(id, 0, 0, 10)
	w.round(2 * grace)
	before := w.state.Revision()
	require.Empty(t, w.round(0).Deleted)
	require.Equal(t, before+1, w.state.Revision(), "a record that changes nothing brings the next checkpoint about")
	w.round(0)
	require.Equal(t, before+1, w.state.Revision(), "once in a while")
	w.covered = w.state.Revision()
	require.Equal(t, []string{raw}, w.round(0).Deleted)
}

// A process that is started anew does not know for how long others have known.
func TestANewCollectorCountsTheGraceAnew(t *testing.T) {
	w := newWorld(t)
	id := w.writer()
	w.append(id, 10, 0)
	w.compact(id, 0, 0, 10)
	w.round(2 * grace)
	w.Collector = w.newCollector()
	require.Empty(t, w.round(grace).Deleted)
	require.Len(t, w.round(0).Deleted, 1)
}

// Behaviour 49. An idle log never blocks the reclaim of others' objects.
func TestAnIdleLogKeepsOnlyTheObjectsThatItLiesIn(t *testing.T) {
	w := newWorld(t)
	id := w.writer()
	shared := w.append(id, 10, 0, 1) // partition 1 is idle from here on
	var rest []string
	for range 20 {
		rest = append(rest, w.append(id, 10, 0))
	}
	w.compact(id, 0, 0, 210)
	w.round(grace)
	require.ElementsMatch(t, rest, w.round(0).Deleted)
	require.True(t, w.holds(shared))
}

// Behaviour 50. An object that two logs share goes with the second drain, once.
func TestTwoDrainsOfOneSharedObject(t *testing.T) {
	w := newWorld(t)
	id := w.writer()
	shared := w.append(id, 10, 0, 1)
	w.compact(id, 0, 0, 10)
	w.round(grace)
	require.Empty(t, w.round(0).Deleted)
	w.compact(id, 1, 0, 10)
	w.round(grace)
	require.Equal(t, []string{shared}, w.round(0).Deleted)
	require.Empty(t, w.round(grace).Deleted)
}

// Behaviour 51. Uploads of a writer that was killed go; those of a live one stay.
func TestOrphansOfAClosedWriterAreDeletedAndThoseOfALiveOneKept(t *testing.T) {
	w := newWorld(t)
	killed, alive := w.writer(), w.writer()
	committed := w.append(killed, 10, 0)
	orphan := w.upload(killed)
	pending := w.upload(alive)
	dead := w.append(killed, 10, 0)
	w.compact(alive, 0, 0, 20)
	require.Empty(t, w.round(time.Hour).Orphans, "both may still publish")
	w.accept(&commitpb.WriterFence{Writers: []uint64{uint64(killed)}})
	w.covered = 0
	require.Equal(t, []string{orphan}, w.round(0).Orphans)
	require.False(t, w.holds(orphan))
	for _, key := range []string{committed, dead, pending} {
		require.True(t, w.holds(key), key)
	}
}

func TestWhatThisSoftwareDidNotNameIsNoOrphan(t *testing.T) {
	w := newWorld(t)
	keys := []string{
		"wal/s03/notes.txt", "wal/s03/0/00000000000000000001.wal", "wal/s04/1/00000000000000000001.wal",
		base.WALKey(testShard, 1<<40, 1), // a writer that this view has not heard of yet
		"warehouse/t/data/f.parquet", "checkpoint/s03/1-1", "compacted/s03/readme",
	}
	for _, key := range keys {
		require.NoError(t, w.objects.Put(t.Context(), key, []byte("x")))
	}
	require.Empty(t, w.round(0).Orphans)
	require.ElementsMatch(t, keys, w.stored())
}

// A stopped view may have missed that an object came alive, and its history need not
// be that of the others: what is dead in it may live in theirs.
func TestAStoppedViewDeletesNothing(t *testing.T) {
	w := newWorld(t)
	id := w.writer()
	raw := w.append(id, 10, 0)
	w.compact(id, 0, 0, 10)
	orphan := w.upload(id)
	w.round(2 * grace)
	w.accept(&commitpb.WriterFence{Writers: []uint64{uint64(id)}})
	w.clock.Advance(2 * time.Hour)
	w.stopped = errors.New("stopped")
	_, err := w.Round(t.Context())
	require.ErrorIs(t, err, w.stopped)
	_, err = w.Sweep(t.Context())
	require.ErrorIs(t, err, w.stopped)
	require.True(t, w.holds(raw))
	require.True(t, w.holds(orphan))
	w.stopped = nil
	round := w.round(0)
	require.Equal(t, []string{raw}, round.Deleted)
	require.Equal(t, []string{orphan}, round.Orphans)
}

func TestADeleteThatFailsIsTriedAgainAndStopsNoOther(t *testing.T) {
	w := newWorld(t)
	id := w.writer()
	for range 3 {
		w.append(id, 10, 0)
	}
	w.compact(id, 0, 0, 30)
	w.round(grace)
	w.failing = 1
	round, err := w.Round(t.Context())
	require.ErrorIs(t, err, base.ErrUnavailable)
	require.Len(t, round.Deleted, 2)
	require.Len(t, w.round(0).Deleted, 1)
}

// A crash between a delete and its record leaves the object on the dead list.
func TestADeleteThatWasNotRecordedIsDoneAgain(t *testing.T) {
	w := newWorld(t)
	id := w.writer()
	raw := w.append(id, 10, 0)
	w.compact(id, 0, 0, 10)
	w.round(grace)
	require.NoError(t, w.objects.Delete(t.Context(), raw))
	require.Equal(t, []string{raw}, w.round(0).Deleted)
	require.Empty(t, w.state.Dead())
}

func TestOrphansAreFoundAcrossPages(t *testing.T) {
	w := newWorld(t)
	id := w.writer()
	for range 1005 {
		w.upload(id)
	}
	w.accept(&commitpb.WriterFence{Writers: []uint64{uint64(id)}})
	n := 0
	require.NoError(t, w.EachOrphan(t.Context(), func(keys []string) error {
		n += len(keys)
		return nil
	}))
	require.Equal(t, 1005, n)
	require.Len(t, w.round(0).Orphans, 1005)
	require.Empty(t, w.stored())
}

// Behaviour 48. Whatever happens, no object that an entry lies in is deleted, and in
// the end nothing is left but what is referenced, what is dead within its grace, and
// uploads of open writers.
func TestNoReferencedObjectIsEverDeleted(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		w.keep.Bytes = 500
		open := []base.WriterID{w.writer(), w.writer()}
		for range rapid.IntRange(10, 60).Draw(r, "steps") {
			id := rapid.SampledFrom(open).Draw(r, "writer")
			switch rapid.IntRange(0, 6).Draw(r, "step") {
			case 0, 1:
				w.append(id, 10, rapid.SampledFrom([][]uint32{{0}, {1}, {0, 1}}).Draw(r, "partitions")...)
			case 2:
				w.upload(id)
			case 3:
				l := w.partition(base.Partition(rapid.Int32Range(0, 1).Draw(r, "compacted")))
				if from := w.state.RawStart(l); from < l.Head() {
					e, _ := w.state.Find(l, from)
					w.compact(id, uint32(l.ID().Partition), uint64(e.Range.Start), uint64(l.Head())) //nolint:gosec // small
				}
			case 4:
				w.accept(&commitpb.WriterFence{Writers: []uint64{uint64(id)}})
				for i := range open {
					if open[i] == id {
						open[i] = w.writer()
					}
				}
			default:
				w.round(time.Duration(rapid.IntRange(0, 100).Draw(r, "minutes")) * time.Minute)
			}
			requireStored(r, w)
		}
		for _, id := range open {
			w.accept(&commitpb.WriterFence{Writers: []uint64{uint64(id)}})
		}
		w.round(2 * time.Hour)
		w.round(2 * time.Hour)
		requireStored(r, w)
		require.Len(r, w.stored(), w.state.Objects(), "nothing is left but what lives")
	})
}

// requireStored checks that the object of each entry is there.
func requireStored(t require.TestingT, w *world) {
	stored := make(map[string]bool)
	for _, key := range w.stored() {
		stored[key] = true
	}
	for _, st := range w.state.Streams() {
		for _, l := range st.Logs {
			for _, e := range w.state.Entries(l, 0, l.Len()) {
				require.True(t, stored[e.Key()], "%s is gone", e.Key())
			}
		}
	}
}

var _ gc.View = (*world)(nil)

func TestARunTellsOfEachRound(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	rounds := make(chan error)
	done := make(chan struct{})
	go func() {
		w.Run(ctx, func(_ gc.Round, err error) { rounds <- err })
		close(done)
	}()
	require.NoError(t, <-rounds)
	require.Eventually(t, func() bool {
		w.clock.Advance(time.Minute)
		select {
		case err := <-rounds:
			return err == nil
		default:
			return false
		}
	}, 20*time.Second, time.Millisecond)
	stop()
	for {
		select {
		case <-rounds: //nolint:errcheck // of a round that was cut short
		case <-done:
			return
		}
	}
}
