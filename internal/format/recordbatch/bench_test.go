package recordbatch_test

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

// BenchmarkEncode appends 1,000 records of 142 bytes: runs, then the block.
func BenchmarkEncode(b *testing.B) {
	for _, compression := range compressions {
		b.Run(compression.String(), func(b *testing.B) {
			records := numbered(1000, 142)
			var buffer, block []byte
			runs := make([]recordbatch.Run, 0, 8)
			b.ReportAllocs()
			for b.Loop() {
				buffer, runs = buffer[:0], runs[:0]
				for rest := records; len(rest) > 0; {
					var run recordbatch.Run
					buffer, run = recordbatch.AppendRun(buffer, rest)
					runs = append(runs, run)
					rest = rest[run.Records:]
				}
				block = recordbatch.AppendBlock(block[:0], slices.Values(runs), compression)
			}
			perRecord(b, len(records))
		})
	}
}

// BenchmarkJoin makes batches of runs of one record each.
func BenchmarkJoin(b *testing.B) {
	var runs []recordbatch.Run
	for _, r := range numbered(1000, 142) {
		runs = append(runs, runsOf([]recordbatch.Record{r})...)
	}
	var block []byte
	b.ReportAllocs()
	for b.Loop() {
		block = recordbatch.AppendBlock(block[:0], slices.Values(runs), recordbatch.None)
	}
	perRecord(b, len(runs))
}

func BenchmarkDecode(b *testing.B) {
	for _, compression := range compressions {
		b.Run(compression.String(), func(b *testing.B) {
			entry := entryOf(compression, numbered(1000, 142))
			r := recordbatch.NewReader(recordbatch.MaxBatchBytes)
			b.ReportAllocs()
			for b.Loop() {
				r.Reset(entry)
				for {
					if _, err := r.Next(); err != nil {
						if !errors.Is(err, io.EOF) {
							b.Fatal(err)
						}
						break
					}
				}
			}
			perRecord(b, entry.Records)
		})
	}
}

func BenchmarkDecodeKafkaClient(b *testing.B) {
	entry := entryOf(recordbatch.None, numbered(1000, 142))
	block := patched(b, entry)
	for b.Loop() {
		kafkaRead(block)
	}
	perRecord(b, entry.Records)
}

func perRecord(b *testing.B, records int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*records), "ns/record")
}
