package shard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

// ledger is a state to which a test tells records one after another, each a
// second after the one before.
type ledger struct {
	t *testing.T
	*shard.State
}

// newLedger returns a shard with a stream of two partitions (id 2) and an open
// writer (id 3).
func newLedger(t *testing.T) ledger {
	t.Helper()
	l := ledger{t: t, State: shard.NewState(shardtest.Cluster, testShard)}
	l.accept(&commitpb.ClusterCreate{Shards: 4, FoldVersion: commitrecord.FoldVersion})
	l.accept(&commitpb.StreamCreate{Namespace: "shop", Name: "orders", Partitions: 2})
	l.accept(open('a'))
	return l
}

const (
	orders = 2
	writer = 3
)

func open(token byte) *commitpb.WriterOpen {
	b := make([]byte, 16)
	b[0] = token
	return &commitpb.WriterOpen{Token: b, Instance: "machine"}
}

func (l ledger) put(data []byte) (shard.Outcome, error) {
	return l.Apply(l.Revision()+1, 1000*base.Millis(l.Revision()+1), data) //nolint:gosec // small
}

func (l ledger) publish(p commitrecord.Payload) shard.Outcome {
	l.t.Helper()
	out, err := l.put(shardtest.Encode(l.t, p))
	require.NoError(l.t, err)
	return out
}

func (l ledger) accept(p commitrecord.Payload) shard.Outcome {
	l.t.Helper()
	out := l.publish(p)
	require.Equal(l.t, shard.Accepted, out.Rejected)
	for _, part := range out.Logs {
		require.Equal(l.t, shard.Accepted, part.Rejected, "log %s", part.Log)
	}
	return out
}

func (l ledger) refuse(why shard.Reason, p commitrecord.Payload) {
	l.t.Helper()
	before := shardtest.DumpOf(l.State)
	require.Equal(l.t, why, l.publish(p).Rejected)
	require.Equal(l.t, before.Streams, shardtest.DumpOf(l.State).Streams)
}

// append adds records to one partition of the stream.
func (l ledger) append(seq uint64, partition, records uint32) shard.Outcome {
	l.t.Helper()
	return l.accept(appendOf(seq, partition, records))
}

func appendOf(seq uint64, partition, records uint32) *commitpb.Append {
	return &commitpb.Append{
		Writer: writer, Seq: seq, Size: 1000, Stream: []uint64{orders}, Partition: []uint32{partition}, Records: []uint32{records},
		Pos: []uint32{64}, Len: []uint32{100}, MinTime: []int64{0}, MaxTime: []int64{1},
	}
}

func compactOf(seq, read, start, end uint64) *commitpb.Compact {
	return &commitpb.Compact{
		Writer: writer, Seq: seq, ReadRevision: read, Stream: []uint64{orders}, Partition: []uint32{0},
		Start: []uint64{start}, End: []uint64{end}, Size: []uint64{500},
	}
}

func preparedOf(seq, start, end uint64, path string) *commitpb.Prepared {
	return &commitpb.Prepared{Writer: writer, Seq: seq, Ranges: []*commitpb.PreparedRange{{
		Stream: orders, Start: start, End: end, TableUuid: "table", Main: []*commitpb.DataFile{{Path: path, Rows: end - start}},
	}}}
}

func (l ledger) log(partition base.Partition) *shard.Log {
	l.t.Helper()
	found, ok := l.Log(base.LogID{Stream: orders, Partition: partition})
	require.True(l.t, ok)
	return found
}
