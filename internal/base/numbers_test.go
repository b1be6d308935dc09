package base_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
)

func TestEveryShardReadsBackFromItsName(t *testing.T) {
	for n := range base.MaxShards {
		shard := base.Shard(n)
		read, err := base.ParseShard(shard.String())
		require.NoError(t, err)
		require.Equal(t, shard, read)
	}
	meta, err := base.ParseShard("meta")
	require.NoError(t, err)
	require.Equal(t, base.MetaShard, meta)
	require.Equal(t, "s00", base.Shard(0).String())
	require.Equal(t, "s63", base.Shard(63).String())
}

func TestAShardHasOneNameOnly(t *testing.T) {
	for _, text := range []string{"", "s", "s0", "s7", "s007", "s64", "s65535", "S01", "s+1", "s-1", "x01", "Meta", "metadata", "01"} {
		_, err := base.ParseShard(text)
		require.ErrorIs(t, err, base.ErrInvalid, text)
		require.ErrorContains(t, err, "want s00", text)
	}
}

func TestLogsOrderByStreamThenPartition(t *testing.T) {
	log := func(stream base.StreamID, partition base.Partition) base.LogID {
		return base.LogID{Stream: stream, Partition: partition}
	}
	ordered := []base.LogID{log(1, 0), log(1, 1), log(1, 10), log(2, 0), log(10, 0), log(math.MaxUint64, math.MaxInt32)}
	for i, a := range ordered {
		for j, b := range ordered {
			switch {
			case i < j:
				require.Negative(t, a.Compare(b), "%s and %s", a, b)
			case i > j:
				require.Positive(t, a.Compare(b), "%s and %s", a, b)
			default:
				require.Zero(t, a.Compare(b))
			}
		}
	}
	require.Equal(t, "12-3", log(12, 3).String())
}

func TestARangeIsHalfOpen(t *testing.T) {
	r := base.OffsetRange{Start: 5, End: 8}
	require.EqualValues(t, 3, r.Len())
	for offset, inside := range map[base.Offset]bool{4: false, 5: true, 7: true, 8: false} {
		require.Equal(t, inside, r.Contains(offset), "offset %d", offset)
	}
	require.Equal(t, "[5, 8)", r.String())
}

func TestMillisRoundTripThroughTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := base.Millis(rapid.Int64Range(-62_135_596_800_000, 253_402_300_799_999).Draw(t, "ms"))
		require.Equal(t, m, base.MillisOf(m.Time()))
		require.Equal(t, time.UTC, m.Time().Location())
	})
	require.Equal(t, base.Millis(1), base.MillisOf(time.Unix(0, 1_999_999)), "a part of a millisecond is cut off")
}

func TestAClusterIDReadsBackFromItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var id base.ClusterID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), len(id), len(id)).Draw(t, "id"))
		read, err := base.ParseClusterID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, read)
	})
	require.True(t, base.ClusterID{}.IsZero())
	require.False(t, base.ClusterID{15: 1}.IsZero())
}

func TestWhatIsNoClusterIDIsRefused(t *testing.T) {
	for _, text := range []string{"", "00", "0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdeg", "0123456789abcdef0123456789abcdef0"} {
		id, err := base.ParseClusterID(text)
		require.ErrorIs(t, err, base.ErrInvalid, text)
		require.True(t, id.IsZero(), "nothing half read of %q", text)
	}
}

func TestAHashShowsItsFirstDigits(t *testing.T) {
	require.Equal(t, "0102030405060708", base.Hash{1, 2, 3, 4, 5, 6, 7, 8, 9}.String())
}

func TestTheSystemClockGoesOn(t *testing.T) {
	clock := base.SystemClock{}
	before := clock.Now()
	<-clock.After(time.Nanosecond)
	require.False(t, clock.Now().Before(before))
}
