package kafka

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	_ "github.com/lakestream-go/lakestream/plugin" // the output
)

// Pipelines over one group are stopped at any moment, half of the times without a
// commit, and start again: every record of Kafka is in the stream once.
func TestEveryRecordOfKafkaIsInTheStreamOnce(t *testing.T) {
	const partitions, each, lives = 3, 1500, 8
	k := startKafka(t, kfake.SeedTopics(partitions, "orders"))
	lake := t.TempDir()
	for p := range int32(partitions) {
		k.produce(t, "orders", p, int(p)*each, each)
	}
	yaml := fmt.Sprintf(`
http: { enabled: false }
logger: { level: "off" }
input:
  kafka:
    seed_brokers: [ %q ]
    topics: [ orders ]
    consumer_group: lake
    commit_period: 100ms
    heartbeat_interval: 100ms
    max_yield_batch_messages: 50
output:
  lakestream:
    stream: shop/orders
    partitions: 4
    key: ${! content() }
    idempotency: { mode: kafka, source: eu }
    engine: { data_dir: %q, compaction: { enabled: false } }
`, k.ListenAddrs()[0], lake)
	rng := rand.New(rand.NewPCG(1, 2))
	for life := range lives {
		var kill *kfake.FaultHandle
		if life%2 == 0 { // no commit gets through
			kill = k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: -1, Err: kerr.UnknownServerError})
		}
		runFor(t, yaml, time.Duration(20+rng.IntN(300))*time.Millisecond)
		if kill != nil {
			kill.Remove()
		}
	}
	runUntil(t, yaml, func() bool {
		info := k.GroupInfo("lake")
		for p := range int32(partitions) {
			if info == nil || info.Commits["orders"][p].Offset != each {
				return false
			}
		}
		return true
	})
	require.Equal(t, numbers(0, partitions*each), sorted(readStream(t, lake)))
}

// runFor runs a pipeline and stops it, as hard as a short time does.
func runFor(t *testing.T, yaml string, d time.Duration) {
	t.Helper()
	ended := time.After(d)
	runUntil(t, yaml, func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
}

func runUntil(t *testing.T, yaml string, done func() bool) {
	t.Helper()
	builder := service.NewStreamBuilder()
	require.NoError(t, builder.SetYAML(yaml))
	stream, err := builder.Build()
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() { _ = stream.Run(context.Background()) })
	require.Eventually(t, done, patience, 5*time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.Eventually(t, func() bool { return stream.Stop(ctx) == nil }, patience, time.Millisecond, "it has begun, and ends")
	running.Wait()
}

// readStream returns what the stream shop/orders holds.
func readStream(t *testing.T, lake string) []string {
	t.Helper()
	builder := service.NewStreamBuilder()
	require.NoError(t, builder.SetLoggerYAML(`level: "off"`))
	require.NoError(t, builder.AddInputYAML(fmt.Sprintf(
		`lakestream: { streams: [ shop/orders ], stop_at_end: true, engine: { data_dir: %q, compaction: { enabled: false } } }`, lake)))
	var mu sync.Mutex
	var all []string
	require.NoError(t, builder.AddBatchConsumerFunc(func(_ context.Context, batch service.MessageBatch) error {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range batch {
			value, err := m.AsBytes()
			if err != nil {
				return err
			}
			all = append(all, string(value))
		}
		return nil
	}))
	stream, err := builder.Build()
	require.NoError(t, err)
	require.NoError(t, stream.Run(t.Context()))
	return slices.Clone(all)
}
