package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// Given a pipeline that writes and ends by itself, when it ended, then the table
// holds every row; when it runs again, the stream grows by as much.
func TestAPipelineEndsWithItsTableComplete(t *testing.T) {
	l := newLake(t)
	yaml := fmt.Sprintf(`
input:
  generate: { count: 500, interval: "", mapping: 'root = { "id": counter(), "name": "order" }' }
output:
  lakestream:
    stream: shop/orders
    partitions: 3
    key: ${! this.id }
    table: { commit: { interval: 1s } }
    %s
`, l.engine(", drain_timeout: 60s"))
	for run := 1; run <= 2; run++ {
		pipeline(t, yaml)
		e, release, err := engine.Acquire(t.Context(), engine.Options{DataDir: l.dir, Observe: true})
		require.NoError(t, err)
		table, err := e.Table("shop.orders")
		require.NoError(t, err)
		report, err := table.Verify(t.Context())
		require.NoError(t, err)
		require.NoError(t, report.Complete())
		rows := int64(0)
		for _, p := range report.Partitions {
			rows += p.Rows
		}
		require.Equal(t, int64(500*run), rows)
		require.NoError(t, release(context.Background()))
	}
}

// Given a store that cannot be reached when the pipeline starts, when messages
// come, then the fallback gets them.
func TestAFallbackTakesOverFromAStoreThatIsDown(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept.txt")
	pipeline(t, fmt.Sprintf(`
input:
  generate: { count: 20, interval: "", mapping: 'root = counter()' }
output:
  fallback:
    - lakestream:
        stream: a/b
        engine:
          data_dir: %q
          nats: { urls: [ "nats://127.0.0.1:1" ] }
          storage: { url: %q }
    - file: { path: %q, codec: lines }
`, dir, dir, kept))
	text, err := os.ReadFile(kept)
	require.NoError(t, err)
	require.Len(t, strings.Fields(string(text)), 20)
}

// Given a stream written by one pipeline and read by another in the same process,
// when the reader's sink rejects some messages at first, then all arrive.
func TestWritersAndReadersShareAnEngine(t *testing.T) {
	l := newLake(t)
	const count = 2000
	builder := service.NewStreamBuilder()
	builder.SetPrintLogger(&logCapture{})
	produce, err := builder.AddBatchProducerFunc()
	require.NoError(t, err)
	require.NoError(t, builder.AddOutputYAML(fmt.Sprintf("lakestream: { stream: a/b, partitions: 4, %s }", l.engine(""))))
	writer, err := builder.Build()
	require.NoError(t, err)

	sink := &flakySink{seen: make(map[string]int), want: count, done: make(chan struct{})}
	builder = service.NewStreamBuilder()
	builder.SetPrintLogger(&logCapture{})
	require.NoError(t, builder.AddInputYAML(fmt.Sprintf("lakestream: { streams: [ a/b ], max_yield_batch_messages: 50, %s }", l.engine(""))))
	require.NoError(t, builder.AddBatchConsumerFunc(sink.consume))
	reader, err := builder.Build()
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { _ = writer.Run(ctx) })
	running.Go(func() { _ = reader.Run(ctx) })
	for i := 0; i < count; i += 100 {
		require.NoError(t, produce(ctx, numbered(i, 100)))
	}
	select {
	case <-sink.done:
	case <-ctx.Done():
		t.Fatal("messages are missing")
	}
	require.NoError(t, writer.Stop(ctx))
	require.NoError(t, reader.Stop(ctx))
	running.Wait()
	for i := range count {
		require.Positive(t, sink.seen[strconv.Itoa(i)], "message %d", i)
	}
}

// flakySink rejects every message whose number ends in 7 once.
type flakySink struct {
	mu sync.Mutex
	// seen counts deliveries, accepted messages; both are guarded by mu.
	seen     map[string]int
	accepted int
	want     int
	done     chan struct{}
}

func (s *flakySink) consume(_ context.Context, batch service.MessageBatch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := service.NewBatchError(batch, errors.New("some were rejected"))
	bad := 0
	for i, m := range batch {
		text, err := m.AsBytes()
		if err != nil {
			return err
		}
		s.seen[string(text)]++
		if strings.HasSuffix(string(text), "7") && s.seen[string(text)] == 1 {
			_ = failed.Failed(i, errors.New("rejected"))
			bad++
			continue
		}
		if s.accepted++; s.accepted == s.want {
			close(s.done)
		}
	}
	if bad > 0 {
		return failed
	}
	return nil
}

// What an engine warns of appears in Benthos's log, with its details.
func TestAnEngineLogsToBenthos(t *testing.T) {
	l := newLake(t)
	yaml := `
input:
  generate: { count: 1, interval: "", mapping: 'root = "x"' }
output:
  lakestream: { stream: a/b, partitions: %d, %s }
`
	logged := pipeline(t, fmt.Sprintf(yaml, 1, l.engine("")))
	require.NotContains(t, logged, "keeps its partitions")
	logged = pipeline(t, fmt.Sprintf(yaml, 4, l.engine("")))
	require.Contains(t, logged, "the stream keeps its partitions")
}
