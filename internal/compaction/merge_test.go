package compaction_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/log"
	"github.com/lakestream-go/lakestream/internal/shard"
)

const mergeTarget = 1 << 20

// small compacts n objects of ten records each of a partition, from the value that
// it ends at on, without merging them.
func (w *world) small(p base.Partition, n int) {
	w.t.Helper()
	for range n {
		w.appendTo(p, int(w.marks(p).head), 10)
		_, err := w.driver().Once(w.t.Context())
		require.NoError(w.t, err)
	}
}

// merging is a driver that merges.
func (w *world) merging(clock base.Clock) *compaction.Driver {
	return w.driverOf(clock, compaction.Due{Age: time.Minute, Bytes: 1 << 20}, mergeTarget)
}

func (w *world) mergePlan(fanIn int) (p compaction.MergePlan) {
	w.view.Inspect(func(s *shard.State) {
		p = compaction.NewMergePlan(s, compaction.MergeLimits{TargetBytes: mergeTarget, FanIn: fanIn})
	})
	return p
}

// newMerge starts a merge under a session of its own.
func (w *world) newMerge(plan compaction.MergePlan) *compaction.Merge {
	session, err := shard.OpenSession(w.t.Context(), w.view, "", rand.Reader)
	require.NoError(w.t, err)
	return compaction.NewMerge(compaction.Env{Ledger: w.view, Session: session, Objects: w.blobs}, plan, w.open(w.fetcher()))
}

func (w *world) finish(m *compaction.Merge) {
	w.t.Helper()
	for done := false; !done; {
		var err error
		done, err = m.Step(w.t.Context())
		require.NoError(w.t, err)
	}
}

// entries returns the index of a partition's log.
func (w *world) entries(p base.Partition) (entries []shard.Entry) {
	w.view.Inspect(func(s *shard.State) {
		l, ok := s.Log(base.LogID{Stream: w.stream, Partition: p})
		require.True(w.t, ok)
		entries = s.Entries(l, 0, l.Len())
	})
	return entries
}

func (w *world) reader(p base.Partition) *log.Reader {
	return log.NewReader(w.fetcher(), log.NewIndex(w.view.Follower), base.LogID{Stream: w.stream, Partition: p})
}

// rows reads a whole log.
func (w *world) rows(p base.Partition) (all []recordbatch.Positioned) {
	w.t.Helper()
	r, head := w.reader(p), w.marks(p).head
	for next := base.Offset(0); next < head; {
		batch, err := r.Read(w.t.Context(), next, log.Limits{})
		require.NoError(w.t, err)
		all = append(all, batch.Records...)
		next = batch.Next
	}
	return all
}

// Given as many small compacted objects as the fan-in, when the driver works, then
// one object takes their place, row by row the same, offsets, times and revisions
// too; the old ones are dead and still there.
func TestManySmallObjectsBecomeOne(t *testing.T) {
	w := newWorld(t)
	w.small(0, compaction.MergeFanIn)
	w.small(1, 3)
	before, old := w.rows(0), w.entries(0)
	require.Len(t, old, compaction.MergeFanIn)
	d := w.merging(base.SystemClock{})
	worked, err := d.Once(t.Context())
	require.NoError(t, err)
	require.True(t, worked)

	require.Len(t, w.entries(0), 1)
	require.Len(t, w.entries(1), 3)
	require.Equal(t, before, w.rows(0))
	require.Equal(t, int64(compaction.MergeFanIn), d.Stats().MergedObjects.Load())
	w.view.Inspect(func(s *shard.State) {
		require.Equal(t, 4, s.Objects())
		dead := make(map[string]bool)
		for _, o := range s.Dead() {
			dead[o.Key] = true
		}
		for i := range old {
			require.True(t, dead[old[i].Key()])
			_, err := w.blobs.Stat(t.Context(), old[i].Key())
			require.NoError(t, err)
		}
	})
	worked, err = d.Once(t.Context())
	require.NoError(t, err)
	require.False(t, worked, "one object is not merged again")
}

// Given a log that passes rewrite many times, then its index stays short.
func TestTheIndexStaysShort(t *testing.T) {
	w := newWorld(t)
	d := w.merging(base.SystemClock{})
	const passes = 40
	for i := range passes {
		w.appendTo(0, 10*i, 10)
		_, err := d.Once(t.Context())
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(w.entries(0)), 2*compaction.MergeFanIn)
	w.requireLog(0, 10*passes)
	require.Equal(t, marks{head: 10 * passes, raw: 10 * passes, prepared: 10 * passes}, w.marks(0))
}

// Given a reader at any place of a log, when compacted objects are merged under it and
// the old ones are deleted, then it goes on without a gap or a duplicate.
//
// Behaviours 36 and 37.
func TestAReaderCrossesAMergeAtEveryBoundary(t *testing.T) {
	const records = 40
	for place := range records + 1 {
		w := newWorld(t)
		w.small(0, 3)
		w.appendTo(0, 30, 10) // raw
		r, next := w.reader(0), base.Offset(0)
		read := func(until int) {
			for next < base.Offset(until) {
				batch, err := r.Read(t.Context(), next, log.Limits{MaxMessages: 1})
				require.NoError(t, err)
				require.Equal(t, next, batch.Records[0].Offset)
				require.Equal(t, string(value(0, int(next))), string(batch.Records[0].Value))
				next = batch.Next
			}
		}
		read(place)
		old := w.entries(0)
		w.finish(w.newMerge(w.mergePlan(2)))
		require.Len(t, w.entries(0), 2)
		for i := range old[:3] {
			require.NoError(t, w.blobs.Delete(t.Context(), old[i].Key()))
		}
		read(records)
	}
}

// Given a table that could not take rows while its log was compacted and merged, when
// it works again, then it gets all of them, from the merged object.
func TestALostPreparedIsDecodedFromTheMergedObject(t *testing.T) {
	w := newWorld(t)
	w.tables.failWith(base.ErrUnavailable)
	w.small(0, compaction.MergeFanIn)
	w.finish(w.newMerge(w.mergePlan(compaction.MergeFanIn)))
	require.Len(t, w.entries(0), 1)
	require.Zero(t, w.marks(0).prepared)
	w.tables.failWith(nil)
	_, err := w.driver().Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, marks{head: 80, raw: 80, prepared: 80}, w.marks(0))
}

// Given two instances that merge the same objects, then one counts and what the other
// wrote is dead; and so it is when the log was compacted further meanwhile.
func TestOfTwoMergesOfOneRangeOneCounts(t *testing.T) {
	w := newWorld(t)
	w.small(0, 4)
	before := w.rows(0)
	first, second := w.newMerge(w.mergePlan(2)), w.newMerge(w.mergePlan(4))
	_, err := second.Step(t.Context())
	require.NoError(t, err)
	w.small(0, 1)
	w.finish(first)
	w.finish(second)
	require.Equal(t, 4, first.Stats().Objects)
	require.Zero(t, second.Stats())
	require.Len(t, w.entries(0), 2)
	require.Equal(t, before, w.rows(0)[:40])
	w.view.Inspect(func(s *shard.State) {
		compacted := 0
		for _, o := range s.Dead() {
			if strings.HasPrefix(o.Key, base.CompactedPrefix) {
				compacted++
			}
		}
		require.Equal(t, 5, compacted, "the four old ones and the loser's")
	})
}

// Given a merge that ends after any of its steps, then the log reads as before, and
// another merge does what is left.
func TestAMergeMayEndAtAnyStep(t *testing.T) {
	for steps := range 4 {
		w := newWorld(t)
		w.small(0, 3)
		w.small(1, 3)
		before := [][]recordbatch.Positioned{w.rows(0), w.rows(1)}
		m := w.newMerge(w.mergePlan(3))
		for range steps {
			_, err := m.Step(t.Context())
			require.NoError(t, err)
		}
		for p := range base.Partition(2) {
			require.Equal(t, before[p], w.rows(p))
		}
		w.finish(w.newMerge(w.mergePlan(3)))
		for p := range base.Partition(2) {
			require.Len(t, w.entries(p), 1)
			require.Equal(t, before[p], w.rows(p))
		}
	}
}

// Given a store that fails once in the middle, when the driver tries again, then
// nothing is missing.
func TestAFailedMergeIsTriedAgain(t *testing.T) {
	for _, op := range []blob.Op{blob.OpReadRange, blob.OpWrite, blob.OpCommit} {
		t.Run(op.String(), func(t *testing.T) {
			w := newWorld(t)
			w.small(0, compaction.MergeFanIn)
			before := w.rows(0)
			failed := false
			w.breakWith(func(c blob.Call) blob.Fault {
				if c.Op != op || failed {
					return blob.Fault{}
				}
				failed = true
				return blob.Fault{Before: base.ErrUnavailable}
			})
			d := w.merging(base.SystemClock{})
			_, err := d.Once(t.Context())
			require.ErrorIs(t, err, base.ErrUnavailable)
			require.ErrorContains(t, err, "merging")
			require.Len(t, w.entries(0), compaction.MergeFanIn)
			_, err = d.Once(t.Context())
			require.NoError(t, err)
			require.Len(t, w.entries(0), 1)
			require.Equal(t, before, w.rows(0))
		})
	}
}

// Given an object that is damaged, then its log is left unmerged for a while, which
// can be seen, and the other log is merged; when it is whole again, so is its log.
func TestADamagedObjectIsLeftUnmergedForAWhile(t *testing.T) {
	w := newWorld(t)
	w.small(0, compaction.MergeFanIn)
	w.small(1, compaction.MergeFanIn)
	bad := w.entries(0)[2].Key()
	w.breakWith(func(c blob.Call) blob.Fault {
		if c.Op == blob.OpReadRange && c.Key == bad {
			return blob.Fault{Damage: blob.FlipBit(3000)}
		}
		return blob.Fault{}
	})
	clock := coordtest.NewClock()
	d := w.merging(clock)
	_, err := d.Once(t.Context())
	require.NoError(t, err)
	require.Len(t, w.entries(0), compaction.MergeFanIn)
	require.Len(t, w.entries(1), 1)
	id := base.LogID{Stream: w.stream}
	require.ErrorIs(t, d.Unmerged()[id].Err, base.ErrCorrupt)
	require.ErrorContains(t, d.Unmerged()[id].Err, bad)

	w.breakWith(nil)
	worked, err := d.Once(t.Context())
	require.NoError(t, err)
	require.False(t, worked, "it is not tried again at once")
	clock.Advance(time.Minute)
	_, err = d.Once(t.Context())
	require.NoError(t, err)
	require.Len(t, w.entries(0), 1)
	require.Empty(t, d.Unmerged())
}

// Given an engine that is draining, then nothing is merged: no table waits for it.
func TestADrainingDriverMergesNothing(t *testing.T) {
	w := newWorld(t)
	w.small(0, compaction.MergeFanIn)
	d := w.merging(base.SystemClock{})
	d.Hurry()
	worked, err := d.Once(t.Context())
	require.NoError(t, err)
	require.False(t, worked)
	require.Len(t, w.entries(0), compaction.MergeFanIn)
}

// Given more to merge than a plan may read at once, then it takes what it may, and at
// least one log's part.
func TestAMergePlanIsBounded(t *testing.T) {
	w := newWorld(t)
	w.small(0, 2)
	w.small(1, 2)
	plan := func(target int64) (p compaction.MergePlan) {
		w.view.Inspect(func(s *shard.State) {
			p = compaction.NewMergePlan(s, compaction.MergeLimits{TargetBytes: target, FanIn: 2})
		})
		return p
	}
	all := plan(mergeTarget)
	require.Len(t, all.Logs, 2)
	require.Equal(t, base.OffsetRange{End: 20}, all.Logs[0].Range)
	require.Len(t, plan(all.Logs[0].Bytes+all.Logs[1].Bytes-1).Logs, 1)
	require.Empty(t, plan(0).Logs)
	w.view.Inspect(func(s *shard.State) {
		p := compaction.NewMergePlan(s, compaction.MergeLimits{
			TargetBytes: mergeTarget, FanIn: 2, Unreadable: map[base.LogID]bool{{Stream: w.stream}: true},
		})
		require.Len(t, p.Logs, 1)
		require.Equal(t, base.Partition(1), p.Logs[0].Log.Partition)
	})
}

// Given small objects, when a driver runs, then it merges them without being asked.
func TestADriverMergesByItself(t *testing.T) {
	w := newWorld(t)
	w.small(0, compaction.MergeFanIn)
	d := w.merging(base.SystemClock{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { d.Run(ctx); close(ended) }()
	require.Eventually(t, func() bool { return len(w.entries(0)) == 1 }, 20*time.Second, time.Millisecond)
	stop()
	<-ended
}
