package shard_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

// version2History goes on where the golden log of version 1 ends: with a record of
// every kind that version 2 added, before and after it is allowed.
func version2History(t *testing.T) [][]byte {
	t.Helper()
	const clicks, users, late = 19, 27, 17
	appends := appendOf(2, 0, 4)
	appends.Writer, appends.Stream, appends.Groups = late, []uint64{clicks}, []*commitpb.ProducerGroup{groupOf("p", 0, 4)}
	again := appendOf(3, 0, 4)
	again.Writer, again.Stream, again.Groups = late, []uint64{clicks}, appends.Groups
	fenced := appendOf(4, 0, 1)
	fenced.Writer, fenced.Stream = late, []uint64{clicks}
	var all [][]byte
	for _, p := range []commitrecord.Payload{
		&commitpb.Trim{Stream: clicks, Partition: []uint32{0}, Offset: []uint64{0}},
		&commitpb.FoldVersion{Version: 2},
		&commitpb.StreamCreate{
			Namespace: "web", Name: "users", Partitions: 1, NamespaceId: 4, Retention: &commitpb.Retention{TimeMs: new(int64(1000))},
			Schema: &commitpb.StreamSchema{Type: "JSON"}, Properties: []*commitpb.Property{{Key: "owner", Value: "me"}},
		},
		appends,
		again,
		&commitpb.PartitionsAdd{Stream: clicks, Partitions: 2},
		&commitpb.LogFence{Stream: clicks, Partition: []uint32{0, 1}, Reason: "why"},
		fenced,
		&commitpb.LogUnfence{Stream: clicks, Partition: []uint32{1, 9}},
		&commitpb.Trim{Stream: clicks, Partition: []uint32{0}, Offset: []uint64{2}},
		&commitpb.Trim{Stream: clicks, Partition: []uint32{0}, Offset: []uint64{3}, Hard: true},
		&commitpb.Skip{Stream: clicks, Partition: 0, Start: 0, End: 3, Reason: "trimmed"},
		&commitpb.StreamUpdate{Stream: users, Properties: &commitpb.Properties{SourceRevision: 5}},
		&commitpb.StreamUpdate{Stream: users, ExpectedVersion: 2, Retention: &commitpb.Retention{Bytes: new(int64(9))}},
		&commitpb.NamespaceSeal{Namespace: "web", NamespaceId: 4},
		&commitpb.StreamDelete{Stream: users},
		&commitpb.StreamDelete{Stream: clicks, Purge: true},
		&commitpb.NamespaceSeal{Namespace: "web", NamespaceId: 4},
		&commitpb.StreamCreate{Namespace: "web", Name: "others", Partitions: 1, NamespaceId: 4},
		&commitpb.NamespaceCreate{Namespace: "web"},
		&commitpb.Recovered{Epoch: 1},
	} {
		all = append(all, shardtest.Encode(t, p))
	}
	return all
}

// metaHistory has a record of every kind that belongs into the log meta.
func metaHistory(t *testing.T) [][]byte {
	t.Helper()
	policy, owner := &commitpb.TablePolicy{Name: new("t")}, []*commitpb.Property{{Key: "owner", Value: "me"}}
	var all [][]byte
	for _, p := range []commitrecord.Payload{
		&commitpb.ClusterCreate{Shards: 4, FoldVersion: 2},
		&commitpb.NamespaceCreate{Namespace: "shop", Table: policy, Retention: &commitpb.Retention{Bytes: new(int64(1))}, Properties: owner},
		&commitpb.NamespaceCreate{Namespace: "shop"},
		&commitpb.NamespaceUpdate{NamespaceId: 2, ExpectedVersion: 1, Set: []*commitpb.Property{{Key: "a", Value: "b"}}, Remove: []string{"owner"}},
		&commitpb.NamespaceUpdate{NamespaceId: 2, ExpectedVersion: 1},
		&commitpb.CatalogRegister{Name: "lake", Type: "rest", Connection: owner, Properties: owner},
		&commitpb.CatalogRegister{Name: "lake", Type: "rest"},
		&commitpb.CatalogRegister{Name: "old", Type: "sql"},
		&commitpb.CatalogUnregister{Name: "old"},
		&commitpb.ClusterUpdate{ExpectedVersion: 1, Table: policy},
		&commitpb.NamespaceCreate{Namespace: "web"},
		&commitpb.NamespaceDrop{NamespaceId: 11},
		&commitpb.NamespaceSeal{Namespace: "web", NamespaceId: 11},
	} {
		all = append(all, shardtest.Encode(t, p))
	}
	return all
}

func transcript(t *testing.T, l ledger, history [][]byte) string {
	t.Helper()
	var b strings.Builder
	for _, data := range history {
		out, err := l.put(data)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s\n%d %s at %d ms: %s\n", hex.EncodeToString(data), out.Revision, out.Kind, out.Time, describe(out))
		fmt.Fprintf(&b, "chain %x\nstate %x\n\n", l.ChainHash(), l.Hash())
	}
	return b.String()
}

func requireGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// A log that the version before wrote folds to the states that it folded to there
// (its golden file is the one of that version), and goes on with the new kinds.
func TestALogOfTheVersionBeforeGoesOnWithTheNewKinds(t *testing.T) {
	l := ledger{t: t, State: shard.NewState(shardtest.Cluster, testShard)}
	before, err := os.ReadFile(goldenLog)
	require.NoError(t, err)
	require.Equal(t, string(before), transcript(t, l, goldenHistory(t)))
	requireGolden(t, "testdata/version2.golden", transcript(t, l, version2History(t)))
}

func TestTheGoldenLogOfTheClusterFoldsAsItAlwaysDid(t *testing.T) {
	l := ledger{t: t, State: shard.NewState(shardtest.Cluster, base.MetaShard)}
	requireGolden(t, "testdata/meta.golden", transcript(t, l, metaHistory(t)))
}
