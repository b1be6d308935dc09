package base_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
)

func TestObjectKeysHaveTheirDocumentedForm(t *testing.T) {
	require.Equal(t, "wal/s00/17/00000000000000000003.wal", base.WALKey(0, 17, 3))
	log := base.LogID{Stream: 5, Partition: 2}
	require.Equal(t, "compacted/s12/17/5-2-100-250-9.parquet",
		base.CompactedKey(12, 17, log, base.OffsetRange{Start: 100, End: 250}, 9))
}

func TestAKeyNamesItsShardAndWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shard := base.Shard(rapid.Uint16Range(0, base.MaxShards-1).Draw(t, "shard"))
		writer := base.WriterID(rapid.Uint64Min(1).Draw(t, "writer"))
		seq := base.Seq(rapid.Uint64().Draw(t, "seq"))
		log := base.LogID{Stream: base.StreamID(rapid.Uint64().Draw(t, "stream")), Partition: base.Partition(rapid.Int32Min(0).Draw(t, "partition"))}
		start := rapid.Int64Min(0).Draw(t, "start")
		r := base.OffsetRange{Start: base.Offset(start), End: base.Offset(rapid.Int64Min(start).Draw(t, "end"))}
		for _, key := range []string{base.WALKey(shard, writer, seq), base.CompactedKey(shard, writer, log, r, seq)} {
			gotShard, gotWriter, err := base.WriterOfKey(key)
			require.NoError(t, err, key)
			require.Equal(t, shard, gotShard)
			require.Equal(t, writer, gotWriter)
		}
	})
}

// Seqs are padded so that a list of a writer's objects comes in their order.
func TestWALKeysSortBySeq(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := base.Seq(rapid.Uint64().Draw(t, "a")), base.Seq(rapid.Uint64().Draw(t, "b"))
		got := strings.Compare(base.WALKey(1, 2, a), base.WALKey(1, 2, b))
		switch {
		case a < b:
			require.Negative(t, got)
		case a > b:
			require.Positive(t, got)
		default:
			require.Zero(t, got)
		}
	})
}

// A collector deletes by what a key says, so a key that says it in another way
// than this software is not this software's.
func TestAKeyThatWeDidNotWriteNamesNobody(t *testing.T) {
	for _, key := range []string{
		"", "wal", "wal/s00/17", "wal/s00/17/1.wal/x", "checkpoint/s00/17/x", "warehouse/s00/17/x", "/s00/17/x",
		"wal/s0/17/1.wal", "wal/s64/17/1.wal", "wal/s65535/17/1.wal", "wal/s00/0/1.wal", "wal/s00/017/1.wal", "wal/s00/-1/1.wal",
		"wal/s00/+1/1.wal", "wal/s00/x/1.wal", "wal/s00//1.wal", "wal/s00/18446744073709551616/1.wal",
	} {
		_, _, err := base.WriterOfKey(key)
		require.ErrorIs(t, err, base.ErrInvalid, key)
	}
}
