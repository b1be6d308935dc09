package scale_test

import (
	"encoding/binary"
	"flag"
	"io"
	"log/slog"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

var logs = flag.Int("logs", 1000, "how many logs the shard has")

const (
	streams   = 4
	rounds    = 5
	perRound  = 10 // records of each log
	valueSize = 142
)

// Given one shard with very many logs, when every one of them is appended to, then
// all of it is compacted, every log has its records, and the process stays within
// the memory limit that it was given.
func TestManyLogsInOneShard(t *testing.T) {
	watched := watchMemory()
	dir := t.TempDir()
	opts := engine.Options{
		DataDir: dir, Shards: 1, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), DrainTimeout: time.Minute,
		Compaction: engine.CompactionOptions{Interval: time.Second},
	}
	e, err := engine.Open(t.Context(), opts)
	require.NoError(t, err)
	all := fill(t, e)
	awaitCompacted(t, e)
	for _, s := range all {
		requireRecords(t, s)
	}
	require.NoError(t, e.Close(t.Context()))

	e, err = engine.Open(t.Context(), opts)
	require.NoError(t, err)
	s, err := e.Stream(all[0].Name())
	require.NoError(t, err)
	requireRecords(t, s)
	require.NoError(t, e.Close(t.Context()))
	watched.end()
	t.Logf("%d logs, %d records: at most %d MiB held, %d MiB in use", *logs, *logs*rounds*perRound, watched.held>>20, watched.live>>20)
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		require.LessOrEqual(t, int64(watched.held), limit) //nolint:gosec // no machine has more
	}
}

// fill creates the streams, without tables, and appends to each of their logs.
func fill(t *testing.T, e *engine.Engine) (all []*engine.Stream) {
	t.Helper()
	off := false
	for i := range streams {
		s, err := e.EnsureStream(t.Context(), "many/s"+strconv.Itoa(i), engine.StreamConfig{
			Partitions: *logs / streams, Table: engine.TablePolicy{Enabled: &off},
		})
		require.NoError(t, err)
		all = append(all, s)
	}
	for round := range rounds {
		for _, s := range all {
			appendRound(t, s, round)
		}
	}
	return all
}

// appendRound adds records to every partition: each says which one it is.
func appendRound(t *testing.T, s *engine.Stream, round int) {
	t.Helper()
	batch := engine.Batch{Logs: make([]engine.LogRecords, s.Partitions())}
	for p := range batch.Logs {
		batch.Logs[p].Log.Partition = engine.Partition(p)
		for n := range perRound {
			value := make([]byte, valueSize)
			binary.BigEndian.PutUint32(value, uint32(p))
			binary.BigEndian.PutUint32(value[4:], uint32(round*perRound+n)) //nolint:gosec // small
			batch.Logs[p].Records = append(batch.Logs[p].Records, engine.Record{Value: value})
		}
	}
	require.NoError(t, s.Append(t.Context(), &batch))
	for _, r := range batch.Results {
		require.NoError(t, r.Err)
	}
}

// awaitCompacted waits until nothing is raw.
func awaitCompacted(t *testing.T, e *engine.Engine) {
	t.Helper()
	require.Eventually(t, func() bool {
		status := e.Status(t.Context())
		require.Empty(t, status.Problems)
		for _, s := range status.Streams {
			for _, p := range s.Logs {
				if p.RawFrom < p.Head {
					return false
				}
			}
		}
		return true
	}, 10*time.Minute, 500*time.Millisecond)
}

// requireRecords reads every partition of a stream from its beginning to its end.
func requireRecords(t *testing.T, s *engine.Stream) {
	t.Helper()
	for p := range s.Partitions() {
		log, err := s.Log(engine.Partition(p))
		require.NoError(t, err)
		next := engine.Offset(0)
		for next < rounds*perRound {
			read, err := log.Read(t.Context(), next, engine.ReadLimits{})
			require.NoError(t, err)
			require.NotEmpty(t, read.Records)
			for _, r := range read.Records {
				require.Equal(t, next, r.Offset)
				require.EqualValues(t, p, binary.BigEndian.Uint32(r.Value))
				require.EqualValues(t, next, binary.BigEndian.Uint32(r.Value[4:]))
				next++
			}
		}
	}
}

// memory watches what the Go runtime holds, which is what its limit governs.
type memory struct {
	stop chan struct{}
	done chan struct{}
	// held and live are the most bytes so far: held by the runtime, and found in use
	// by a collection.
	held, live uint64
}

func watchMemory() *memory {
	m := &memory{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(m.done)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			m.sample()
			select {
			case <-ticker.C:
			case <-m.stop:
				return
			}
		}
	}()
	return m
}

func (m *memory) sample() {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(samples)
	m.held = max(m.held, samples[0].Value.Uint64()-samples[1].Value.Uint64())
	m.live = max(m.live, samples[2].Value.Uint64())
}

// end stops watching.
func (m *memory) end() {
	close(m.stop)
	<-m.done
}
