package recordbatch_test

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

func castagnoli(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// kafkaRead has a Kafka client parse a block whose batches carry their offsets.
func kafkaRead(block []byte) kgo.FetchPartition {
	partition := kmsg.NewFetchResponseTopicPartition()
	partition.RecordBatches = block
	fetched, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Topic: "t"}, &partition, kgo.DefaultDecompressor(), nil)
	return fetched
}

// patched gives the batches of an entry their real base offsets.
func patched(t require.TestingT, entry recordbatch.Entry) []byte {
	next := entry.Base
	for rest := entry.Data; len(rest) > 0; {
		info, err := recordbatch.InspectBatch(rest)
		require.NoError(t, err)
		recordbatch.PatchBase(rest, next)
		next += base.Offset(info.Records)
		rest = rest[info.Bytes:]
	}
	return entry.Data
}

func TestKafkaClientReadsWhatWeWrite(t *testing.T) {
	eachCompression(t, func(t *testing.T, compression recordbatch.Compression) {
		rapid.Check(t, func(t *rapid.T) {
			first, second := genRecords(t, "first", 1), genRecords(t, "second", 0)
			for _, records := range [][]recordbatch.Record{first, second} {
				for i := range records { // the client computes in time.Time
					records[i].Timestamp %= 1 << 40
				}
			}
			entry := entryOf(compression, first, second)
			entry.Base = 1000
			fetched := kafkaRead(patched(t, entry))
			require.NoError(t, fetched.Err)
			want := append(first, second...)
			require.Len(t, fetched.Records, len(want))
			for i, got := range fetched.Records {
				require.Equal(t, int64(1000+i), got.Offset)
				require.Equal(t, int64(want[i].Timestamp), got.Timestamp.UnixMilli())
				require.Equal(t, want[i].Key, got.Key)
				require.Equal(t, want[i].Value, got.Value)
				require.EqualValues(t, -1, got.ProducerID)
				require.EqualValues(t, -1, got.ProducerEpoch)
				require.Len(t, got.Headers, len(want[i].Headers))
				for j, h := range got.Headers {
					require.Equal(t, want[i].Headers[j].Key, h.Key)
					require.Equal(t, want[i].Headers[j].Value, h.Value)
				}
			}
		})
	})
}

func TestWeReadWhatKafkaMessagesWrite(t *testing.T) {
	record := kmsg.NewRecord()
	record.TimestampDelta64 = 5
	record.Key, record.Value = []byte("k"), []byte("v")
	record.Headers = []kmsg.Header{{Key: "h", Value: []byte("x")}}
	record.Length = 12
	body := record.AppendTo(nil)
	require.Len(t, body, 13)
	batch := kmsg.NewRecordBatch()
	batch.Magic, batch.NumRecords = 2, 1
	batch.FirstTimestamp, batch.MaxTimestamp = 100, 105
	batch.ProducerID, batch.ProducerEpoch, batch.FirstSequence = -1, -1, -1
	batch.Records = body
	batch.Length = 49 + 13
	encoded := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(encoded[17:], castagnoli(encoded[21:]))
	got, err := readEntry(recordbatch.Entry{Records: 1, Data: encoded})
	require.NoError(t, err)
	requireSame(t, []recordbatch.Record{{
		Timestamp: 105, Key: []byte("k"), Value: []byte("v"), Headers: []recordbatch.Header{{Key: "h", Value: []byte("x")}},
	}}, got, 0)
}
