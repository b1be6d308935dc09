package shard_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

// Behaviours 1 and 3.
func TestOffsetsOfInterleavedLogsAreDenseFromZero(t *testing.T) {
	l := newLedger(t)
	require.EqualValues(t, 0, l.append(1, 0, 3).Logs[0].Base)
	require.EqualValues(t, 0, l.append(2, 1, 5).Logs[0].Base)
	require.EqualValues(t, 3, l.append(3, 0, 1).Logs[0].Base)
	require.EqualValues(t, 4, l.log(0).Head())
	require.EqualValues(t, 5, l.log(1).Head())
	require.EqualValues(t, 200, l.log(0).Bytes())
	require.EqualValues(t, 200, l.RawBytes(l.log(0)))
}

func TestARecordWithoutItsPredecessorStopsTheShard(t *testing.T) {
	for _, skip := range []base.Revision{0, 2, 1 << 40} {
		l := newLedger(t)
		_, err := l.Apply(l.Revision()+skip, 1, shardtest.Encode(t, open('b')))
		require.ErrorIs(t, err, base.ErrCorrupt, "skipping %d", skip)
	}
}

func TestALostRecordOfAWriterStopsTheShard(t *testing.T) {
	for name, p := range map[string]commitrecord.Payload{
		"append":   appendOf(2, 0, 1),
		"compact":  compactOf(2, 0, 0, 1),
		"prepared": preparedOf(2, 0, 1, "f"),
	} {
		_, err := newLedger(t).put(shardtest.Encode(t, p))
		require.ErrorIs(t, err, base.ErrCorrupt, name)
		require.ErrorContains(t, err, "seq 2, expected 1", name)
	}
}

// reseal changes a record and makes its checksum fit, as newer software would
// have written it.
func reseal(data []byte, change func([]byte)) []byte {
	body := bytes.Clone(data[:len(data)-4])
	change(body)
	return binary.BigEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

func TestWhatNewerSoftwareWroteStopsTheShardAndIsNeverSkipped(t *testing.T) {
	record := shardtest.Encode(t, open('b'))
	for name, data := range map[string][]byte{
		"envelope version": reseal(record, func(b []byte) { b[5] = 2 }),
		"kind":             reseal(record, func(b []byte) { b[7] = 200 }),
		"fold version":     shardtest.Encode(t, &commitpb.FoldVersion{Version: commitrecord.FoldVersion + 1}),
		"field": reseal(append(bytes.Clone(record[:len(record)-4]), 0xf8, 0x07, 0x01, 0, 0, 0, 0), func(b []byte) {
			binary.BigEndian.PutUint32(b[64:], uint32(len(b)-68)) //nolint:gosec // small
		}),
	} {
		_, err := newLedger(t).put(data)
		require.ErrorIs(t, err, base.ErrNewerFormat, name)
	}
	fresh := ledger{t: t, State: shard.NewState(shardtest.Cluster, testShard)}
	_, err := fresh.put(shardtest.Encode(t, &commitpb.ClusterCreate{Shards: 1, FoldVersion: commitrecord.FoldVersion + 1}))
	require.ErrorIs(t, err, base.ErrNewerFormat)
	require.ErrorContains(t, err, "upgrade")
}

// An unknown kind in another cluster's envelope says nothing about ours.
func TestWhatAnotherClusterWroteIsSkippedWhateverItsKind(t *testing.T) {
	theirs := reseal(shardtest.Encode(t, open('b')), func(b []byte) { b[7], b[8] = 200, 0 })
	out, err := newLedger(t).put(theirs)
	require.NoError(t, err)
	require.Equal(t, shard.NotOurs, out.Rejected)
}

func TestAFoldVersionRisesOneByOne(t *testing.T) {
	l := newLedger(t)
	require.EqualValues(t, commitrecord.FoldVersion, l.FoldVersion())
	for _, version := range []uint32{0, 1, 2, 4, 4_000_000_000} {
		l.refuse(shard.NotNextVersion, &commitpb.FoldVersion{Version: version})
	}
	require.EqualValues(t, commitrecord.FoldVersion, l.FoldVersion())
}

func TestAPayloadThatIsNoMessageIsRefusedAsMalformed(t *testing.T) {
	l := newLedger(t)
	garbage := reseal(shardtest.Encode(t, open('b')), func(b []byte) { b[68] = 0xff })
	out, err := l.put(garbage)
	require.NoError(t, err)
	require.Equal(t, shard.Malformed, out.Rejected)
	require.Len(t, l.Writers(), 1)
}

func TestAFencedWriterCommitsNothingAndItsTokenOpensAnother(t *testing.T) {
	l := newLedger(t)
	l.append(1, 0, 1)
	l.accept(&commitpb.WriterFence{Writers: []uint64{writer, 99}})
	l.refuse(shard.WriterClosed, appendOf(2, 0, 1))
	l.refuse(shard.WriterClosed, compactOf(2, 4, 0, 1))
	l.refuse(shard.WriterClosed, preparedOf(2, 0, 1, "f"))
	l.refuse(shard.WriterClosed, &commitpb.WriterFence{Writers: []uint64{writer}})
	require.EqualValues(t, 1, l.log(0).Head())
	require.NotEqual(t, base.WriterID(writer), l.accept(open('a')).Writer)
}

func TestAWriterThatWasPutTwiceIsOneWriter(t *testing.T) {
	l := newLedger(t)
	out := l.publish(open('a'))
	require.Equal(t, shard.AlreadyPublished, out.Rejected)
	require.Equal(t, base.WriterID(writer), out.Writer, "the answer names the writer that is open")
	require.Len(t, l.Writers(), 1)
}

func TestOpenWritersAreBounded(t *testing.T) {
	l := newLedger(t)
	for i := len(l.Writers()); i < shard.MaxOpenWriters; i++ {
		token := make([]byte, 16)
		binary.BigEndian.PutUint64(token[8:], uint64(i))
		l.accept(&commitpb.WriterOpen{Token: token})
	}
	l.refuse(shard.LimitReached, open('z'))
	l.accept(&commitpb.WriterFence{Writers: []uint64{writer}})
	l.accept(open('z'))
}

func TestOneMissingLogInASharedObjectDoesNotFailTheOthers(t *testing.T) {
	l := newLedger(t)
	p := appendOf(1, 0, 2)
	p.Stream, p.Partition = []uint64{77, orders, orders, orders}, []uint32{0, 9, 0, 0}
	p.Records, p.Pos, p.Len = []uint32{1, 1, 2, 3}, []uint32{0, 10, 20, 30}, []uint32{10, 10, 10, 10}
	p.MinTime, p.MaxTime = make([]int64, 4), make([]int64, 4)
	out := l.publish(p)
	require.True(t, out.OK())
	require.Equal(t, shard.NoStream, out.Logs[0].Rejected)
	require.Equal(t, shard.NoPartition, out.Logs[1].Rejected)
	require.EqualValues(t, 0, out.Logs[2].Base)
	require.EqualValues(t, 2, out.Logs[3].Base, "two blocks of one log follow each other")
	require.Empty(t, l.Dead())
}

func TestAnObjectThatNoLogTookIsDeadAtOnce(t *testing.T) {
	l := newLedger(t)
	p := appendOf(1, 0, 2)
	p.Stream = []uint64{77}
	l.publish(p)
	require.Equal(t, []shard.Dead{{Key: base.WALKey(testShard, writer, 1), Since: 4, Size: 1000}}, l.Dead())
	require.Zero(t, l.Objects())
}

func TestCompactionReplacesWholeEntriesInOrder(t *testing.T) {
	l := newLedger(t)
	for seq := range uint64(3) {
		l.append(seq+1, 0, 10) // revisions 4, 5, 6
	}
	part := func(p *commitpb.Compact) shard.Reason { return l.publish(p).Logs[0].Rejected }
	require.Equal(t, shard.NotAligned, part(compactOf(4, 6, 0, 15)), "ends inside an entry")
	require.Equal(t, shard.NotAligned, part(compactOf(5, 6, 5, 20)), "begins inside an entry")
	require.Equal(t, shard.NotAtMark, part(compactOf(6, 6, 10, 20)), "leaves raw records before it")
	require.Equal(t, shard.TooNew, part(compactOf(7, 4, 0, 20)), "an entry is newer than what was read")
	require.Equal(t, shard.NotAligned, part(compactOf(8, 6, 0, 31)), "ends beyond the head")
	require.Len(t, l.Dead(), 5, "each object that was written for nothing is dead")
	require.Equal(t, shard.Accepted, part(compactOf(9, 6, 0, 20)))
	require.EqualValues(t, 20, l.RawStart(l.log(0)))
	require.Equal(t, shard.TooNew, part(compactOf(10, 6, 0, 20)), "a second pass over the same range comes too late")
	require.Equal(t, shard.Accepted, part(compactOf(11, uint64(l.Revision()), 0, 30)), "compacted and raw entries merge")
	require.EqualValues(t, 30, l.RawStart(l.log(0)))
	require.Equal(t, 1, l.Objects())
	require.Zero(t, l.RawBytes(l.log(0)))
}

// Its two parts would have one object key: the second, refused, would bury the
// object that the first made live.
func TestACompactThatNamesALogTwiceIsRefusedWhole(t *testing.T) {
	l := newLedger(t)
	l.append(1, 0, 10)
	p := compactOf(2, 4, 0, 10)
	p.Stream, p.Partition, p.Size = []uint64{orders, orders}, []uint32{0, 0}, []uint64{1, 1}
	p.Start, p.End = []uint64{0, 0}, []uint64{10, 10}
	l.refuse(shard.Malformed, p)
	require.Empty(t, l.Dead())
	require.EqualValues(t, 0, l.RawStart(l.log(0)))
}

func TestACompactThatClaimsToHaveReadTheFutureIsRefused(t *testing.T) {
	l := newLedger(t)
	l.append(1, 0, 10)
	l.refuse(shard.Malformed, compactOf(2, uint64(l.Revision())+1, 0, 10))
	l.accept(compactOf(3, uint64(l.Revision()), 0, 10))
}

func TestTheFirstPreparedRangeWinsAndMarksFollow(t *testing.T) {
	l := newLedger(t)
	l.append(1, 0, 30)
	part := func(p *commitpb.Prepared) shard.Reason { return l.publish(p).Logs[0].Rejected }
	require.Equal(t, shard.Accepted, part(preparedOf(2, 0, 10, "a")))
	require.Equal(t, shard.NotAtMark, part(preparedOf(3, 0, 10, "b")), "decoded twice")
	require.Equal(t, shard.BeyondHead, part(preparedOf(4, 10, 31, "c")))
	require.Equal(t, shard.Accepted, part(preparedOf(5, 10, 30, "d")))
	mark := func(end uint64) shard.Reason {
		return l.publish(&commitpb.Materialized{Stream: orders, TableUuid: "table", Partition: []uint32{0}, End: []uint64{end}}).Logs[0].Rejected
	}
	require.Equal(t, shard.NotPrepared, mark(5), "inside a range")
	require.Equal(t, shard.Accepted, mark(10))
	require.Equal(t, shard.AlreadyPublished, mark(10))
	require.Equal(t, shard.NotPrepared, mark(31))
	require.Equal(t, shard.Accepted, mark(30))
	require.Empty(t, l.log(0).Pending())
}

func TestARangeThatWasDecodedAgainKeepsItsVerdicts(t *testing.T) {
	l := newLedger(t)
	l.append(1, 0, 10)
	l.accept(preparedOf(2, 0, 10, "lost"))
	again := func(seq uint64, rows uint64, replaces string) shard.Reason {
		p := preparedOf(seq, 0, 10, "found")
		p.Ranges[0].Replaces, p.Ranges[0].Main[0].Rows = replaces, rows
		return l.publish(p).Logs[0].Rejected
	}
	require.Equal(t, shard.Malformed, again(3, 9, "lost"), "another verdict on a record")
	require.Equal(t, shard.NotPrepared, again(4, 10, "never heard of"))
	require.Equal(t, shard.Accepted, again(5, 10, "lost"))
	require.Equal(t, "found", l.log(0).Pending()[0].GetMain()[0].GetPath())
	require.Equal(t, shard.NotPrepared, again(6, 10, "lost"), "a second finder comes too late")
}

// A stream's table may be named anew until the first range is bound to it. The
// decision to do so and the binding may cross on their way.
func TestAnUpdateDecidedBeforeTheTableWasBoundComesTooLate(t *testing.T) {
	l := newLedger(t)
	l.append(1, 0, 10)
	st, _ := l.Stream(orders)
	update := &commitpb.StreamUpdate{Stream: orders, ExpectedVersion: st.Version, Table: &commitpb.TablePolicy{Name: new("renamed")}}
	l.accept(preparedOf(2, 0, 10, "f"))
	l.refuse(shard.VersionChanged, update)
}

func TestAResetTableIsFilledFromTheFirstOffsetOn(t *testing.T) {
	l := newLedger(t)
	l.append(1, 0, 10)
	l.accept(preparedOf(2, 0, 10, "f"))
	l.accept(&commitpb.Materialized{Stream: orders, TableUuid: "table", Partition: []uint32{0}, End: []uint64{10}, Snapshot: 7, CommitId: "c"})
	l.refuse(shard.TableChanged, &commitpb.TableReset{Stream: orders, TableUuid: "another"})
	l.accept(&commitpb.TableReset{Stream: orders, TableUuid: "table"})
	st, _ := l.Stream(orders)
	require.Zero(t, st.Table)
	require.Zero(t, l.log(0).Prepared())
	require.Zero(t, l.log(0).Materialized())
	l.refuse(shard.TableChanged, &commitpb.TableReset{Stream: orders, TableUuid: "table"})
}

// A range may be decoded for a table before its reset and come after it.
func TestATableThatWasResetIsNeverBoundAgain(t *testing.T) {
	l := newLedger(t)
	l.append(1, 0, 10)
	seq := uint64(1)
	prepare := func(main, letters string) shard.Reason {
		seq++
		p := preparedOf(seq, 0, 10, "f")
		p.Ranges[0].TableUuid, p.Ranges[0].DeadLetterUuid = main, letters
		return l.publish(p).Logs[0].Rejected
	}
	require.Equal(t, shard.Accepted, prepare("table", "letters"))
	l.accept(&commitpb.TableReset{Stream: orders, TableUuid: "table"})
	require.Equal(t, shard.TableChanged, prepare("table", ""))
	require.Equal(t, shard.TableChanged, prepare("table", "letters"))
	require.Equal(t, shard.TableChanged, prepare("new table", "letters"))
	st, _ := l.Stream(orders)
	require.Empty(t, st.Table.UUID)
	require.Equal(t, shard.Accepted, prepare("new table", "new letters"))
	require.Equal(t, "new table", st.Table.UUID)
}

func TestOnlySoManyFormerTablesAreRemembered(t *testing.T) {
	l := newLedger(t)
	l.append(1, 0, 10)
	for i := range uint64(shard.MaxFormerTables + 1) {
		p := preparedOf(2+i, 0, 10, "f")
		p.Ranges[0].TableUuid = fmt.Sprint("table-", i)
		l.accept(p)
		l.accept(&commitpb.TableReset{Stream: orders, TableUuid: p.GetRanges()[0].GetTableUuid()})
	}
	st, _ := l.Stream(orders)
	require.Len(t, st.Former, shard.MaxFormerTables)
	require.Equal(t, "table-1", st.Former[0])
}

func TestOnlyDeadObjectsAreReclaimed(t *testing.T) {
	l := newLedger(t)
	l.append(1, 0, 10)
	raw := base.WALKey(testShard, writer, 1)
	l.refuse(shard.NotDead, &commitpb.Reclaimed{Keys: []string{raw}})
	l.accept(compactOf(2, 4, 0, 10))
	require.Equal(t, raw, l.Dead()[0].Key)
	l.accept(&commitpb.Reclaimed{Keys: []string{raw, "wal/nothing"}})
	require.Empty(t, l.Dead())
	l.refuse(shard.NotDead, &commitpb.Reclaimed{Keys: []string{raw}})
}

func TestTheClockOfACommitNeverStepsBack(t *testing.T) {
	l := newLedger(t)
	before := l.Time()
	out, err := l.Apply(l.Revision()+1, before-500, shardtest.Encode(t, appendOf(1, 0, 1)))
	require.NoError(t, err)
	require.Equal(t, before, out.Time)
	e, ok := l.FindTime(l.log(0), before)
	require.True(t, ok)
	require.Equal(t, before, e.AppendTime)
}
