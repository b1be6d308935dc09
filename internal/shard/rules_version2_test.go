package shard_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

func groupOf(producer string, first, count uint64, blocks ...uint32) *commitpb.ProducerGroup {
	if len(blocks) == 0 {
		blocks = []uint32{0}
	}
	return &commitpb.ProducerGroup{Producer: producer, First: []uint64{first}, Count: []uint64{count}, Block: blocks}
}

// send appends one block with a group of sequences and returns what became of it.
func (l ledger) send(seq uint64, groups ...*commitpb.ProducerGroup) shard.Reason {
	l.t.Helper()
	p := appendOf(seq, 0, 1)
	p.Groups = groups
	out := l.publish(p)
	require.True(l.t, out.OK(), out.Rejected)
	return out.Logs[0].Rejected
}

func TestRecordsOfAVersionThatIsNotAllowedYetAreRefused(t *testing.T) {
	l := ledger{t: t, State: shard.NewState(shardtest.Cluster, testShard)}
	l.accept(&commitpb.ClusterCreate{Shards: 4, FoldVersion: 1})
	l.refuse(shard.NotYetAllowed, &commitpb.StreamCreate{Namespace: "a", Name: "b", Partitions: 1, NamespaceId: 1})
	l.refuse(shard.NotYetAllowed, &commitpb.Recovered{Epoch: 1})
	l.accept(&commitpb.FoldVersion{Version: 2})
	l.accept(&commitpb.StreamCreate{Namespace: "a", Name: "b", Partitions: 1, NamespaceId: 1})
	l.accept(&commitpb.Recovered{Epoch: 1})
}

// Behaviour 23. The name of a deleted stream is never used again.
func TestAStreamThatWasDeletedIsNeverCreatedAgain(t *testing.T) {
	for _, purge := range []bool{false, true} {
		l := newLedger(t)
		l.append(1, 0, 3)
		l.accept(&commitpb.StreamDelete{Stream: orders, Purge: purge})
		l.refuse(shard.StreamDeleted, &commitpb.StreamCreate{Namespace: "shop", Name: "orders", Partitions: 1})
		require.Equal(t, shard.NoStream, l.publish(appendOf(2, 0, 1)).Logs[0].Rejected)
		tombstone, ok := l.Tombstone(base.StreamName{Namespace: "shop", Name: "orders"})
		require.True(t, ok)
		require.Equal(t, shard.Tombstone{ID: orders, Purged: purge}, tombstone)
	}
}

// Behaviour 31. A delete without a purge keeps the data; the purge gives it up.
func TestADeleteWithoutAPurgeKeepsTheData(t *testing.T) {
	l := newLedger(t)
	l.append(1, 0, 3)
	l.accept(&commitpb.StreamDelete{Stream: orders})
	require.Empty(t, l.Dead())
	require.Equal(t, 1, l.Objects())
	require.EqualValues(t, 3, l.Kept()[0].Logs[0].Head())
	l.refuse(shard.NoStream, &commitpb.StreamDelete{Stream: orders})
	l.accept(&commitpb.StreamDelete{Stream: orders, Purge: true})
	require.Len(t, l.Dead(), 1)
	require.Zero(t, l.Objects())
	require.Zero(t, l.IndexEntries())
	require.Zero(t, l.Logs())
	l.refuse(shard.NoStream, &commitpb.StreamDelete{Stream: orders, Purge: true})
}

// Behaviour 29. Properties of an older or equal source revision change nothing.
func TestPropertiesOfAnOlderSourceChangeNothing(t *testing.T) {
	l := newLedger(t)
	update := func(source uint64, value string) *commitpb.StreamUpdate {
		return &commitpb.StreamUpdate{Stream: orders, Properties: &commitpb.Properties{
			SourceRevision: source, Values: []*commitpb.Property{{Key: "k", Value: value}},
		}}
	}
	l.accept(update(5, "new"))
	l.refuse(shard.StaleSource, update(5, "again"))
	l.refuse(shard.StaleSource, update(4, "old"))
	st, _ := l.Stream(orders)
	require.Equal(t, "new", st.Properties[0].GetValue())
	twins := update(6, "a")
	twins.Properties.Values = append(twins.GetProperties().GetValues(), twins.GetProperties().GetValues()[0])
	l.refuse(shard.Malformed, twins)
}

// Behaviours 18, 19 and 20.
func TestASoftTrimHidesAHardOneDropsAndNoneMovesBack(t *testing.T) {
	l := newLedger(t)
	l.append(1, 0, 10)
	l.append(2, 0, 10)
	trim := func(to uint64, hard bool) shard.Reason {
		return l.publish(&commitpb.Trim{Stream: orders, Partition: []uint32{0}, Offset: []uint64{to}, Hard: hard}).Logs[0].Rejected
	}
	require.Equal(t, shard.BeyondHead, trim(21, false))
	require.Equal(t, shard.Accepted, trim(15, false))
	require.Equal(t, shard.TrimmedAlready, trim(15, false))
	require.Equal(t, shard.TrimmedAlready, trim(3, false))
	require.EqualValues(t, 15, l.log(0).Start())
	require.EqualValues(t, 0, l.log(0).Floor())
	_, found := l.Find(l.log(0), 0)
	require.True(t, found, "what is hidden is still there")
	require.Equal(t, shard.Accepted, trim(12, true), "behind the first live offset")
	require.EqualValues(t, 15, l.log(0).Start())
	_, found = l.Find(l.log(0), 11)
	require.False(t, found)
	e, found := l.Find(l.log(0), 12)
	require.True(t, found)
	require.EqualValues(t, 10, e.Range.Start, "the entry is kept whole")
	require.Len(t, l.Dead(), 1)
	require.Equal(t, shard.TrimmedAlready, trim(12, true))
	require.Equal(t, shard.Accepted, trim(20, true))
	require.Zero(t, l.log(0).Len())
	require.EqualValues(t, 20, l.append(3, 0, 1).Logs[0].Base, "offsets go on")
}

// A pass may have read what is trimmed before its record lands.
func TestACompactWhosePrefixWasTrimmedStillCounts(t *testing.T) {
	l := newLedger(t)
	for seq := range uint64(3) {
		l.append(seq+1, 0, 10)
	}
	read := uint64(l.Revision())
	l.accept(&commitpb.Trim{Stream: orders, Partition: []uint32{0}, Offset: []uint64{15}, Hard: true})
	l.accept(compactOf(4, read, 0, 30))
	e, found := l.Find(l.log(0), 15)
	require.True(t, found)
	require.Equal(t, shard.Compacted, e.Storage)
	_, found = l.Find(l.log(0), 14)
	require.False(t, found, "what was trimmed does not come back")
}

func TestWhatWasTrimmedBeforeTheTableHadItIsSkippedWithItsReason(t *testing.T) {
	l := newLedger(t)
	l.append(1, 0, 10)
	l.append(2, 0, 10)
	skip := func(start, end uint64) *commitpb.Skip {
		return &commitpb.Skip{Stream: orders, Start: start, End: end, Reason: "trimmed by retention"}
	}
	l.refuse(shard.NotTrimmed, skip(0, 10))
	l.accept(preparedOf(3, 0, 5, "f"))
	l.accept(&commitpb.Trim{Stream: orders, Partition: []uint32{0}, Offset: []uint64{10}, Hard: true})
	l.refuse(shard.NotAtMark, skip(0, 10))
	l.accept(skip(5, 10))
	pending := l.log(0).Pending()
	require.Len(t, pending, 2)
	require.Equal(t, "trimmed by retention", pending[1].GetSkipped())
	require.EqualValues(t, 5, pending[1].GetFiltered())
	require.EqualValues(t, 5, l.log(0).Skipped())
	l.accept(&commitpb.Materialized{Stream: orders, TableUuid: "table", Partition: []uint32{0}, End: []uint64{10}})
	require.EqualValues(t, 5, l.log(0).LeftOut())
}

// Behaviours 10 and 11.
func TestAFencedLogTakesNothingAndTheOthersOfTheObjectDo(t *testing.T) {
	l := newLedger(t)
	l.accept(&commitpb.LogFence{Stream: orders, Partition: []uint32{0}, Reason: "moved"})
	require.Equal(t, "moved", l.log(0).Fence())
	p := appendOf(1, 0, 2)
	p.Stream, p.Partition, p.Records = []uint64{orders, orders}, []uint32{0, 1}, []uint32{1, 2}
	p.Pos, p.Len, p.MinTime, p.MaxTime = []uint32{0, 10}, []uint32{10, 10}, make([]int64, 2), make([]int64, 2)
	out := l.publish(p)
	require.Equal(t, shard.LogFenced, out.Logs[0].Rejected)
	require.Equal(t, shard.Accepted, out.Logs[1].Rejected)
	l.accept(&commitpb.LogUnfence{Stream: orders, Partition: []uint32{0}})
	require.EqualValues(t, 0, l.append(2, 0, 1).Logs[0].Base)
}

func TestSequencesLandOnceWhateverTheirOrder(t *testing.T) {
	l := newLedger(t)
	require.Equal(t, shard.Accepted, l.send(1, groupOf("p", 10, 5)))
	require.Equal(t, shard.Duplicate, l.send(2, groupOf("p", 10, 5)))
	require.Equal(t, shard.Duplicate, l.send(3, groupOf("p", 11, 2)))
	require.Equal(t, shard.Overlaps, l.send(4, groupOf("p", 9, 2)))
	require.Equal(t, shard.Overlaps, l.send(5, groupOf("p", 14, 2)))
	require.Equal(t, shard.Accepted, l.send(6, groupOf("p", 0, 10)), "late, and new")
	require.Equal(t, shard.Accepted, l.send(7, groupOf("q", 10, 5)), "another producer")
	require.EqualValues(t, 3, l.log(0).Head())
	require.Equal(t, shard.SequenceKnown, l.Sequence(orders, "p", 14))
	require.Equal(t, shard.SequenceNew, l.Sequence(orders, "p", 15))
	require.Equal(t, shard.SequenceNew, l.Sequence(orders, "r", 14))
}

func TestTheWindowIsExactToItsEdge(t *testing.T) {
	l := newLedger(t)
	const newest = 100_000
	low := uint64(newest + 1 - shard.ProducerWindow)
	require.Equal(t, shard.Accepted, l.send(1, groupOf("p", low, 1)))
	require.Equal(t, shard.Accepted, l.send(2, groupOf("p", newest, 1)))
	require.Equal(t, shard.Duplicate, l.send(3, groupOf("p", low, 1)))
	require.Equal(t, shard.BelowWindow, l.send(4, groupOf("p", low-1, 1)))
	require.Equal(t, shard.SequenceTooOld, l.Sequence(orders, "p", low-1))
	require.Equal(t, shard.Accepted, l.send(5, groupOf("p", newest+1, 1)))
	require.Equal(t, shard.BelowWindow, l.send(6, groupOf("p", low, 1)), "it fell out of the window")
}

// One block of a group cannot land without the others: its sequences would be known.
func TestAGroupLandsWholeOrNotAtAll(t *testing.T) {
	l := newLedger(t)
	l.accept(&commitpb.LogFence{Stream: orders, Partition: []uint32{1}, Reason: "moved"})
	p := appendOf(1, 0, 1)
	p.Stream, p.Partition, p.Records = []uint64{orders, orders, orders}, []uint32{0, 1, 0}, []uint32{1, 1, 1}
	p.Pos, p.Len, p.MinTime, p.MaxTime = []uint32{0, 10, 20}, []uint32{10, 10, 10}, make([]int64, 3), make([]int64, 3)
	p.Groups = []*commitpb.ProducerGroup{groupOf("p", 0, 2, 0, 1)}
	out := l.publish(p)
	require.Equal(t, shard.LogFenced, out.Logs[0].Rejected)
	require.Equal(t, shard.LogFenced, out.Logs[1].Rejected)
	require.Equal(t, shard.Accepted, out.Logs[2].Rejected)
	require.Equal(t, shard.Accepted, l.send(2, groupOf("p", 0, 2)))
}

func TestMalformedGroupsAreRefusedWithTheWholeRecord(t *testing.T) {
	for name, groups := range map[string][]*commitpb.ProducerGroup{
		"no producer":  {groupOf("", 0, 1)},
		"no block":     {{Producer: "p", First: []uint64{0}, Count: []uint64{1}}},
		"strange":      {groupOf("p", 0, 1, 7)},
		"shared":       {groupOf("p", 0, 1), groupOf("q", 0, 1)},
		"empty":        {groupOf("p", 0, 0)},
		"too wide":     {groupOf("p", 0, shard.ProducerWindow+1)},
		"overflow":     {groupOf("p", 1<<63, 1)},
		"touching":     {{Producer: "p", First: []uint64{0, 2}, Count: []uint64{2, 1}, Block: []uint32{0}}},
		"descending":   {{Producer: "p", First: []uint64{9, 2}, Count: []uint64{2, 1}, Block: []uint32{0}}},
		"wide in sum":  {{Producer: "p", First: []uint64{0, shard.ProducerWindow}, Count: []uint64{1, 1}, Block: []uint32{0}}},
		"uneven lists": {{Producer: "p", First: []uint64{0, 2}, Count: []uint64{1}, Block: []uint32{0}}},
	} {
		l := newLedger(t)
		p := appendOf(1, 0, 1)
		p.Groups = groups
		require.Equal(t, shard.Malformed, l.publish(p).Rejected, name)
		require.Zero(t, l.log(0).Head(), name)
	}
}

// What a window says equals what landed, sequence by sequence.
func TestAWindowKnowsExactlyWhatLanded(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := newLedger(t)
		landed := make(map[uint64]bool)
		for seq := range uint64(30) {
			first := rapid.Uint64Range(0, 40).Draw(r, "first")
			n := rapid.Uint64Range(1, 6).Draw(r, "count")
			known := 0
			for q := first; q < first+n; q++ {
				if landed[q] {
					known++
				}
			}
			want := shard.Overlaps
			switch known {
			case 0:
				want = shard.Accepted
			case int(n): //nolint:gosec // small
				want = shard.Duplicate
			}
			require.Equal(r, want, l.send(seq+1, groupOf("p", first, n)))
			for q := first; q < first+n && want == shard.Accepted; q++ {
				landed[q] = true
			}
			for q := range uint64(50) {
				require.Equal(r, landed[q], l.Sequence(orders, "p", q) == shard.SequenceKnown)
			}
		}
	})
}

func TestProducersAreBounded(t *testing.T) {
	l := newLedger(t)
	for i := range uint64(shard.MaxProducers) {
		require.Equal(t, shard.Accepted, l.send(i+1, groupOf(fmt.Sprint("p", i), 0, 1)))
	}
	require.Equal(t, shard.LimitReached, l.send(shard.MaxProducers+1, groupOf("one more", 0, 1)))
	require.Equal(t, shard.Accepted, l.send(shard.MaxProducers+2, groupOf("p7", 1, 1)))
	l.accept(&commitpb.StreamDelete{Stream: orders})
	st := l.Kept()[0]
	require.Zero(t, st.Producers())
}

func TestANamespaceIsSealedOnlyWhileItIsEmpty(t *testing.T) {
	l := newLedger(t)
	seal := func(id uint64, undo bool) *commitpb.NamespaceSeal {
		return &commitpb.NamespaceSeal{Namespace: "shop", NamespaceId: id, Undo: undo}
	}
	create := func(id uint64) *commitpb.StreamCreate {
		return &commitpb.StreamCreate{Namespace: "shop", Name: "other", Partitions: 1, NamespaceId: id}
	}
	l.refuse(shard.NotEmpty, seal(7, false))
	l.accept(&commitpb.StreamDelete{Stream: orders})
	l.accept(seal(7, false))
	l.refuse(shard.AlreadyPublished, seal(7, false))
	l.refuse(shard.NamespaceSealed, create(7))
	l.refuse(shard.NamespaceSealed, create(0))
	l.refuse(shard.NoNamespace, seal(6, true))
	l.accept(seal(7, true))
	l.accept(seal(7, false))
	l.accept(create(8))
	require.Equal(t, shard.NotEmpty, l.publish(seal(8, false)).Rejected)
}

// Behaviour 26.
func TestPartitionsGrowAtOnceAndNeverShrink(t *testing.T) {
	l := newLedger(t)
	l.refuse(shard.Malformed, &commitpb.PartitionsAdd{Stream: orders, Partitions: shard.MaxPartitions + 1})
	l.accept(&commitpb.PartitionsAdd{Stream: orders, Partitions: 4})
	l.refuse(shard.AlreadyPublished, &commitpb.PartitionsAdd{Stream: orders, Partitions: 4})
	l.refuse(shard.AlreadyPublished, &commitpb.PartitionsAdd{Stream: orders, Partitions: 2})
	st, _ := l.Stream(orders)
	require.Len(t, st.Logs, 4)
	require.Equal(t, 4, l.Logs())
	l.append(1, 3, 1)
}

func TestARecoveryClosesEveryWriter(t *testing.T) {
	l := newLedger(t)
	l.refuse(shard.NotNextEpoch, &commitpb.Recovered{Epoch: 2})
	l.accept(&commitpb.Recovered{Epoch: 1})
	require.Empty(t, l.Writers())
	require.Equal(t, shard.WriterClosed, l.publish(appendOf(1, 0, 1)).Rejected)
	l.accept(open('a'))
	l.refuse(shard.NotNextEpoch, &commitpb.Recovered{Epoch: 1})
}

func TestWhatBelongsToTheClusterIsRefusedInAShardOfStreams(t *testing.T) {
	for _, p := range []commitrecord.Payload{
		&commitpb.NamespaceCreate{Namespace: "n"}, &commitpb.NamespaceUpdate{NamespaceId: 1}, &commitpb.NamespaceDrop{NamespaceId: 1},
		&commitpb.ClusterUpdate{ExpectedVersion: 1}, &commitpb.CatalogRegister{Name: "c", Type: "sql"}, &commitpb.CatalogUnregister{Name: "c"},
	} {
		newLedger(t).refuse(shard.WrongShard, p)
	}
}
