package compaction_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/shard"
)

func (w *world) plan(limits compaction.Limits) (p compaction.Plan) {
	w.view.Inspect(func(s *shard.State) { p = compaction.NewPlan(s, limits) })
	return p
}

// Given more raw objects than a pass may hold, then the plan takes the oldest, in
// order, at least one, and each log's part begins where its raw records begin.
func TestAPlanTakesTheOldestObjectsWithinItsBudget(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		w.appendTo(0, 10*i, 10)
	}
	w.appendTo(1, 0, 10)
	all := w.plan(compaction.Limits{Bytes: 1 << 20})
	require.Len(t, all.Objects, 5)
	require.Len(t, all.Logs, 2)
	require.Equal(t, base.OffsetRange{End: 40}, all.Logs[0].Range)
	require.Equal(t, base.OffsetRange{End: 10}, all.Logs[1].Range)

	one := w.plan(compaction.Limits{Bytes: 1})
	require.Equal(t, all.Objects[:1], one.Objects)
	require.Len(t, one.Logs, 1)
	require.Equal(t, base.OffsetRange{End: 10}, one.Logs[0].Range)

	two := w.plan(compaction.Limits{Bytes: all.Objects[0].Size + all.Objects[1].Size})
	require.Equal(t, all.Objects[:2], two.Objects)
}

// Given streams and logs that are to be left alone, then the plan compacts the former
// without decoding, and leaves out the latter.
func TestAPlanLeavesAloneWhatIsInTrouble(t *testing.T) {
	w := newWorld(t)
	w.appendTo(0, 0, 10)
	w.appendTo(1, 0, 10)
	p := w.plan(compaction.Limits{Bytes: 1 << 20, Quarantined: map[base.StreamID]bool{w.stream: true}})
	require.Len(t, p.Logs, 2)
	require.Zero(t, p.Logs[0].Decode.Len())
	p = w.plan(compaction.Limits{Bytes: 1 << 20, Unreadable: map[base.LogID]bool{{Stream: w.stream}: true}})
	require.Len(t, p.Logs, 1)
	require.Equal(t, base.Partition(1), p.Logs[0].Log.Partition)
	require.Equal(t, base.OffsetRange{End: 10}, p.Logs[0].Decode)
}

// Given raw records, then a pass is due when the oldest reaches the age of its table's
// commits, or at once when there are many.
func TestAPassIsDueByAgeOrBySize(t *testing.T) {
	w := newWorld(t)
	due := func(d compaction.Due, now base.Millis) (wait time.Duration, some bool) {
		w.view.Inspect(func(s *shard.State) { wait, some = d.Wait(s, now, compaction.Limits{}) })
		return wait, some
	}
	minute := compaction.Due{Age: time.Minute, Bytes: 1 << 20}
	_, some := due(minute, 0)
	require.False(t, some, "nothing is raw")

	w.appendTo(0, 0, 10)
	var appended base.Millis
	w.view.Inspect(func(s *shard.State) { appended = s.Time() })
	wait, some := due(minute, appended)
	require.True(t, some)
	require.Equal(t, 10*time.Second, wait, "the table's commit interval is shorter than a minute")
	wait, _ = due(minute, appended+4000)
	require.Equal(t, 6*time.Second, wait)
	wait, _ = due(minute, appended+99_000)
	require.Zero(t, wait)
	wait, _ = due(compaction.Due{Age: time.Second, Bytes: 1 << 20}, appended)
	require.Equal(t, time.Second, wait)
	wait, _ = due(compaction.Due{Age: time.Minute, Bytes: 1}, appended)
	require.Zero(t, wait)
	wait, _ = due(minute, appended-99_000)
	require.Equal(t, 10*time.Second, wait, "a clock behind the server's does not make it wait longer")
}
