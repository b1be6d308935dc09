package sim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/format/walobject"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// mutant is a deliberate defect. The zero value is the engine as it is.
type mutant struct {
	// outcome changes what the fold decides.
	outcome func(*shard.Outcome)
	// entries changes the index that the fold makes of a log.
	entries func([]shard.Entry) []shard.Entry
	// deliver changes what one view is shown.
	deliver func(*instance, *coord.Entry)
	// lostReply acts when the reply to an append was lost.
	lostReply func(*appender, *commitpb.Append)
	// env changes what a pass works with.
	env func(*instance, *compaction.Env)
	// commit changes what a committer works with.
	commit func(*commit.Options)
	// step acts between steps.
	step func(*world)
}

func noDefect() mutant { return mutant{} }

func (m *mutant) fold(out *shard.Outcome) {
	if m.outcome != nil {
		m.outcome(out)
	}
}

// mutants are defects that the oracle must find, and the invariant that each
// breaks first or an equal one.
var mutants = []struct {
	name   string
	breaks []string
	make   func() mutant
}{
	{"the fold gives an offset again", []string{"invariant 2"}, reusesOffset},
	{"the fold lets a closed writer append", []string{"invariant 1", "invariant 3"}, ignoresFence},
	{"the fold accepts a compaction that overlaps another", []string{"invariant 4", "invariant 5"}, overlapsCompaction},
	{"a view folds with a clock of its own", []string{"invariant 7"}, ownClock},
	{"a writer puts a record again under a new seq after a lost reply", []string{"invariant 1", "invariant 9"}, newSeq},
	{"a writer moves to another identity without a fence", []string{"invariant 1"}, movesUnfenced},
	{"a collector deletes what is not committed yet", []string{"invariant 4"}, deletesUncommitted},
	{"a pass forgets the files of a range", []string{"invariant 6"}, forgetsFiles},
	{"a committer says that it committed before it does", []string{"invariant 6"}, publishesEarly},
	{"a committer uses a transaction again after an error", []string{"invariant 6"}, repeatsTransaction},
	{"a commit leaves its progress out", []string{"invariant 6"}, dropsProgress},
}

// mutantSeeds is within how many seeds each defect must be found.
const mutantSeeds = 100

func TestEachDefectIsFound(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			for seed := range uint64(mutantSeeds) {
				r := runSeed(t.Context(), 1+seed, 300, nil, m.make())
				if r.broken == nil {
					continue
				}
				require.Contains(t, m.breaks, invariantOf(r.broken), "%v\n%s", r.broken, r.tail)
				t.Logf("seed %d: %v", r.seed, r.broken)
				return
			}
			require.FailNow(t, "not found", "in %d seeds", mutantSeeds)
		})
	}
}

func reusesOffset() mutant {
	return mutant{outcome: func(out *shard.Outcome) {
		for n := range out.Logs {
			if out.Kind == commitrecord.KindAppend && out.Logs[n].Base > 0 {
				out.Logs[n].Base--
			}
		}
	}}
}

func ignoresFence() mutant {
	return mutant{outcome: func(out *shard.Outcome) {
		if out.Kind == commitrecord.KindAppend && out.Rejected == shard.WriterClosed {
			out.Rejected = shard.Accepted
		}
	}}
}

func overlapsCompaction() mutant {
	overlapping := make(map[base.LogID]base.OffsetRange)
	return mutant{
		outcome: func(out *shard.Outcome) {
			for n := range out.Logs {
				l := &out.Logs[n]
				if out.Kind == commitrecord.KindCompact && (l.Rejected == shard.NotAligned || l.Rejected == shard.TooNew) {
					l.Rejected = shard.Accepted
					overlapping[l.Log] = base.OffsetRange{Start: l.Base, End: l.Base + base.Offset(l.Records)}
				}
			}
		},
		entries: func(entries []shard.Entry) []shard.Entry {
			if len(entries) == 0 {
				return entries
			}
			r, ok := overlapping[entries[0].Log]
			if !ok {
				return entries
			}
			at, _ := slices.BinarySearchFunc(entries, r.Start, func(e shard.Entry, start base.Offset) int { return int(e.Range.Start - start) })
			added := entries[0]
			added.Range, added.Storage = r, shard.Compacted
			return slices.Insert(entries, at, added)
		},
	}
}

func ownClock() mutant {
	return mutant{deliver: func(i *instance, e *coord.Entry) {
		if i.number == 1 {
			e.Time++
		}
	}}
}

func newSeq() mutant {
	return mutant{lostReply: func(a *appender, record *commitpb.Append) {
		w := a.instance.world
		again := proto.CloneOf(record)
		again.Seq++
		writer := base.WriterID(record.GetWriter())
		key := base.WALKey(theShard, writer, base.Seq(record.GetSeq()))
		data, err := w.store.ReadRange(w.ctx, key, 0, int64(record.GetSize()), nil) //nolint:gosec // small
		if err != nil {
			return
		}
		walobject.Restamp(data, walobject.Header{Cluster: cluster, Shard: theShard, Writer: writer, Seq: base.Seq(again.GetSeq())})
		_ = w.store.Put(w.ctx, base.WALKey(theShard, writer, base.Seq(again.GetSeq())), data)
		if encoded, err := a.instance.encode(commitrecord.RequestID{}, again); err == nil {
			w.append(encoded)
		}
	}}
}

func movesUnfenced() mutant {
	return mutant{lostReply: func(a *appender, record *commitpb.Append) {
		a.core.WriterClosed(base.WriterID(record.GetWriter()))
		a.take()
	}}
}

func deletesUncommitted() mutant {
	return mutant{step: func(w *world) {
		live := make(map[string]bool)
		for _, st := range w.oracle.state.Streams() {
			for _, l := range st.Logs {
				for _, e := range w.oracle.state.Entries(l, 0, maxEntries) {
					live[e.Key()] = true
				}
			}
		}
		found, err := w.store.List(w.ctx, base.WALPrefix, "", 100)
		if err != nil || w.rng.IntN(20) > 0 {
			return
		}
		for _, o := range found {
			if !live[o.Key] {
				_ = w.store.Delete(w.ctx, o.Key)
			}
		}
	}}
}

// forgetful prepares ranges and leaves out what it made of them.
type forgetful struct{ compaction.Materializer }

func (f forgetful) Prepare(ctx context.Context, r compaction.TableRequest) ([]materialization.Prepared, error) {
	prepared, err := f.Materializer.Prepare(ctx, r)
	for n := range prepared {
		prepared[n].Main = nil
	}
	return prepared, err
}

func forgetsFiles() mutant {
	return mutant{env: func(_ *instance, env *compaction.Env) { env.Tables = forgetful{env.Tables} }}
}

// commitsAs is a catalog whose commits go another way.
type commitsAs struct {
	materialization.Tables
	commit func(context.Context, *materialization.Table, materialization.Update) (*materialization.Table, error)
}

func (c commitsAs) Commit(ctx context.Context, t *materialization.Table, u materialization.Update) (*materialization.Table, error) {
	return c.commit(ctx, t, u)
}

func publishesEarly() mutant {
	return mutant{commit: func(o *commit.Options) {
		tables := o.Tables
		o.Tables = commitsAs{tables, func(ctx context.Context, t *materialization.Table, u materialization.Update) (*materialization.Table, error) {
			ends, err := materialization.ParseEndOffsets(u.Properties[materialization.PropertyEndOffsets])
			if err == nil && u.Properties[materialization.PropertyRole] == commit.RoleMain {
				mark := commit.Mark{TableUUID: t.UUID, SnapshotID: t.Head + 1, CommitID: u.Properties[materialization.PropertyCommitID]}
				err = o.Source.Publish(ctx, commit.Materialized{Main: mark, Ends: ends})
			}
			if err != nil {
				return nil, err
			}
			return tables.Commit(ctx, t, u)
		}}
	}}
}

func repeatsTransaction() mutant {
	return mutant{commit: func(o *commit.Options) {
		tables := o.Tables
		o.Tables = commitsAs{tables, func(ctx context.Context, t *materialization.Table, u materialization.Update) (*materialization.Table, error) {
			committed, err := tables.Commit(ctx, t, u)
			if !errors.Is(err, base.ErrConflict) && !errors.Is(err, base.ErrUnknown) {
				return committed, err
			}
			again, loadErr := tables.Load(ctx, t.Ident)
			if loadErr != nil {
				return nil, err
			}
			return tables.Commit(ctx, again, u)
		}}
	}}
}

func dropsProgress() mutant {
	return mutant{commit: func(o *commit.Options) {
		tables := o.Tables
		o.Tables = commitsAs{tables, func(ctx context.Context, t *materialization.Table, u materialization.Update) (*materialization.Table, error) {
			u.Properties = maps.Clone(u.Properties)
			delete(u.Properties, materialization.PropertyEndOffsets)
			return tables.Commit(ctx, t, u)
		}}
	}}
}
