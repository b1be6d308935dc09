package commitrecord_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// samples holds one payload of every kind with every field set.
func samples() map[commitrecord.Kind]commitrecord.Payload {
	table := &commitpb.TablePolicy{
		Enabled: new(true), Namespace: new("github"), Name: new("webhooks"),
		CommitIntervalMs: new(int64(10_000)), SystemColumns: []string{"partition", "offset", "timestamp"},
	}
	retention := &commitpb.Retention{
		TimeMs: new(int64(86_400_000)), Bytes: new(int64(-1)), WaitForTablesMs: new(int64(604_800_000)), WaitForGroups: new(true),
	}
	properties := []*commitpb.Property{{Key: "owner", Value: "team-a"}, {Key: "tier", Value: "gold"}}
	file := func(path string, rows uint64) *commitpb.DataFile {
		return &commitpb.DataFile{Path: path, Size: 4096, Rows: rows}
	}
	return map[commitrecord.Kind]commitrecord.Payload{
		commitrecord.KindClusterCreate: &commitpb.ClusterCreate{Shards: 4, FoldVersion: 1},
		commitrecord.KindFoldVersion:   &commitpb.FoldVersion{Version: 2},
		commitrecord.KindStreamCreate: &commitpb.StreamCreate{
			Namespace: "github", Name: "webhooks", Partitions: 4, Table: table, NamespaceId: 7, Retention: retention,
			Schema: &commitpb.StreamSchema{Type: "JSON", Definition: []byte("{}"), Properties: properties}, Properties: properties,
		},
		commitrecord.KindStreamUpdate: &commitpb.StreamUpdate{
			Stream: 2, ExpectedVersion: 1, Table: table, Retention: retention,
			Properties: &commitpb.Properties{Values: properties, SourceRevision: 3},
		},
		commitrecord.KindWriterOpen:  &commitpb.WriterOpen{Token: []byte("0123456789abcdef"), Instance: "machine-1"},
		commitrecord.KindWriterFence: &commitpb.WriterFence{Writers: []uint64{3, 300}},
		commitrecord.KindAppend: &commitpb.Append{
			Writer: 3, Seq: 1, Size: 70_000, Stream: []uint64{2, 2}, Partition: []uint32{0, 3}, Records: []uint32{100, 1},
			Pos: []uint32{64, 65_000}, Len: []uint32{64_000, 200}, MinTime: []int64{-1, 1_700_000_000_000}, MaxTime: []int64{0, 1_700_000_000_001},
			Groups: []*commitpb.ProducerGroup{{Producer: "kafka-eu/orders/3", First: []uint64{9, 1 << 40}, Count: []uint64{1, 100}, Block: []uint32{0, 1}}},
		},
		commitrecord.KindCompact: &commitpb.Compact{
			Writer: 5, Seq: 2, ReadRevision: 9, Stream: []uint64{2}, Partition: []uint32{3}, Start: []uint64{7}, End: []uint64{1007}, Size: []uint64{1 << 33},
		},
		commitrecord.KindPrepared: &commitpb.Prepared{Writer: 5, Seq: 3, Ranges: []*commitpb.PreparedRange{{
			Stream: 2, Partition: 3, Start: 7, End: 1007, TableUuid: "uuid-main", SchemaId: 1, SpecId: 2,
			Main: []*commitpb.DataFile{file("data/a.parquet", 998)}, DeadLetterUuid: "uuid-dlt",
			DeadLetter: []*commitpb.DataFile{file("data/b.parquet", 1)}, Filtered: 1, Replaces: "data/lost.parquet", Skipped: "trimmed",
		}}},
		commitrecord.KindMaterialized: &commitpb.Materialized{
			Stream: 2, TableUuid: "uuid-main", DeadLetterUuid: "uuid-dlt", Snapshot: 1 << 60, CommitId: "commit-main",
			Partition: []uint32{0, 3}, End: []uint64{100, 1007}, DeadLetterSnapshot: 77, DeadLetterCommitId: "commit-dlt",
		},
		commitrecord.KindReclaimed:  &commitpb.Reclaimed{Keys: []string{"wal/s00/3/00000000000000000001.wal"}},
		commitrecord.KindTableReset: &commitpb.TableReset{Stream: 2, TableUuid: "uuid-main"},

		commitrecord.KindPartitionsAdd:   &commitpb.PartitionsAdd{Stream: 2, Partitions: 8},
		commitrecord.KindStreamDelete:    &commitpb.StreamDelete{Stream: 2, Purge: true},
		commitrecord.KindNamespaceCreate: &commitpb.NamespaceCreate{Namespace: "github", Table: table, Retention: retention, Properties: properties},
		commitrecord.KindNamespaceUpdate: &commitpb.NamespaceUpdate{
			NamespaceId: 7, ExpectedVersion: 1, Table: table, Retention: retention, Set: properties, Remove: []string{"owner"},
		},
		commitrecord.KindNamespaceDrop:     &commitpb.NamespaceDrop{NamespaceId: 7},
		commitrecord.KindNamespaceSeal:     &commitpb.NamespaceSeal{Namespace: "github", NamespaceId: 7, Undo: true},
		commitrecord.KindClusterUpdate:     &commitpb.ClusterUpdate{ExpectedVersion: 1, Table: table, Retention: retention},
		commitrecord.KindCatalogRegister:   &commitpb.CatalogRegister{Name: "lake", Type: "rest", Connection: properties, Properties: properties},
		commitrecord.KindCatalogUnregister: &commitpb.CatalogUnregister{Name: "lake"},
		commitrecord.KindLogFence:          &commitpb.LogFence{Stream: 2, Partition: []uint32{0, 3}, Reason: "moved away"},
		commitrecord.KindLogUnfence:        &commitpb.LogUnfence{Stream: 2, Partition: []uint32{0, 3}},
		commitrecord.KindTrim:              &commitpb.Trim{Stream: 2, Partition: []uint32{0, 3}, Offset: []uint64{100, 7}, Hard: true},
		commitrecord.KindSkip:              &commitpb.Skip{Stream: 2, Partition: 3, Start: 7, End: 100, Reason: "trimmed"},
		commitrecord.KindRecovered:         &commitpb.Recovered{Epoch: 1},
	}
}

var sampleEnvelope = commitrecord.Envelope{
	Cluster:      base.ClusterID{0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10},
	SeenRevision: 41,
	SeenHash:     commitrecord.HashPrefix{0xa0, 0xa1, 15: 0xaf},
	Request:      commitrecord.RequestID{0xb0, 0xb1, 15: 0xbf},
}

// encode returns the record of a payload in the sample envelope.
func encode(tb testing.TB, payload commitrecord.Payload) []byte {
	tb.Helper()
	data, err := commitrecord.Encode(sampleEnvelope, payload)
	require.NoError(tb, err)
	return data
}

// seal replaces the checksum by one that fits: what a writer of such bytes would
// have stored.
func seal(data []byte) []byte {
	body := bytes.Clone(data[:len(data)-4])
	return binary.BigEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

func drawEnvelope(t *rapid.T) commitrecord.Envelope {
	var env commitrecord.Envelope
	array := func(label string) []byte { return rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label) }
	copy(env.Cluster[:], array("cluster"))
	copy(env.SeenHash[:], array("hash"))
	copy(env.Request[:], array("request"))
	env.SeenRevision = base.Revision(rapid.Uint64().Draw(t, "revision"))
	return env
}

// drawPayload fills a payload of any kind with any values, field by field.
func drawPayload(t *rapid.T) (commitrecord.Kind, commitrecord.Payload) {
	all := samples()
	kind := commitrecord.Kind(rapid.IntRange(1, len(all)).Draw(t, "kind")) //nolint:gosec // small
	payload := all[kind]
	drawFields(t, payload.ProtoReflect())
	return kind, payload
}
