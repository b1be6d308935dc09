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
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Given raw records of two logs in shared objects, when a pass runs, then each WAL
// object was read once, both logs are compacted and prepared, and read the same.
func TestAPassReadsEachObjectOnceAndLosesNothing(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.appendTo(0, 10*i, 10)
		w.appendTo(1, 10*i, 10)
	}
	worked, err := w.driver().Once(t.Context())
	require.NoError(t, err)
	require.True(t, worked)
	for key, n := range w.reads {
		require.True(t, strings.HasPrefix(key, base.WALPrefix), "the pass read %s", key)
		require.Equal(t, 1, n, "reads of %s", key)
	}
	require.Len(t, w.reads, 10)
	for p := range base.Partition(2) {
		require.Equal(t, marks{head: 50, raw: 50, prepared: 50}, w.marks(p))
		w.requireLog(p, 50)
	}
	worked, err = w.driver().Once(t.Context())
	require.NoError(t, err)
	require.False(t, worked, "nothing is left")
}

// Given a table that cannot take rows, when a pass runs, then the log is compacted
// all the same; and once the table works, it gets what it missed from the compacted
// objects.
func TestATableInTroubleNeverPinsItsLog(t *testing.T) {
	w := newWorld(t)
	w.appendTo(0, 0, 20)
	w.tables.failWith(base.ErrUnavailable)
	d := w.driver()
	_, err := d.Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, marks{head: 20, raw: 20, prepared: 0}, w.marks(0))
	tables, _ := d.Troubles()
	require.ErrorIs(t, tables[w.stream].Err, base.ErrUnavailable)

	w.tables.failWith(nil)
	worked, err := d.Once(t.Context())
	require.NoError(t, err)
	require.False(t, worked, "the table is in quarantine")
	_, err = w.driver().Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, marks{head: 20, raw: 20, prepared: 20}, w.marks(0))
}

// Given an object that is damaged, when passes run, then the log that needs it
// stays as it is and is reported, and the other log is compacted.
func TestADamagedObjectStopsOnlyItsOwnLogs(t *testing.T) {
	w := newWorld(t)
	w.appendTo(0, 0, 10)
	w.appendTo(1, 0, 10)
	var damaged string
	w.breakWith(func(c blob.Call) blob.Fault {
		if c.Op != blob.OpReadRange || (damaged != "" && damaged != c.Key) {
			return blob.Fault{}
		}
		damaged = c.Key
		return blob.Fault{Damage: blob.FlipBit(500)}
	})
	d := w.driver()
	_, err := d.Once(t.Context())
	require.ErrorIs(t, err, base.ErrCorrupt)
	_, logs := d.Troubles()
	require.Len(t, logs, 1)
	_, err = d.Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, marks{head: 10, raw: 0, prepared: 0}, w.marks(0))
	require.Equal(t, marks{head: 10, raw: 10, prepared: 10}, w.marks(1))
	w.breakWith(nil)
	w.requireLog(0, 10)
}

// Given a read that fails once in the middle of a pass, when the pass is tried
// again, then no record is missing (pain 22).
func TestAFailedReadLeavesNoGap(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		w.appendTo(0, 5*i, 5)
	}
	failed := false
	w.breakWith(func(c blob.Call) blob.Fault {
		if c.Op != blob.OpReadRange || failed || !strings.HasSuffix(c.Key, "3.wal") {
			return blob.Fault{}
		}
		failed = true
		return blob.Fault{Before: base.ErrUnavailable}
	})
	d := w.driver()
	_, err := d.Once(t.Context())
	require.ErrorIs(t, err, base.ErrUnavailable)
	_, err = d.Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, marks{head: 20, raw: 20, prepared: 20}, w.marks(0))
	w.requireLog(0, 20)
}

// Given two passes over the same plan, when both publish, then the second one's
// objects are dead, and nothing is compacted or prepared twice (pains 1 and 2).
func TestOfTwoPassesOverOneRangeOneCounts(t *testing.T) {
	w := newWorld(t)
	w.appendTo(0, 0, 30)
	var plan compaction.Plan
	w.view.Inspect(func(s *shard.State) { plan = compaction.NewPlan(s, compaction.Limits{Bytes: 1 << 20}) })
	var passes []*compaction.Pass
	for range 2 {
		session, err := shard.OpenSession(t.Context(), w.view, "", rand.Reader)
		require.NoError(t, err)
		passes = append(passes, compaction.NewPass(compaction.Env{
			Ledger: w.view, Session: session, Objects: w.blobs, Tables: w.tables,
		}, plan))
	}
	for done := 0; done < 2; {
		done = 0
		for _, p := range passes {
			finished, err := p.Step(t.Context())
			require.NoError(t, err)
			if finished {
				done++
			}
		}
	}
	require.Equal(t, marks{head: 30, raw: 30, prepared: 30}, w.marks(0))
	require.Len(t, w.tables.requests, 1, "the loser decodes nothing")
	w.view.Inspect(func(s *shard.State) {
		require.Len(t, s.Dead(), 2, "the WAL object and the loser's compacted object")
	})
	w.requireLog(0, 30)
}

// Given a file of a prepared range that vanished, when the driver is asked to decode
// the range again, then the range names a new file and its verdicts stand.
func TestALostFileIsWrittenAgain(t *testing.T) {
	w := newWorld(t)
	w.appendTo(0, 0, 8)
	d := w.driver()
	_, err := d.Once(t.Context())
	require.NoError(t, err)
	file := func() (path string) {
		w.view.Inspect(func(s *shard.State) {
			l, _ := s.Log(base.LogID{Stream: w.stream})
			require.Len(t, l.Pending(), 1)
			path = l.Pending()[0].GetMain()[0].GetPath()
		})
		return path
	}
	lost := file()
	d.Redecode(base.LogID{Stream: w.stream}, base.OffsetRange{End: 8}, lost)
	_, err = d.Once(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, lost, file())
	worked, err := d.Once(t.Context())
	require.NoError(t, err)
	require.False(t, worked)
}

// Given a driver that waits for the age of a few records, when many more come, then a
// pass is due at once.
func TestSizeMakesAPassDueWhileAnotherIsAwaited(t *testing.T) {
	w := newWorld(t)
	clock := coordtest.NewClock() // far behind the store's, so that no record gets old
	d := w.driverOf(clock, compaction.Due{Age: time.Hour, Bytes: 2000}, 0)
	w.appendTo(0, 0, 1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { d.Run(ctx); close(ended) }()
	pass := func() {
		require.Eventually(t, func() bool { return clock.Timers() > 0 }, 20*time.Second, time.Millisecond, "the driver waits")
		clock.Advance(time.Second)
	}
	pass()
	require.Zero(t, w.marks(0).raw)
	w.appendTo(0, 1, 500)
	pass() // far less than the commit interval, after which any record is due
	require.Eventually(t, func() bool { return w.marks(0).raw == 501 }, 20*time.Second, time.Millisecond)
	stop()
	<-ended
}

// Given a view that has stopped, then the driver ends, and with it its lease: another
// instance may be able to compact.
func TestADriverEndsWithItsView(t *testing.T) {
	w := newWorld(t)
	d := w.driver()
	ended := make(chan struct{})
	go func() { d.Run(t.Context()); close(ended) }()
	w.view.Stop(base.ErrCorrupt)
	<-ended
	d.Run(t.Context())
}
