package commit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/materialization/memtables"
)

var errNetwork = errors.New("connection reset")

func TestPreparedRangesOfAllPartitionsBecomeOneSnapshot(t *testing.T) {
	overEach(t, func(t *testing.T, w *world) {
		w.prepare(t.Context(), t, 0, 3, 0)
		w.prepare(t.Context(), t, 0, 2, 0)
		w.prepare(t.Context(), t, 3, 4, 0)
		status := w.settle(t.Context(), t, w.committer(t))
		require.Equal(t, commit.StateRunning, status.State)
		w.requireExactlyOnce(t.Context(), t)
		main := w.load(t.Context(), t, events)
		require.Len(t, main.CommitIDs, 1)
		require.Equal(t, "0:5,3:4", main.Properties[materialization.PropertyEndOffsets])
		require.Equal(t, main.CommitIDs[0], w.fold.view.Main.CommitID)
		require.Equal(t, main.Head, w.fold.view.Main.SnapshotID)
		require.Zero(t, w.load(t.Context(), t, letters).Head, "without dead letters their table is left alone")
	})
}

func TestDeadLettersAreCommittedBeforeTheRowsTheyCameWith(t *testing.T) {
	overEach(t, func(t *testing.T, w *world) {
		w.prepare(t.Context(), t, 0, 2, 1)
		w.prepare(t.Context(), t, 1, 2, 0)
		c := w.committer(t)
		_, err := c.Step(t.Context())
		require.NoError(t, err)
		require.NotZero(t, w.load(t.Context(), t, letters).Head)
		require.Zero(t, w.load(t.Context(), t, events).Head, "one effect a step")
		w.settle(t.Context(), t, c)
		w.requireExactlyOnce(t.Context(), t)
		require.Equal(t, "0:3", w.load(t.Context(), t, letters).Properties[materialization.PropertyEndOffsets])
		require.NotEmpty(t, w.fold.view.DeadLetter.CommitID)
	})
}

func TestARangeWithoutRowsStillTravelsInASnapshot(t *testing.T) {
	overEach(t, func(t *testing.T, w *world) {
		w.prepare(t.Context(), t, 0, 2, 0)
		w.settle(t.Context(), t, w.committer(t))
		before := w.load(t.Context(), t, events)
		w.heads[0] = 5
		w.accept(commit.Range{Prepared: materialization.Prepared{
			Log: base.LogID{Stream: 7}, Range: base.OffsetRange{Start: 2, End: 5}, TableUUID: before.UUID, Filtered: 3,
		}})
		w.settle(t.Context(), t, w.committer(t))
		after := w.load(t.Context(), t, events)
		require.NotEqual(t, before.Head, after.Head)
		require.Equal(t, "0:5", after.Properties[materialization.PropertyEndOffsets])
		require.Equal(t, base.Offset(5), w.fold.view.Logs[0].Materialized)
	})
}

func TestARestartAfterALandedCommitWritesNothing(t *testing.T) {
	overEach(t, func(t *testing.T, w *world) {
		w.prepare(t.Context(), t, 0, 3, 1)
		w.fold.before = errNetwork
		c := w.committer(t)
		for range 3 { // dead letters, rows, then the record that is lost
			_, _ = c.Step(t.Context())
		}
		head := w.load(t.Context(), t, events).Head
		require.NotZero(t, head)
		require.Zero(t, w.fold.published)

		w.settle(t.Context(), t, w.committer(t))
		require.Equal(t, head, w.load(t.Context(), t, events).Head)
		require.Len(t, w.load(t.Context(), t, letters).CommitIDs, 1)
		require.Equal(t, 1, w.fold.published)
		w.requireExactlyOnce(t.Context(), t)
	})
}

func TestCommitsKeepTheirInterval(t *testing.T) {
	w := memWorld(t.Context(), t)
	c := w.committer(t)
	w.prepare(t.Context(), t, 0, 1, 0)
	w.settle(t.Context(), t, c)
	w.prepare(t.Context(), t, 0, 1, 0)
	w.prepare(t.Context(), t, 1, 1, 0)
	status, err := c.Step(t.Context())
	require.NoError(t, err)
	require.Equal(t, commit.DefaultInterval, status.Delay)
	require.Len(t, w.load(t.Context(), t, events).CommitIDs, 1)
	w.clock.advance(status.Delay)
	w.settle(t.Context(), t, c)
	require.Len(t, w.load(t.Context(), t, events).CommitIDs, 2)
	w.requireExactlyOnce(t.Context(), t)
}

func TestFlushDoesNotWaitForTheInterval(t *testing.T) {
	w := memWorld(t.Context(), t)
	c := w.committer(t)
	for range 2 {
		w.prepare(t.Context(), t, 0, 1, 0)
		c.Flush()
		for range 3 {
			_, err := c.Step(t.Context())
			require.NoError(t, err)
		}
		w.requireExactlyOnce(t.Context(), t)
	}
	require.Equal(t, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), w.clock.Now())
}

func TestABacklogIsCommittedInBoundedGroupsWithoutWaiting(t *testing.T) {
	w := memWorld(t.Context(), t)
	for range 10 {
		w.prepare(t.Context(), t, 0, 1, 0)
	}
	c := w.committer(t, func(o *commit.Options) { o.MaxFiles = 4 })
	for range 7 {
		_, err := c.Step(t.Context())
		require.NoError(t, err)
	}
	require.Len(t, w.load(t.Context(), t, events).CommitIDs, 2, "full groups are due at once; the rest is not")
	w.settle(t.Context(), t, c)
	require.Len(t, w.load(t.Context(), t, events).CommitIDs, 3)
	w.requireExactlyOnce(t.Context(), t)
}

func TestACatalogThatAppliesAndThenFailsDoublesNothing(t *testing.T) {
	w := memWorld(t.Context(), t)
	w.prepare(t.Context(), t, 0, 3, 2)
	fail := 2
	w.mem.SetHook(func(op memtables.Op) memtables.Fault {
		if op.Kind == memtables.OpCommit && fail > 0 {
			fail--
			return memtables.Fault{After: base.WithClass(base.ErrUnknown, errNetwork)}
		}
		return memtables.Fault{}
	})
	c := w.committer(t)
	status, err := c.Step(t.Context())
	require.ErrorIs(t, err, base.ErrUnknown)
	require.Equal(t, commit.StateDegraded, status.State)
	require.Equal(t, commit.DefaultRetry, status.Delay)
	require.Contains(t, status.Reason, errNetwork.Error())
	w.settle(t.Context(), t, c)
	require.Len(t, w.load(t.Context(), t, events).CommitIDs, 1)
	require.Len(t, w.load(t.Context(), t, letters).CommitIDs, 1)
	w.requireExactlyOnce(t.Context(), t)
}

func TestACommitThatArrivesAfterItsSuccessorIsRefused(t *testing.T) {
	w := memWorld(t.Context(), t)
	w.prepare(t.Context(), t, 0, 3, 0)
	held := false
	w.mem.SetHook(func(op memtables.Op) memtables.Fault {
		hold := op.Kind == memtables.OpCommit && !held
		held = held || hold
		return memtables.Fault{Hold: hold}
	})
	_, err := w.committer(t).Step(t.Context())
	require.ErrorIs(t, err, base.ErrUnknown)
	// The process restarts while its first request is still on its way.
	w.settle(t.Context(), t, w.committer(t))
	require.Zero(t, w.mem.DeliverHeld())
	w.requireExactlyOnce(t.Context(), t)
}

func TestACommitThatArrivesBeforeItsSuccessorIsNotRepeated(t *testing.T) {
	w := memWorld(t.Context(), t)
	w.prepare(t.Context(), t, 0, 3, 0)
	calls := 0
	w.mem.SetHook(func(op memtables.Op) memtables.Fault {
		if op.Kind != memtables.OpCommit {
			return memtables.Fault{}
		}
		calls++
		return memtables.Fault{Hold: calls == 1, Meanwhile: func() {
			if calls == 2 {
				require.Equal(t, 1, w.mem.DeliverHeld())
			}
		}}
	})
	w.settle(t.Context(), t, w.committer(t))
	require.Equal(t, 2, calls)
	require.Len(t, w.load(t.Context(), t, events).CommitIDs, 1)
	w.requireExactlyOnce(t.Context(), t)
}

func TestTwoCommittersAtOnceMakeOneSnapshotARange(t *testing.T) {
	w := memWorld(t.Context(), t)
	first, second := w.committer(t), w.committer(t)
	paused := false
	w.mem.SetHook(func(op memtables.Op) memtables.Fault {
		if op.Kind != memtables.OpCommit || paused {
			return memtables.Fault{}
		}
		paused = true
		// The first is stopped between its checks and its commit for so long
		// that the second does the work.
		return memtables.Fault{Meanwhile: func() { w.settle(t.Context(), t, second) }}
	})
	w.prepare(t.Context(), t, 0, 3, 0)
	_, err := first.Step(t.Context())
	require.ErrorIs(t, err, base.ErrConflict)
	w.settle(t.Context(), t, first)
	require.Len(t, w.load(t.Context(), t, events).CommitIDs, 1)
	w.requireExactlyOnce(t.Context(), t)
}

func TestADemotedCommitterCommitsNothing(t *testing.T) {
	w := memWorld(t.Context(), t)
	w.prepare(t.Context(), t, 0, 3, 0)
	asked, held := 0, 1
	c := w.committer(t, func(o *commit.Options) {
		o.Held = func() bool { asked++; return asked <= held }
	})
	for range 2 { // demoted between its checks and its effect, then before
		status, err := c.Step(t.Context())
		require.NoError(t, err)
		require.Equal(t, commit.StatePending, status.State)
	}
	require.Zero(t, w.load(t.Context(), t, events).Head)
	held = 1000
	w.settle(t.Context(), t, c)
	w.requireExactlyOnce(t.Context(), t)
}

func TestFailuresBackOffAndHeal(t *testing.T) {
	w := memWorld(t.Context(), t)
	w.prepare(t.Context(), t, 0, 1, 0)
	down := true
	w.mem.SetHook(func(memtables.Op) memtables.Fault {
		if down {
			return memtables.Fault{Before: base.WithClass(base.ErrUnavailable, errNetwork)}
		}
		return memtables.Fault{}
	})
	c := w.committer(t)
	var delays []time.Duration
	for range 8 {
		status, err := c.Step(t.Context())
		require.ErrorIs(t, err, base.ErrUnavailable)
		require.NotEmpty(t, status.NextAction)
		delays = append(delays, status.Delay)
		again, err := c.Step(t.Context())
		require.NoError(t, err, "no attempt is made before its time")
		require.Equal(t, commit.StateDegraded, again.State)
		w.clock.advance(status.Delay)
	}
	require.Equal(t, []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}, seconds(delays))
	down = false
	require.Equal(t, commit.StateRunning, w.settle(t.Context(), t, c).State)
	w.requireExactlyOnce(t.Context(), t)
}

func seconds(delays []time.Duration) []time.Duration {
	for i := range delays {
		delays[i] /= time.Second
	}
	return delays
}

func TestMissingFilesAreReportedAndTheRestIsCommitted(t *testing.T) {
	for name, age := range map[string]time.Duration{"old ones are looked for": 2 * time.Hour, "young ones fail the commit": 0} {
		t.Run(name, func(t *testing.T) {
			overEach(t, func(t *testing.T, w *world) {
				kept := w.prepare(t.Context(), t, 0, 2, 0)
				lost := w.prepare(t.Context(), t, 0, 2, 0)
				w.prepare(t.Context(), t, 1, 2, 0)
				require.NoError(t, w.catalog.RemoveFile(t.Context(), lost.Main[0].Path))
				w.clock.advance(age)
				c := w.committer(t)
				var missing []commit.MissingFile
				for range 6 {
					status, _ := c.Step(t.Context())
					missing = append(missing, status.Missing...)
					w.clock.advance(status.Delay)
				}
				require.NotEmpty(t, missing)
				require.Equal(t, commit.MissingFile{Log: lost.Log, Range: lost.Range, Path: lost.Main[0].Path}, missing[0])
				require.Equal(t, fmt.Sprintf("0:%d,1:2", kept.Range.End), w.load(t.Context(), t, events).Properties[materialization.PropertyEndOffsets])
				status, err := c.Step(t.Context())
				require.NoError(t, err)
				require.Equal(t, commit.StateDegraded, status.State, "what is left cannot be committed")
				require.NotEmpty(t, status.Missing)
			})
		})
	}
}

func TestAForeignCommitInBetweenIsKept(t *testing.T) {
	overEach(t, func(t *testing.T, w *world) {
		w.prepare(t.Context(), t, 0, 2, 0)
		w.settle(t.Context(), t, w.committer(t))
		theirs := w.write(t.Context(), t, w.load(t.Context(), t, events), nil)
		require.NoError(t, w.admin.Append(events, theirs...))
		w.prepare(t.Context(), t, 0, 2, 0)
		require.Equal(t, commit.StateRunning, w.settle(t.Context(), t, w.committer(t)).State)
		w.requireExactlyOnce(t.Context(), t)
	})
}

func TestAnExpiredHistoryIsNoRollback(t *testing.T) {
	w := memWorld(t.Context(), t)
	for range 5 {
		w.prepare(t.Context(), t, 0, 1, 0)
		w.settle(t.Context(), t, w.committer(t))
	}
	theirs := w.write(t.Context(), t, w.load(t.Context(), t, events), nil)
	require.NoError(t, w.mem.Append(events, theirs...))
	require.NoError(t, w.mem.Expire(events, 1))
	require.Empty(t, w.load(t.Context(), t, events).CommitIDs)
	w.prepare(t.Context(), t, 0, 1, 0)
	require.Equal(t, commit.StateRunning, w.settle(t.Context(), t, w.committer(t)).State)
	w.requireExactlyOnce(t.Context(), t)
}

func TestRunDrivesUntilItsContextEnds(t *testing.T) {
	w := memWorld(t.Context(), t)
	w.prepare(t.Context(), t, 0, 2, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := w.committer(t, func(o *commit.Options) {
		o.OnStatus = func(status commit.Status, err error) {
			require.NoError(t, err)
			if status.Pending == 0 {
				stop()
			}
		}
	})
	require.ErrorIs(t, c.Run(ctx), context.Canceled)
	w.requireExactlyOnce(t.Context(), t)
}

func TestOptionsAreChecked(t *testing.T) {
	for name, options := range map[string]commit.Options{
		"nothing given":   {},
		"no tables named": {Tables: memtables.New(), Source: &fold{}, Clock: &clock{}, Entropy: strings.NewReader("")},
		"one table for both": {
			Tables: memtables.New(), Source: &fold{}, Clock: &clock{}, Entropy: strings.NewReader(""), Table: events, DeadLetter: events,
		},
		"a negative interval": {
			Tables: memtables.New(), Source: &fold{}, Clock: &clock{}, Entropy: strings.NewReader(""), Table: events, DeadLetter: letters, Interval: -1,
		},
	} {
		_, err := commit.New(options)
		require.ErrorIs(t, err, base.ErrInvalid, name)
	}
}
