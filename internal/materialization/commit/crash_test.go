package commit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/materialization/memtables"
)

var crashPoints = []string{
	commit.CrashBeforeDeadLetter, commit.CrashAfterDeadLetter,
	commit.CrashBeforeTable, commit.CrashAfterTable,
	commit.CrashBeforeMaterialized, commit.CrashAfterMaterialized,
}

// crash is what a process that dies at a crash point throws.
type crash struct{ at string }

// stepUntilCrash steps a committer that dies at a point, and reports whether it
// died.
func stepUntilCrash(ctx context.Context, c *commit.Committer) (status commit.Status, died bool) {
	defer func() {
		if thrown := recover(); thrown != nil {
			if _, ours := thrown.(crash); !ours {
				panic(thrown)
			}
			died = true
		}
	}()
	status, _ = c.Step(ctx)
	return status, false
}

func dieAt(point string) func(*commit.Options) {
	return func(o *commit.Options) {
		o.CrashPoint = func(name string) {
			if name == point {
				panic(crash{name})
			}
		}
	}
}

func TestACrashAtEachPointLeavesEachRowOnce(t *testing.T) {
	for _, point := range crashPoints {
		t.Run(point, func(t *testing.T) {
			overEach(t, func(t *testing.T, w *world) {
				for round := range 3 {
					w.prepare(t.Context(), t, 0, 2, round%2+1)
					w.prepare(t.Context(), t, 1, 1, 0)
					c := w.committer(t, dieAt(point))
					died := false
					for range 10 {
						if _, died = stepUntilCrash(t.Context(), c); died {
							break
						}
					}
					require.True(t, died, "the point is passed")
					// The range after the crashed one comes along, too.
					w.prepare(t.Context(), t, 1, 1, 1)
					require.Equal(t, commit.StateRunning, w.settle(t.Context(), t, w.committer(t)).State)
					w.requireExactlyOnce(t.Context(), t)
				}
			})
		})
	}
}

// TestFiftyLostAcknowledgements kills the committer between its table commit and
// the record of it, again and again.
func TestFiftyLostAcknowledgements(t *testing.T) {
	w := memWorld(t.Context(), t)
	for range 50 {
		w.prepare(t.Context(), t, 0, 1, 0)
		c := w.committer(t, dieAt(commit.CrashAfterTable))
		for range 3 {
			if _, died := stepUntilCrash(t.Context(), c); died {
				break
			}
		}
	}
	w.settle(t.Context(), t, w.committer(t))
	w.requireExactlyOnce(t.Context(), t)
	paths := map[string]bool{}
	for _, file := range w.mem.Files(events) {
		require.False(t, paths[file.Path], "file %s is in the table twice", file.Path)
		paths[file.Path] = true
	}
	require.Len(t, paths, 50)
}

// TestAnyFaultsAnyCrashesEachRowOnce lets several committers, as the fold does
// not know which of them is the right one, step over a catalog that fails before
// and after, holds commits back, and lets others commit in between.
func TestAnyFaultsAnyCrashesEachRowOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx := t.Context()
		w := memWorld(ctx, rt)
		committers := []*commit.Committer{w.committer(rt), w.committer(rt)}
		w.mem.SetHook(faults(ctx, rt, w))
		rt.Repeat(map[string]func(*rapid.T){
			"prepare": func(rt *rapid.T) {
				if w.files < 40 {
					w.unfaulted(func() {
						partition := rapid.SampledFrom([]base.Partition{0, 1, 2}).Draw(rt, "partition")
						good := rapid.IntRange(0, 2).Draw(rt, "good")
						w.prepare(ctx, rt, partition, good, rapid.IntRange(0, 1).Draw(rt, "bad")+btoi(good == 0))
					})
				}
			},
			"step": func(rt *rapid.T) {
				i := rapid.IntRange(0, 1).Draw(rt, "who")
				status, died := stepUntilCrash(ctx, committers[i])
				requireNotSuspended(rt, status)
				if died {
					committers[i] = w.committer(rt)
				}
			},
			"restart to die": func(rt *rapid.T) {
				i := rapid.IntRange(0, 1).Draw(rt, "who")
				committers[i] = w.committer(rt, dieAt(rapid.SampledFrom(crashPoints).Draw(rt, "point")))
			},
			"time passes":      func(*rapid.T) { w.clock.advance(commit.DefaultInterval) },
			"held back lands":  func(*rapid.T) { w.mem.DeliverHeld() },
			"snapshots expire": func(rt *rapid.T) { expire(rt, w) },
			"the record fails": func(*rapid.T) { w.fold.before = errNetwork },
			"its reply is lost": func(*rapid.T) {
				w.fold.after = base.WithClass(base.ErrUnknown, errNetwork)
			},
		})
		w.mem.SetHook(nil)
		status := w.settle(ctx, rt, w.committer(rt))
		require.NotEqual(rt, commit.StateSuspended, status.State, status.Reason)
		w.mem.DeliverHeld()
		w.requireExactlyOnce(ctx, rt)
	})
}

func requireNotSuspended(rt *rapid.T, status commit.Status) {
	require.NotEqual(rt, commit.StateSuspended, status.State, status.Reason)
}

// faults draws what happens to each operation, letting most be.
func faults(ctx context.Context, rt *rapid.T, w *world) memtables.Hook {
	return func(op memtables.Op) memtables.Fault {
		switch rapid.IntRange(0, 11).Draw(rt, fmt.Sprintf("fate of %s", op.Kind)) {
		case 0:
			return memtables.Fault{Before: base.WithClass(base.ErrUnavailable, errNetwork)}
		case 1:
			return memtables.Fault{After: base.WithClass(base.ErrUnknown, errNetwork)}
		case 2:
			return memtables.Fault{Before: base.ErrConflict}
		case 3:
			return memtables.Fault{Hold: op.Kind == memtables.OpCommit}
		case 4:
			return memtables.Fault{Meanwhile: func() { w.unfaulted(func() { foreign(ctx, rt, w, op) }) }}
		default:
			return memtables.Fault{}
		}
	}
}

func foreign(ctx context.Context, rt *rapid.T, w *world, op memtables.Op) {
	if op.Kind == memtables.OpCommit {
		require.NoError(rt, w.mem.Append(op.Ident, w.write(ctx, rt, w.load(ctx, rt, op.Ident), nil)...))
	}
}

func expire(rt *rapid.T, w *world) {
	keep := rapid.IntRange(1, 3).Draw(rt, "keep")
	err := w.mem.Expire(events, keep)
	require.True(rt, err == nil || errors.Is(err, base.ErrNotFound))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
