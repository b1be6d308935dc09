package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/history"
)

func TestACheckpointIsDueWhenEnoughHasComeTogether(t *testing.T) {
	due := history.Due{Records: 100, Bytes: 1000, Age: time.Minute}
	for name, try := range map[string]struct {
		history.Progress
		want bool
	}{
		"nothing":       {history.Progress{Age: time.Hour, Bytes: 5000}, false},
		"little":        {history.Progress{Records: 99, Bytes: 999, Age: 59 * time.Second}, false},
		"many records":  {history.Progress{Records: 100}, true},
		"large records": {history.Progress{Records: 1, Bytes: 1000}, true},
		"an old one":    {history.Progress{Records: 1, Age: time.Minute}, true},
	} {
		require.Equal(t, try.want, due.Reached(try.Progress), name)
	}
	require.False(t, history.Due{}.Reached(history.Progress{Records: 1 << 40, Bytes: 1 << 40, Age: time.Hour}), "zero counts for nothing")
}

func checkpointAt(revision base.Revision, instance string) history.StoredCheckpoint {
	return history.StoredCheckpoint{Key: base.CheckpointKey(testShard, revision, instance), Revision: revision}
}

func segmentOf(from, to base.Revision) history.StoredSegment {
	return history.StoredSegment{Key: base.SegmentKey(testShard, from, to), From: from, To: to}
}

func refOf(c history.StoredCheckpoint) history.Ref {
	return history.Ref{Key: c.Key, Revision: c.Revision}
}

func TestTidyingKeepsWhatARecoveryMayNeed(t *testing.T) {
	previous, current := checkpointAt(30, "a"), checkpointAt(40, "a")
	ref := refOf(previous)
	p := history.Pointer{Current: refOf(current), Previous: &ref}
	stored := history.Stored{
		Checkpoints: []history.StoredCheckpoint{
			checkpointAt(10, "a"), checkpointAt(20, "a"), previous, checkpointAt(35, "late"), current, checkpointAt(40, "twin"), checkpointAt(50, "next"),
		},
		Segments: []history.StoredSegment{segmentOf(5, 12), segmentOf(13, 20), segmentOf(21, 29), segmentOf(30, 45)},
	}
	got := history.PlanTidying(p, stored)
	require.Equal(t, base.Revision(30), got.PurgeBelow)
	require.ElementsMatch(t, []string{
		checkpointAt(10, "a").Key, checkpointAt(35, "late").Key, checkpointAt(40, "twin").Key, segmentOf(5, 12).Key, segmentOf(13, 20).Key,
	}, got.Delete, "20 is kept as the spare, and what follows it; 50 may be named next")

	stored.Segments = stored.Segments[:3]
	require.Equal(t, base.Revision(29), history.PlanTidying(p, stored).PurgeBelow, "what is not archived stays in the log")
	stored.Segments = nil
	require.Zero(t, history.PlanTidying(p, stored).PurgeBelow)
	p.Previous = nil
	require.Zero(t, history.PlanTidying(p, stored), "nothing goes while there is one checkpoint")
}

// Whatever is stored, from each checkpoint that is kept up to the previous one the
// segments lead on as they did before.
func TestTidyingNeverBreaksAWayBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stored history.Stored
		for at := base.Revision(1); len(stored.Checkpoints) < rapid.IntRange(2, 8).Draw(t, "checkpoints"); {
			at += base.Revision(rapid.Uint64Range(1, 9).Draw(t, "step"))
			stored.Checkpoints = append(stored.Checkpoints, checkpointAt(at, "a"))
		}
		last := stored.Checkpoints[len(stored.Checkpoints)-1].Revision
		for from := base.Revision(1); from <= last; {
			to := from + base.Revision(rapid.Uint64Range(0, 6).Draw(t, "length"))
			stored.Segments = append(stored.Segments, segmentOf(from, to))
			from = to + 1
		}
		n := rapid.IntRange(1, len(stored.Checkpoints)-1).Draw(t, "current")
		previous := refOf(stored.Checkpoints[n-1])
		p := history.Pointer{Current: refOf(stored.Checkpoints[n]), Previous: &previous}
		got := history.PlanTidying(p, stored)

		gone := make(map[string]bool)
		for _, key := range got.Delete {
			gone[key] = true
		}
		require.False(t, gone[p.Current.Key] || gone[previous.Key])
		require.LessOrEqual(t, got.PurgeBelow, previous.Revision)
		for _, c := range stored.Checkpoints {
			if gone[c.Key] {
				continue
			}
			for _, g := range stored.Segments {
				require.False(t, gone[g.Key] && g.To > c.Revision, "checkpoint %d needs segment %d to %d", c.Revision, g.From, g.To)
			}
		}
	})
}
