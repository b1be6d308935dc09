package gc_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/gc"
)

// hourly appends ten records to partition 0 every hour.
func (w *world) hourly(n int) {
	id := w.writer()
	for range n {
		w.append(id, 10, 0)
		w.clock.Advance(time.Hour)
	}
}

func (w *world) prepare(start, end uint64) {
	id := w.writer()
	w.accept(&commitpb.Prepared{Writer: uint64(id), Seq: 1, Ranges: []*commitpb.PreparedRange{{
		Stream: uint64(orders), Start: start, End: end, TableUuid: "table", Main: []*commitpb.DataFile{{Path: "f", Rows: end - start}},
	}}})
}

func (w *world) materialize(end uint64) {
	w.accept(&commitpb.Materialized{Stream: uint64(orders), TableUuid: "table", Partition: []uint32{0}, End: []uint64{end}})
}

func TestALogThatKeepsEverythingIsNeverTrimmed(t *testing.T) {
	w := newWorld(t)
	w.hourly(5)
	w.clock.Advance(1000 * time.Hour)
	require.Empty(t, w.round(0).Trims)
	require.Zero(t, w.partition(0).Start())
}

func TestRecordsGoByTheirAgeWholeEntriesAtATime(t *testing.T) {
	w := newWorld(t)
	w.keep.Time = 150 * time.Minute
	w.hourly(5) // the newest is an hour old, the oldest five
	round := w.round(0)
	require.Equal(t, []gc.LogTrim{{Log: base.LogID{Stream: orders}, To: 30}}, round.Trims)
	require.EqualValues(t, 30, w.partition(0).Start())
	require.EqualValues(t, 30, w.partition(0).Floor())
	require.Len(t, w.state.Dead(), 3)
	require.Empty(t, w.round(0).Trims, "nothing more is old")
}

func TestRecordsGoByTheSizeOfTheirLog(t *testing.T) {
	w := newWorld(t)
	w.keep.Bytes = 250
	w.hourly(5)
	require.EqualValues(t, 20, w.round(0).Trims[0].To, "the newest three entries hold at least 250 bytes")
	w.keep.Bytes = 0
	require.EqualValues(t, 50, w.round(0).Trims[0].To)
	require.Zero(t, w.partition(0).Len())
}

func TestRetentionWaitsForTheTableUpToTheCap(t *testing.T) {
	w := newWorld(t)
	w.table, w.keep.Time, w.keep.WaitForTables = true, time.Hour, 10*time.Hour
	w.hourly(5)
	w.prepare(0, 15)
	w.materialize(15)
	round := w.round(0)
	require.EqualValues(t, 10, round.Trims[0].To, "what the table lacks stays, and the entry around it")
	require.Equal(t, "its table", round.Held[0].By)
	require.EqualValues(t, 30, round.Held[0].Records)
	second, _ := w.state.Find(w.partition(0), 15)
	require.Equal(t, second.AppendTime+base.Millis((11*time.Hour).Milliseconds()), round.Held[0].Until)

	w.clock.Advance(7 * time.Hour) // the second entry is 11 hours old, the third ten
	round = w.round(0)
	require.EqualValues(t, 20, round.Trims[0].To, "the cap has passed")
	require.EqualValues(t, 5, round.Skipped)
	require.Contains(t, w.log.String(), "never have records that were trimmed")
	require.EqualValues(t, 20, w.partition(0).Prepared())
	require.Equal(t, "trimmed before the table had them", w.partition(0).Pending()[0].GetSkipped())
}

// Pain 23. A catalog that is down for longer than retention costs no record before
// the cap, and no appends wait for it.
func TestACatalogThatIsDownPinsOnlyWhatTheCapAllows(t *testing.T) {
	w := newWorld(t)
	w.table, w.keep.Time, w.keep.WaitForTables = true, time.Hour, 48*time.Hour
	id := w.writer()
	for hour := range 100 {
		w.append(id, 10, 0)
		w.round(time.Hour)
		kept := int(w.partition(0).Head()-w.partition(0).Floor()) / 10
		require.Equal(t, min(hour+1, 49), kept, "after %d hours", hour)
	}
	require.EqualValues(t, w.partition(0).Floor(), w.partition(0).Skipped())
	require.Equal(t, w.partition(0).Floor(), w.partition(0).Prepared())
}

func TestRetentionWaitsForGroupsWhenAskedTo(t *testing.T) {
	w := newWorld(t)
	w.keep.Time, w.keep.WaitForGroups = time.Minute, true
	w.hourly(5)
	w.groups[base.LogID{Stream: orders}] = group{at: 20, name: "audit"}
	round := w.round(0)
	require.EqualValues(t, 20, round.Trims[0].To)
	require.Equal(t, "consumer group audit", round.Held[0].By)
	require.Zero(t, round.Held[0].Until)
	w.groups[base.LogID{Stream: orders}] = group{at: 50, name: "audit"}
	require.EqualValues(t, 50, w.round(0).Trims[0].To)
}

// Behaviour 18. What a trim hides stays for a while, then goes.
func TestHiddenRecordsAreDroppedAfterTheGrace(t *testing.T) {
	w := newWorld(t)
	w.hourly(3)
	w.accept(&commitpb.Trim{Stream: uint64(orders), Partition: []uint32{0}, Offset: []uint64{20}})
	require.Empty(t, w.round(grace/2).Trims)
	w.accept(&commitpb.Trim{Stream: uint64(orders), Partition: []uint32{0}, Offset: []uint64{30}})
	require.Empty(t, w.round(grace/2).Trims)
	require.EqualValues(t, 20, w.round(grace).Trims[0].To, "what was hidden later waits for its own grace")
	require.EqualValues(t, 30, w.round(0).Trims[0].To)
}

func TestHiddenRecordsWaitForTheTableToo(t *testing.T) {
	w := newWorld(t)
	w.table = true
	w.hourly(3)
	w.accept(&commitpb.Trim{Stream: uint64(orders), Partition: []uint32{0}, Offset: []uint64{30}})
	w.round(grace)
	require.Empty(t, w.round(grace).Trims)
	w.prepare(0, 30)
	w.materialize(30)
	require.EqualValues(t, 30, w.round(0).Trims[0].To)
}

// A trim that comes while an earlier one waits gets a grace of its own.
func TestATrimThatComesWhileAnEarlierOneWaitsIsNotForgotten(t *testing.T) {
	w := newWorld(t)
	w.table = true
	w.hourly(3)
	w.accept(&commitpb.Trim{Stream: uint64(orders), Partition: []uint32{0}, Offset: []uint64{10}})
	w.round(grace)
	w.round(grace) // the table lacks the records
	w.accept(&commitpb.Trim{Stream: uint64(orders), Partition: []uint32{0}, Offset: []uint64{20}})
	w.round(grace / 2)
	w.prepare(0, 30)
	w.materialize(30)
	require.EqualValues(t, 10, w.round(grace / 2).Trims[0].To)
	require.EqualValues(t, 20, w.round(0).Trims[0].To)
}

// A trim by a user may drop for good what the table lacks.
func TestWhatAUserDroppedIsSkippedInTheTable(t *testing.T) {
	w := newWorld(t)
	w.hourly(3)
	w.table = true
	w.accept(&commitpb.Trim{Stream: uint64(orders), Partition: []uint32{0}, Offset: []uint64{15}, Hard: true})
	require.EqualValues(t, 15, w.round(0).Skipped)
	require.EqualValues(t, 15, w.partition(0).Prepared())
	require.EqualValues(t, 15, w.partition(0).LeftOut())
	require.Zero(t, w.round(0).Skipped)
}

func TestNothingIsTrimmedByAgeWhileTheClocksDiffer(t *testing.T) {
	w := newWorld(t)
	w.keep.Time = time.Hour
	w.hourly(2)
	w.server = coordtest.NewClock()
	w.server.Advance(2 * time.Hour)
	w.clock.Advance(5000 * time.Hour) // this machine's clock jumped
	require.Empty(t, w.round(0).Trims)
	require.Equal(t, 5000*time.Hour, w.Skew())
	require.Contains(t, w.log.String(), "clock")
	w.keep.Bytes = 100
	require.EqualValues(t, 10, w.round(0).Trims[0].To, "by size it is")
	w.keep.Bytes = catalog.Unlimited
	w.server.Advance(5000 * time.Hour)
	require.EqualValues(t, 20, w.round(0).Trims[0].To)
	require.Zero(t, w.Skew())
}

func TestAPlanChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.keep.Time = time.Hour
	w.hourly(5)
	before := w.state.Revision()
	plan, err := w.Plan(context.Background())
	require.NoError(t, err)
	require.Len(t, plan.Trims, 1)
	require.Equal(t, before, w.state.Revision())
}
