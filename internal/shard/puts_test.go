package shard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Given objects that were put over two minutes, then a follower counts those of
// the last one, in which a second that comes round again replaces the old one.
func TestPutsOfTheLastMinuteAreCounted(t *testing.T) {
	f := follow(t)
	at := func(second, seq, partition int) {
		e := next(t, f, f.Envelope(commitrecord.RequestID{}), appendOf(uint64(seq), uint32(partition), 1)) //nolint:gosec // small
		e.Time = base.Millis(1000 * second)
		require.NoError(t, f.Apply(e))
	}
	require.Zero(t, f.Puts(0))
	at(10, 1, 0)
	at(10, 2, 1)
	at(40, 3, 0)
	require.EqualValues(t, 3, f.Puts(40_999))
	require.EqualValues(t, 3, f.Puts(69_999))
	require.EqualValues(t, 1, f.Puts(70_000), "the tenth second is a minute ago")
	at(70, 4, 0)
	require.EqualValues(t, 2, f.Puts(70_000))
	require.Zero(t, f.Puts(1000*(70+shard.PutWindow)))
}

func TestTheSizesOfLiveAndDeadObjectsAreKnown(t *testing.T) {
	l := newLedger(t)
	sizes := func() [2]int64 {
		live, dead := l.ObjectBytes()
		return [2]int64{live, dead}
	}
	require.Equal(t, [2]int64{0, 0}, sizes())
	l.append(1, 0, 10)
	l.append(2, 0, 10)
	require.Equal(t, [2]int64{2000, 0}, sizes())
	l.accept(compactOf(3, 4, 0, 10))
	require.Equal(t, [2]int64{1500, 1000}, sizes(), "the compacted object took the place of a raw one")
	l.accept(&commitpb.Reclaimed{Keys: []string{base.WALKey(testShard, writer, 1)}})
	require.Equal(t, [2]int64{1500, 0}, sizes())
}
