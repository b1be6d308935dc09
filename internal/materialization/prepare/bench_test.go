package prepare_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/materialization/decode"
	"github.com/lakestream-go/lakestream/internal/materialization/document"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
	"github.com/lakestream-go/lakestream/internal/materialization/write"
)

// nowhere swallows files.
type nowhere struct{}

type sink struct{ io.Writer }

func (sink) Close() error { return nil }

func (nowhere) CreateFile(context.Context, string) (io.WriteCloser, error) {
	return sink{io.Discard}, nil
}
func (nowhere) RemoveFile(context.Context, string) error { return nil }

// benchPayloads are events of about 180 bytes, or of 1 KB.
func benchPayloads(count int, large bool) [][]byte {
	random := rand.New(rand.NewPCG(1, 2)) // the same payloads each time
	filler := ""
	payloads := make([][]byte, count)
	for i := range payloads {
		if large {
			filler = fmt.Sprintf(`,"body":"%s%x","tags":["a","b","c"],"items":[{"sku":"%x","qty":%d,"price":%d.25},{"sku":"x","qty":1,"price":0.5}]`,
				strings.Repeat("lorem ipsum ", 55), random.Uint64(), random.Uint32(), random.IntN(9), random.IntN(99))
		}
		payloads[i] = fmt.Appendf(nil,
			`{"id":%d,"user_id":"u-%d","event":"e%d","ts":%d,"amount":%d.%02d,"active":%t,"country":"c%d","session":"%016x","n":%d%s}`,
			i, random.IntN(100_000), random.IntN(20), 1_750_000_000_000+int64(i)*37, random.IntN(1000), random.IntN(100),
			i%2 == 0, random.IntN(200), random.Uint64(), random.IntN(1<<30), filler)
	}
	return payloads
}

type bench struct {
	name     string
	payloads [][]byte
}

func benches(b *testing.B) []bench {
	return []bench{{"180B", benchPayloads(20_000, false)}, {"1KB", benchPayloads(20_000, true)}, {"github", githubPayloads(b)}}
}

func (bn bench) decoder(b *testing.B) *decode.Decoder {
	b.Helper()
	in := schema.NewInference(schema.Limits{})
	var doc document.Document
	for _, p := range bn.payloads {
		require.NoError(b, doc.Parse(p))
		in.Add(&doc)
	}
	decoder, err := decode.New(schema.New(schema.DefaultSystemColumns(), in), schema.DefaultSystemColumns(), schema.Limits{})
	require.NoError(b, err)
	return decoder
}

// report tells the rate in payloads.
func (bn bench) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(float64(len(bn.payloads)*b.N)/b.Elapsed().Seconds()/1000, "krows/s")
}

// run decodes the payloads and passes each batch to a writer, if any.
func (bn bench) run(b *testing.B, to *write.Writer) {
	b.Helper()
	decoder := bn.decoder(b)
	b.ReportAllocs()
	for b.Loop() {
		for i, p := range bn.payloads {
			decoder.Append(0, &recordbatch.Positioned{Record: recordbatch.Record{Value: p}, Offset: base.Offset(i)})
			if decoder.Bytes() > 16<<20 || i == len(bn.payloads)-1 {
				batch := decoder.Batch()
				if to != nil {
					require.NoError(b, to.Write(b.Context(), batch))
				}
				batch.Release()
			}
		}
	}
	bn.report(b)
}

func BenchmarkJSONToArrow(b *testing.B) {
	for _, bn := range benches(b) {
		b.Run(bn.name, func(b *testing.B) { bn.run(b, nil) })
	}
}

func BenchmarkJSONToParquet(b *testing.B) {
	for _, bn := range benches(b) {
		b.Run(bn.name, func(b *testing.B) {
			w := write.New(nowhere{}, func() string { return "f" }, write.Options{})
			bn.run(b, w)
			_, err := w.Close()
			require.NoError(b, err)
		})
	}
}

// BenchmarkParquetAlone is the floor of BenchmarkJSONToParquet: the same batch
// again and again.
func BenchmarkParquetAlone(b *testing.B) {
	for _, bn := range benches(b) {
		b.Run(bn.name, func(b *testing.B) {
			decoder := bn.decoder(b)
			for i, p := range bn.payloads {
				decoder.Append(0, &recordbatch.Positioned{Record: recordbatch.Record{Value: p}, Offset: base.Offset(i)})
			}
			batch := decoder.Batch()
			defer batch.Release()
			w := write.New(nowhere{}, func() string { return "f" }, write.Options{})
			for b.Loop() {
				require.NoError(b, w.Write(b.Context(), batch))
			}
			bn.report(b)
			_, err := w.Close()
			require.NoError(b, err)
		})
	}
}
