package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure" // generate, drop
	"github.com/redpanda-data/benthos/v4/public/service"

	_ "github.com/lakestream-go/lakestream/plugin" // lakestream
)

// messageBytes is the size of a message in every group.
const messageBytes = 142

// payloads are JSON events of messageBytes each, which compress as events do. They
// are made once and used by all.
var payloads = sync.OnceValue(func() [][]byte {
	const distinct = 50_000
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same events every time
	all := make([][]byte, distinct)
	for i := range all {
		all[i] = payload(random, i)
	}
	return all
})

func payload(random *rand.Rand, i int) []byte {
	event := fmt.Appendf(nil, `{"id":%d,"user":"user-%05d","action":"%s","amount":%d.%02d,"session":"%016x","country":"%s","ok":%t,"note":"`,
		1_000_000+i, random.IntN(50_000), []string{"view", "click", "purchase"}[random.IntN(3)],
		random.IntN(1000), random.IntN(100), random.Uint64(), []string{"DE", "FR", "US", "JP"}[random.IntN(4)], i%5 != 0)
	for len(event) < messageBytes-len(`"}`) {
		event = append(event, '.')
	}
	return append(event, `"}`...)
}

// source is an input of batches of payloads, made as they are read.
type source struct {
	size int
	left atomic.Int64 // batches
	next atomic.Int64 // payload
}

func (s *source) Connect(context.Context) error { return nil }
func (s *source) Close(context.Context) error   { return nil }

func (s *source) ReadBatch(context.Context) (service.MessageBatch, service.AckFunc, error) {
	if s.left.Add(-1) < 0 {
		return nil, nil, service.ErrEndOfInput
	}
	all := payloads()
	at := int(s.next.Add(int64(s.size))) % len(all)
	batch := make(service.MessageBatch, s.size)
	for i := range batch {
		if at == len(all) {
			at = 0
		}
		batch[i] = service.NewMessage(all[at])
		at++
	}
	return batch, func(context.Context, error) error { return nil }, nil
}

// sink is an output that does nothing but count.
type sink struct{ messages atomic.Int64 }

func (s *sink) Connect(context.Context) error { return nil }
func (s *sink) Close(context.Context) error   { return nil }

func (s *sink) WriteBatch(_ context.Context, batch service.MessageBatch) error {
	s.messages.Add(int64(len(batch)))
	return nil
}

// pipeline is a Benthos pipeline of an input and an output, as YAML. The components
// bench_source, bench_sink and bench_late_sink make and take batches.
type pipeline struct {
	in, out string
	// batches and size are what bench_source yields.
	batches, size int
	// inFlight is how many batches bench_sink takes at once.
	inFlight int
	sink     sink
}

// build returns the pipeline, ready to run once.
func (p *pipeline) build() (*service.Stream, error) {
	env := service.GlobalEnvironment().Clone()
	if err := env.RegisterBatchInput("bench_source", service.NewConfigSpec(), p.newSource); err != nil {
		return nil, fmt.Errorf("registering source: %w", err)
	}
	if err := env.RegisterBatchOutput("bench_sink", service.NewConfigSpec(), p.newSink); err != nil {
		return nil, fmt.Errorf("registering sink: %w", err)
	}
	if err := env.RegisterBatchOutput("bench_late_sink", service.NewConfigSpec(), lateOutput); err != nil {
		return nil, fmt.Errorf("registering late sink: %w", err)
	}
	builder := env.NewStreamBuilder()
	builder.SetLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err := builder.AddInputYAML(p.in); err != nil {
		return nil, fmt.Errorf("adding input: %w", err)
	}
	if err := builder.AddOutputYAML(p.out); err != nil {
		return nil, fmt.Errorf("adding output: %w", err)
	}
	stream, err := builder.Build()
	if err != nil {
		return nil, fmt.Errorf("building pipeline: %w", err)
	}
	return stream, nil
}

func (p *pipeline) newSource(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) {
	s := &source{size: p.size}
	s.left.Store(int64(p.batches))
	return s, nil
}

func (p *pipeline) newSink(*service.ParsedConfig, *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
	return &p.sink, service.BatchPolicy{}, p.inFlight, nil
}

// measure runs the pipeline to its end.
func (p *pipeline) measure(ctx context.Context, b *bench, messages int) (cost, error) {
	stream, err := p.build()
	if err != nil {
		return cost{}, err
	}
	payloads()
	return b.measure(messages, func() error { return stream.Run(ctx) })
}
