package wal_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/format/walobject"
	"github.com/lakestream-go/lakestream/internal/wal"
)

var testForm = wal.Form{Cluster: cluster, Shard: testShard, Alignment: 1}

// sealedObject returns the object that holds one append of the batch.
func sealedObject(t *testing.T, batch *wal.Batch) *wal.Object {
	t.Helper()
	a, err := wal.Encode(batch, 1<<20)
	require.NoError(t, err)
	core := wal.NewCore(wal.CoreConfig{MaxObjectBytes: 1 << 20, EagerBytes: 1, UploadConcurrency: 1})
	core.Add(a)
	core.WriterOpened(1)
	for _, action := range core.Take(nil) {
		if action.Kind == wal.Upload {
			return action.Object
		}
	}
	t.Fatal("nothing to upload")
	return nil
}

func TestTheLargestObjectsRecordFitsTheCommitLog(t *testing.T) {
	batch := &wal.Batch{}
	for i := range wal.MaxBlocks {
		batch.Logs = append(batch.Logs, wal.LogRecords{
			Log:     base.LogID{Stream: math.MaxUint64 - base.StreamID(i), Partition: math.MaxInt32},
			Records: []recordbatch.Record{{Timestamp: math.MinInt64}, {Timestamp: math.MaxInt64}},
		})
	}
	o := sealedObject(t, batch)
	_, err := o.Build(&testForm, math.MaxUint64, math.MaxUint64, nil)
	require.NoError(t, err)
	data, err := commitrecord.Encode(commitrecord.Envelope{}, o.Record(math.MaxUint64, math.MaxUint64))
	require.NoError(t, err)
	require.LessOrEqual(t, len(data), commitrecord.MaxBytes/2+200, "half of a record, and the envelope")
}

func TestBlocksAreInTheOrderOfTheirLogs(t *testing.T) {
	batch := &wal.Batch{}
	for _, p := range []base.Partition{3, 0, 2, 0, 1} {
		batch.Logs = append(batch.Logs, wal.LogRecords{
			Log: base.LogID{Stream: 1, Partition: p}, Records: []recordbatch.Record{{Timestamp: 5}},
		})
	}
	o := sealedObject(t, batch)
	data, err := o.Build(&testForm, 1, 1, nil)
	require.NoError(t, err)
	parsed, err := walobject.Parse(data)
	require.NoError(t, err)
	var partitions []base.Partition
	var records []int
	for _, b := range parsed.Blocks {
		partitions = append(partitions, b.Log.Partition)
		records = append(records, b.Records)
	}
	require.Equal(t, []base.Partition{0, 1, 2, 3}, partitions)
	require.Equal(t, []int{2, 1, 1, 1}, records, "a log named twice has one block")
}

func TestARebuiltObjectDiffersOnlyInItsHeader(t *testing.T) {
	o := sealedObject(t, &wal.Batch{Logs: []wal.LogRecords{{Log: base.LogID{Stream: 1}, Records: []recordbatch.Record{{Value: []byte("v")}}}}})
	data, err := o.Build(&testForm, 1, 1, nil)
	require.NoError(t, err)
	first := slices.Clone(data)
	data, err = o.Build(&testForm, 7, 3, nil)
	require.NoError(t, err)
	parsed, err := walobject.Parse(data)
	require.NoError(t, err)
	require.EqualValues(t, 7, parsed.Header.Writer)
	require.EqualValues(t, 3, parsed.Header.Seq)
	require.Equal(t, first[44:], data[44:])
}
