package plugin

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The benchmarks of this file run whole pipelines, each beside the same pipeline
// with a sink that does nothing, and report the ratio of their throughputs: that
// of wall time and that of CPU time, which drifts less.
//
//	go test -run='^$' -bench=. -benchtime=5x ./plugin

// source is an input of batches that are made beforehand.
type source struct {
	left  atomic.Int64
	size  int
	value []byte
}

func (s *source) Connect(context.Context) error { return nil }
func (s *source) Close(context.Context) error   { return nil }

func (s *source) ReadBatch(context.Context) (service.MessageBatch, service.AckFunc, error) {
	if s.left.Add(-1) < 0 {
		return nil, nil, service.ErrEndOfInput
	}
	batch := make(service.MessageBatch, s.size)
	for i := range batch {
		batch[i] = service.NewMessage(s.value)
	}
	return batch, func(context.Context, error) error { return nil }, nil
}

// sink does nothing.
type sink struct{}

func (sink) Connect(context.Context) error                          { return nil }
func (sink) WriteBatch(context.Context, service.MessageBatch) error { return nil }
func (sink) Close(context.Context) error                            { return nil }

// cost is what one run of a pipeline took.
type cost struct{ wall, cpu time.Duration }

func cpuTime(b *testing.B) time.Duration {
	var usage unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// measure runs a pipeline of this input and output to its end.
func measure(b *testing.B, env *service.Environment, in, out string) cost {
	b.Helper()
	builder := env.NewStreamBuilder()
	builder.SetPrintLogger(&logCapture{})
	require.NoError(b, builder.AddInputYAML(in))
	require.NoError(b, builder.AddOutputYAML(out))
	stream, err := builder.Build()
	require.NoError(b, err)
	runtime.GC()
	started, cpu := time.Now(), cpuTime(b)
	require.NoError(b, stream.Run(context.Background()))
	return cost{wall: time.Since(started), cpu: cpuTime(b) - cpu}
}

// besideFloor runs both pipelines in turns and reports medians.
func besideFloor(b *testing.B, messages int, floor, subject func() cost) {
	b.Helper()
	floor()
	subject() // the first run of each warms up
	var walls, cpus, rates []float64
	for b.Loop() {
		f, s := floor(), subject()
		walls = append(walls, float64(f.wall)/float64(s.wall))
		cpus = append(cpus, float64(f.cpu)/float64(s.cpu))
		rates = append(rates, float64(messages)/s.wall.Seconds())
	}
	b.ReportMetric(median(walls), "of-floor-wall")
	b.ReportMetric(median(cpus), "of-floor-cpu")
	b.ReportMetric(median(rates), "msg/s")
	b.ReportMetric(0, "ns/op")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// benchEnvironment has the bench's source, of batches of this size, and its sink.
func benchEnvironment(b *testing.B, batches, size, inFlight int) *service.Environment {
	b.Helper()
	env := service.GlobalEnvironment().Clone()
	value := []byte(strings.Repeat(`{"id":123456,"name":"order","state":"open"}`, 4)[:142])
	require.NoError(b, env.RegisterBatchInput("bench_source", service.NewConfigSpec(),
		func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) {
			s := &source{size: size, value: value}
			s.left.Store(int64(batches))
			return s, nil
		}))
	require.NoError(b, env.RegisterBatchOutput("bench_sink", service.NewConfigSpec(),
		func(*service.ParsedConfig, *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
			return sink{}, service.BatchPolicy{}, inFlight, nil
		}))
	return env
}

// benchOutput writes to a directory of its own, without compaction.
func benchOutput(b *testing.B, fields, wal string) string {
	return fmt.Sprintf("lakestream: { stream: bench/s, %s engine: { data_dir: %q, compaction: { enabled: false }, wal: { %s } } }", fields, b.TempDir(), wal)
}

// BenchmarkAppend appends raw messages of 142 bytes.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name                  string
		batches, size, flight int
		fields, wal           string
	}{
		{"none/1000x64", 2000, 1000, 64, "", "compression: none"},
		{"zstd/1000x64", 1000, 1000, 64, "", "compression: zstd"},
		{"keyed4/1000x64", 1000, 1000, 64, `partitions: 4, key: "${! counter() }", `, "compression: none"},
		{"none/100x512", 5000, 100, 512, "", "compression: none"},
		{"none/10x512", 20000, 10, 512, "", "compression: none"},
	} {
		b.Run(c.name, func(b *testing.B) {
			env := benchEnvironment(b, c.batches, c.size, c.flight)
			floor := func() cost { return measure(b, env, "bench_source: {}", "bench_sink: {}") }
			subject := func() cost {
				return measure(b, env, "bench_source: {}", benchOutput(b, fmt.Sprintf("%s max_in_flight: %d,", c.fields, c.flight), c.wal))
			}
			besideFloor(b, c.batches*c.size, floor, subject)
		})
	}
}

// BenchmarkGenerate appends messages one by one from a generator, with defaults.
func BenchmarkGenerate(b *testing.B) {
	const count = 100_000
	env := service.GlobalEnvironment()
	in := fmt.Sprintf(`generate: { count: %d, interval: "", mapping: 'root = "%s"' }`, count, strings.Repeat("x", 142))
	floor := func() cost { return measure(b, env, in, "drop: {}") }
	subject := func() cost { return measure(b, env, in, benchOutput(b, "", "")) }
	besideFloor(b, count, floor, subject)
}

// BenchmarkReplay reads raw records back into a sink that does nothing.
func BenchmarkReplay(b *testing.B) {
	const batches, size = 1000, 1000
	env := benchEnvironment(b, batches, size, 64)
	dir := b.TempDir()
	engine := fmt.Sprintf("engine: { data_dir: %q, compaction: { enabled: false } }", dir)
	measure(b, env, "bench_source: {}", "lakestream: { stream: bench/s, "+engine+" }")
	floor := func() cost { return measure(b, env, "bench_source: {}", "bench_sink: {}") }
	subject := func() cost {
		return measure(b, env, "lakestream: { streams: [ bench/s ], stop_at_end: true, "+engine+" }", "bench_sink: {}")
	}
	besideFloor(b, batches*size, floor, subject)
}
