package log

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// retention returns what may go of a shard's log now.
func (s *foldedShard) retention(limit base.Offset, keep Keep) (to base.Offset) {
	s.follower.Inspect(func(st *shard.State) {
		l, ok := st.Log(s.log)
		require.True(s.t, ok)
		to = RetentionOffset(st, l, limit, s.now, keep)
	})
	return to
}

func (s *foldedShard) entries() (all []shard.Entry) {
	s.follower.Inspect(func(st *shard.State) {
		l, _ := st.Log(s.log)
		all = st.Entries(l, l.Start(), l.Len())
	})
	return all
}

func (s *foldedShard) trim(to base.Offset, hard bool) {
	s.t.Helper()
	s.put(&commitpb.Trim{Stream: uint64(s.log.Stream), Partition: []uint32{1}, Offset: []uint64{uint64(to)}, Hard: hard}) //nolint:gosec // small
}

const noLimit base.Offset = math.MaxInt64

func TestRetentionByTimeIsExactToTheEntry(t *testing.T) {
	s := newFoldedShard(t)
	for range 4 {
		s.append(10)
	}
	// Entries end at 10, 20, 30 and 40; each is 5 ms younger than the one before,
	// and the last is of now.
	for _, c := range []struct {
		keep time.Duration
		want base.Offset
	}{
		{-1, 0},
		{0, 40},
		{time.Millisecond, 30},
		{4 * time.Millisecond, 30},
		{5 * time.Millisecond, 20},
		{10 * time.Millisecond, 10},
		{15 * time.Millisecond, 0},
		{time.Hour, 0},
		{math.MaxInt64, 0},
	} {
		require.Equal(t, c.want, s.retention(noLimit, Keep{Time: c.keep, Bytes: -1}), "%s", c.keep)
	}
}

func TestRetentionByBytesKeepsAtLeastThatMuch(t *testing.T) {
	s := newFoldedShard(t)
	for range 4 {
		s.append(10)
	}
	s.compact(0, 20)
	entries := s.entries()
	require.Len(t, entries, 3)
	old, middle, young := entries[0].Size, entries[1].Len, entries[2].Len
	require.Equal(t, shard.Compacted, entries[0].Storage)
	require.Less(t, young, entries[2].Size, "a raw entry counts its blocks, not the object that it shares")
	for _, c := range []struct {
		keep int64
		want base.Offset
	}{
		{-1, 0},
		{0, 40},
		{1, 30},
		{young, 30},
		{young + 1, 20},
		{young + middle, 20},
		{young + middle + 1, 0},
		{young + middle + old, 0},
		{math.MaxInt64, 0},
	} {
		require.Equal(t, c.want, s.retention(noLimit, Keep{Time: -1, Bytes: c.keep}), "%d bytes", c.keep)
	}
}

func TestWhatEitherBoundGivesUpMayGo(t *testing.T) {
	s := newFoldedShard(t)
	for range 4 {
		s.append(10)
	}
	young := s.entries()[3].Len
	require.Equal(t, base.Offset(30), s.retention(noLimit, Keep{Time: 10 * time.Millisecond, Bytes: young}))
	require.Equal(t, base.Offset(20), s.retention(noLimit, Keep{Time: 5 * time.Millisecond, Bytes: 100 * young}))
	require.Equal(t, base.Offset(40), s.retention(noLimit, Keep{Time: time.Hour, Bytes: 0}))
}

func TestRetentionStopsAtALimitInWholeEntries(t *testing.T) {
	s := newFoldedShard(t)
	for range 3 {
		s.append(10)
	}
	for limit, want := range map[base.Offset]base.Offset{0: 0, 9: 0, 10: 10, 19: 10, 29: 20, 30: 30, 31: 30} {
		require.Equal(t, want, s.retention(limit, Keep{}), "limit %d", limit)
	}
}

func TestRetentionNeverMovesBackNorTouchesAnEmptyLog(t *testing.T) {
	s := newFoldedShard(t)
	for _, keep := range []Keep{{}, {Time: -1, Bytes: -1}, {Time: time.Hour, Bytes: 1}} {
		require.Zero(t, s.retention(noLimit, keep))
	}
	s.append(10)
	s.append(10)
	s.trim(5, false)
	require.Equal(t, base.Offset(5), s.retention(noLimit, Keep{Time: -1, Bytes: -1}))
	require.Equal(t, base.Offset(5), s.retention(3, Keep{}), "a limit before the start")
	require.Equal(t, base.Offset(5), s.retention(noLimit, Keep{Time: -1, Bytes: math.MaxInt64}))
	require.Equal(t, base.Offset(10), s.retention(noLimit, Keep{Time: -1, Bytes: 1}))
	s.trim(20, true)
	require.Equal(t, base.Offset(20), s.retention(noLimit, Keep{}))
}

// The bounds are checked against what they mean, entry by entry.
func TestPropertyRetentionGivesUpExactlyTheEntriesThatMayGo(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := newFoldedShard(t)
		for range rapid.IntRange(0, 8).Draw(r, "entries") {
			s.append(rapid.IntRange(1, 5).Draw(r, "records"))
		}
		if all := s.entries(); len(all) > 1 && rapid.Bool().Draw(r, "compact") {
			last := rapid.IntRange(0, len(all)-1).Draw(r, "compacted")
			s.compact(0, all[last].Range.End)
		}
		keep := Keep{
			Time:  time.Duration(rapid.IntRange(-1, 50).Draw(r, "ms")) * time.Millisecond,
			Bytes: rapid.Int64Range(-1, 1500).Draw(r, "bytes"),
		}
		limit := base.Offset(rapid.Int64Range(0, 45).Draw(r, "limit"))
		var want base.Offset
		entries := s.entries()
		for i, e := range entries {
			var beyond int64
			for _, kept := range entries[i+1:] {
				beyond += entryBytes(&kept)
			}
			age := time.Duration(s.now-e.AppendTime) * time.Millisecond
			old := keep.Time == 0 || keep.Time > 0 && age > keep.Time
			much := keep.Bytes >= 0 && beyond >= keep.Bytes
			if e.Range.End > limit || !old && !much {
				break
			}
			want = e.Range.End
		}
		if got := s.retention(limit, keep); got != want {
			r.Fatalf("%+v up to %d: %d, want %d", keep, limit, got, want)
		}
	})
}
