package shard_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

const (
	testShard     = base.Shard(3)
	historyLength = 60
)

func fold(t require.TestingT, s *shard.State, step shardtest.Step) shard.Outcome {
	out, err := s.Apply(step.Entry.Revision, step.Entry.Time, step.Entry.Data)
	require.NoError(t, err)
	return out
}

// check runs a property over generated histories: begin returns what is called
// with each step and its outcome, after the state folded it.
func check(t *testing.T, begin func(*rapid.T) func(*shard.State, shardtest.Step, shard.Outcome)) {
	t.Helper()
	checkLength(t, historyLength, begin)
}

func checkLength(t *testing.T, length int, begin func(*rapid.T) func(*shard.State, shardtest.Step, shard.Outcome)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		each := begin(t)
		s := shard.NewState(shardtest.Cluster, testShard)
		for _, step := range shardtest.Draw(t, testShard, length) {
			each(s, step, fold(t, s, step))
		}
	})
}

func TestTwoStatesThatFoldTheSameHistoryAreEqualAtEveryRevision(t *testing.T) {
	check(t, func(t *rapid.T) func(*shard.State, shardtest.Step, shard.Outcome) {
		other := shard.NewState(shardtest.Cluster, testShard)
		return func(s *shard.State, step shardtest.Step, out shard.Outcome) {
			require.Equal(t, out, fold(t, other, step))
			require.Equal(t, s.ChainHash(), other.ChainHash())
			require.Equal(t, s.Hash(), other.Hash())
		}
	})
}

func TestTheChainHashTellsHistoriesApart(t *testing.T) {
	seen := make(map[base.Hash]base.Revision)
	check(t, func(t *rapid.T) func(*shard.State, shardtest.Step, shard.Outcome) {
		clear(seen)
		return func(s *shard.State, _ shardtest.Step, _ shard.Outcome) {
			require.NotContains(t, seen, s.ChainHash())
			seen[s.ChainHash()] = s.Revision()
		}
	})
}

func TestARefusalHasAReasonAndChangesNothing(t *testing.T) {
	check(t, func(t *rapid.T) func(*shard.State, shardtest.Step, shard.Outcome) {
		before := shardtest.DumpOf(shard.NewState(shardtest.Cluster, testShard))
		return func(s *shard.State, _ shardtest.Step, out shard.Outcome) {
			after := shardtest.DumpOf(s)
			touched := make(map[base.LogID]bool)
			for _, l := range out.Logs {
				if l.Rejected == shard.Accepted {
					touched[l.Log] = true
				}
			}
			if !out.OK() {
				require.Empty(t, out.Logs, "a refused record has no parts")
				require.Equal(t, before.Streams, after.Streams)
				require.Equal(t, before.Writers, after.Writers)
				requireKeeps(t, before.Dead, after.Dead)
			}
			if !out.OK() || len(out.Logs) > 0 {
				for id, text := range before.Logs {
					require.True(t, touched[id] || text == after.Logs[id], "log %s changed although %+v", id, out)
				}
			}
			before = after
		}
	})
}

// requireKeeps checks that everything dead is still dead: only Reclaimed forgets.
func requireKeeps(t require.TestingT, before, after map[string]bool) {
	for key := range before {
		require.True(t, after[key], "%s is not dead any more", key)
	}
}

func TestForeignBytesAreTheSameNoOpEverywhere(t *testing.T) {
	check(t, func(t *rapid.T) func(*shard.State, shardtest.Step, shard.Outcome) {
		at, foreign := base.Millis(0), int64(0)
		return func(s *shard.State, step shardtest.Step, out shard.Outcome) {
			if step.Payload == nil {
				foreign++
				require.Equal(t, shard.Outcome{Revision: step.Entry.Revision, Time: at, Rejected: shard.NotOurs}, out)
			}
			require.Equal(t, foreign, s.Foreign())
			at = s.Time()
		}
	})
}

func TestTheStateAgreesWithTheModel(t *testing.T) {
	check(t, func(t *rapid.T) func(*shard.State, shardtest.Step, shard.Outcome) {
		m := shardtest.NewModel(testShard)
		return func(s *shard.State, step shardtest.Step, out shard.Outcome) {
			verdict := m.Apply(step.Entry.Time, step.Payload)
			require.Equal(t, verdict.OK, out.OK(), "revision %d: %v: %q", out.Revision, step.Payload, out.Rejected)
			var logs []bool
			for _, l := range out.Logs {
				logs = append(logs, l.Rejected == shard.Accepted)
			}
			require.Equal(t, verdict.Logs, logs, "revision %d: %v: %+v", out.Revision, step.Payload, out)
			requireSame(t, m, s)
		}
	})
}

func requireSame(t require.TestingT, m *shardtest.Model, s *shard.State) {
	require.Equal(t, m.Created, s.Created())
	require.Equal(t, m.Time, s.Time())
	require.Len(t, s.Streams(), len(m.Streams))
	require.Len(t, s.Writers(), len(m.Writers))
	for id, w := range m.Writers {
		got, ok := s.Writer(id)
		require.True(t, ok, "writer %d", id)
		require.Equal(t, w.Next, got.Next)
	}
	require.Equal(t, len(m.Live()), s.Objects())
	require.Equal(t, m.Dead, shardtest.DumpOf(s).Dead)
	for id, st := range m.Streams {
		got, ok := s.StreamByName(st.Name)
		require.True(t, ok, "stream %s", st.Name)
		require.Equal(t, id, got.ID)
		require.Equal(t, st.Version, got.Version)
		require.Equal(t, st.UUID, got.Table.UUID)
		require.Equal(t, st.DeadLetterUUID, got.Table.DeadLetterUUID)
		for i, l := range st.Logs {
			requireSameLog(t, l, s, got.Logs[i])
		}
	}
}

func requireSameLog(t require.TestingT, want *shardtest.Log, s *shard.State, got *shard.Log) {
	require.EqualValues(t, len(want.Records), got.Head())
	require.Equal(t, want.Prepared, got.Prepared())
	require.Equal(t, want.Materialized, got.Materialized())
	require.Equal(t, want.LeftOut, got.LeftOut())
	require.Len(t, got.Pending(), len(want.Pending))
	for i, p := range got.Pending() {
		require.True(t, proto.Equal(want.Pending[i], p.PreparedRange))
	}
	raw := got.Head()
	require.Equal(t, want.Start, got.Start())
	require.Equal(t, want.Floor, got.Floor())
	require.Equal(t, want.Fenced, got.Fence() != "")
	for i, place := range want.Records {
		e, ok := s.Find(got, base.Offset(i))
		if base.Offset(i) < want.Floor {
			require.False(t, ok, "offset %d was dropped", i)
			continue
		}
		require.True(t, ok, "offset %d", i)
		require.True(t, e.Range.Contains(base.Offset(i)))
		lies := shardtest.Place{
			Entry: place.Entry, Key: e.Key(), Compacted: e.Storage == shard.Compacted, Revision: e.Revision, Time: e.AppendTime,
		}
		require.Equal(t, place, lies, "offset %d", i)
		if !place.Compacted {
			raw = min(raw, base.Offset(i))
		}
	}
	require.Equal(t, raw, s.RawStart(got))
	requireFindTime(t, want, s, got)
}

// requireFindTime compares the search by time with a walk.
func requireFindTime(t require.TestingT, want *shardtest.Log, s *shard.State, got *shard.Log) {
	times := []base.Millis{0, s.Time() + 1}
	for _, place := range want.Records {
		times = append(times, place.Time, place.Time+1)
	}
	for _, at := range times {
		i := slices.IndexFunc(want.Records[want.Start:], func(p shardtest.Place) bool { return p.Time >= at })
		e, ok := s.FindTime(got, at)
		require.Equal(t, i >= 0, ok)
		if ok {
			require.True(t, e.Range.Contains(want.Start+base.Offset(i)), "time %d", at)
		}
	}
}

func TestTheIndexHoldsItsInvariantsAfterEveryRecord(t *testing.T) {
	check(t, func(t *rapid.T) func(*shard.State, shardtest.Step, shard.Outcome) {
		marks := make(map[base.LogID][3]base.Offset)
		return func(s *shard.State, _ shardtest.Step, out shard.Outcome) {
			live := make(map[string]bool)
			entries := 0
			for _, st := range slices.Concat(s.Streams(), s.Kept()) {
				for _, l := range st.Logs {
					requireCovered(t, s, l)
					entries += l.Len()
					for _, e := range s.Entries(l, 0, l.Len()) {
						live[e.Key()] = true
					}
					now := [3]base.Offset{l.Head(), l.Prepared(), l.Materialized()}
					require.LessOrEqual(t, now[2], now[1], "materialized is within prepared")
					require.LessOrEqual(t, now[1], now[0], "prepared is within the log")
					old := marks[l.ID()]
					require.GreaterOrEqual(t, now[0], old[0], "the head moved back")
					if st.Table.UUID != "" {
						require.GreaterOrEqual(t, now[1], old[1], "prepared moved back")
						require.GreaterOrEqual(t, now[2], old[2], "materialized moved back")
					}
					marks[l.ID()] = now
				}
			}
			require.Equal(t, entries, s.IndexEntries())
			require.Len(t, live, s.Objects(), "an object lives exactly while an entry lies in it")
			for _, d := range s.Dead() {
				require.False(t, live[d.Key], "%s is live and dead after %+v", d.Key, out)
				require.LessOrEqual(t, d.Since, s.Revision())
			}
		}
	})
}

// requireCovered checks that entries lie one after another from the first live
// offset to the head, with times that never decrease.
func requireCovered(t require.TestingT, s *shard.State, l *shard.Log) {
	next, at := l.Floor(), base.Millis(0)
	pending := l.Materialized()
	for i, e := range s.Entries(l, l.Floor(), l.Len()+1) {
		if i == 0 {
			require.LessOrEqual(t, e.Range.Start, next, "the floor may lie inside an entry")
			next = e.Range.Start
		}
		require.Equal(t, next, e.Range.Start)
		require.Positive(t, e.Range.Len())
		require.GreaterOrEqual(t, e.AppendTime, at)
		next, at = e.Range.End, e.AppendTime
	}
	require.Equal(t, l.Head(), next)
	for _, p := range l.Pending() {
		require.EqualValues(t, pending, p.GetStart())
		pending = base.Offset(p.GetEnd()) //nolint:gosec // within the log
	}
	require.Equal(t, l.Prepared(), pending)
}

func TestAWritersRecordIsAcceptedOnceAndOnlyWhileItIsOpen(t *testing.T) {
	check(t, func(t *rapid.T) func(*shard.State, shardtest.Step, shard.Outcome) {
		type publication struct {
			writer base.WriterID
			seq    base.Seq
		}
		accepted := make(map[publication]bool)
		open := make(map[base.WriterID]bool)
		return func(s *shard.State, _ shardtest.Step, out shard.Outcome) {
			if p := (publication{out.Writer, out.Seq}); out.Seq > 0 && out.OK() {
				require.False(t, accepted[p], "%+v landed twice", p)
				require.True(t, open[out.Writer], "%+v landed after its writer was closed", p)
				accepted[p] = true
			}
			clear(open)
			for _, w := range s.Writers() {
				open[w.ID] = true
			}
		}
	})
}

// Histories that never reach a rule prove nothing about it.
func TestGeneratedHistoriesReachEveryReason(t *testing.T) {
	reached := make(map[shard.Reason]int)
	kinds := make(map[string]int)
	checkLength(t, 6*historyLength, func(*rapid.T) func(*shard.State, shardtest.Step, shard.Outcome) {
		return func(_ *shard.State, _ shardtest.Step, out shard.Outcome) {
			reached[out.Rejected]++
			if out.OK() {
				kinds[out.Kind.String()]++
			}
			for _, l := range out.Logs {
				reached[l.Rejected]++
			}
		}
	})
	for _, why := range []shard.Reason{
		shard.Accepted, shard.NotOurs, shard.NoCluster, shard.ClusterExists, shard.Malformed, shard.NotNextVersion,
		shard.StreamExists, shard.NoStream, shard.NoPartition, shard.VersionChanged, shard.AlreadyPublished, shard.WriterClosed,
		shard.NotAligned, shard.TooNew, shard.NotAtMark, shard.BeyondHead, shard.TableChanged, shard.NotPrepared, shard.NotDead,
		shard.WrongShard, shard.StreamDeleted, shard.NamespaceSealed, shard.NoNamespace, shard.NotEmpty, shard.StaleSource,
		shard.LogFenced, shard.TrimmedAlready, shard.NotTrimmed, shard.Duplicate, shard.Overlaps, shard.BelowWindow, shard.NotNextEpoch,
	} {
		require.Positive(t, reached[why], "no history reached %q", why)
	}
	require.Subset(t, slices.Collect(maps.Keys(kinds)), []string{
		"Append", "Compact", "Prepared", "Materialized", "Reclaimed", "TableReset", "WriterFence", "StreamUpdate",
		"PartitionsAdd", "StreamDelete", "NamespaceSeal", "LogFence", "LogUnfence", "Trim", "Skip", "Recovered",
	})
}
