package shard_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

var update = flag.Bool("update", false, "write the golden log again")

const goldenLog = "testdata/history.golden"

// goldenHistory is a fixed log with a record of every kind, refusals of most
// kinds, and strays.
func goldenHistory(t *testing.T) [][]byte {
	t.Helper()
	again := preparedOf(6, 4, 9, "data/again")
	again.Ranges[0].Replaces = "data/second"
	letters := preparedOf(5, 4, 9, "data/second")
	letters.Ranges[0].DeadLetterUuid, letters.Ranges[0].Filtered = "letters", 0
	var all [][]byte
	for _, p := range []commitrecord.Payload{
		&commitpb.ClusterCreate{Shards: 4, FoldVersion: 1},
		&commitpb.StreamCreate{Namespace: "shop", Name: "orders", Partitions: 2, Table: &commitpb.TablePolicy{Name: new("orders")}},
		open('a'),
		appendOf(1, 0, 4),
		appendOf(2, 0, 5),
		appendOf(2, 0, 5),
		appendOf(3, 1, 0),
		preparedOf(4, 0, 4, "data/first"),
		letters,
		again,
		&commitpb.Materialized{Stream: orders, TableUuid: "table", Snapshot: 9, CommitId: "c", Partition: []uint32{0, 1}, End: []uint64{4, 1}},
		compactOf(7, 5, 0, 9),
		compactOf(8, 5, 3, 9),
		&commitpb.Reclaimed{Keys: []string{"wal/s03/3/00000000000000000001.wal"}},
		&commitpb.StreamUpdate{Stream: orders, ExpectedVersion: 2, Table: &commitpb.TablePolicy{CommitIntervalMs: new(int64(5000))}},
		&commitpb.FoldVersion{Version: 1},
		open('b'),
		&commitpb.WriterFence{Writers: []uint64{writer}},
		&commitpb.StreamCreate{Namespace: "web", Name: "clicks", Partitions: 1},
		&commitpb.StreamCreate{Namespace: "shop", Name: "orders", Partitions: 1},
	} {
		all = append(all, shardtest.Encode(t, p))
	}
	late := preparedOf(1, 0, 4, "data/late")
	late.Writer = 17
	return append(all, nil, []byte("a stray record"),
		shardtest.Encode(t, &commitpb.TableReset{Stream: orders, TableUuid: "table"}), shardtest.Encode(t, late))
}

// The fold's rules are a format: two binaries that fold one log to two states
// have lost it. A change here needs a new fold version.
func TestTheGoldenLogFoldsAsItAlwaysDid(t *testing.T) {
	l := ledger{t: t, State: shard.NewState(shardtest.Cluster, testShard)}
	requireGolden(t, goldenLog, transcript(t, l, goldenHistory(t)))
}

func describe(out shard.Outcome) string {
	reason := func(why shard.Reason) string {
		if why == shard.Accepted {
			return "accepted"
		}
		return string(why)
	}
	text := reason(out.Rejected)
	for _, l := range out.Logs {
		text += fmt.Sprintf("; log %s from %d: %s", l.Log, l.Base, reason(l.Rejected))
	}
	return text
}
