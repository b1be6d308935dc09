package crash_test

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
	"github.com/lakestream-go/lakestream/internal/crash"
)

var million = flag.Bool("million", os.Getenv("LAKESTREAM_MILLION") != "", "append a million messages instead of fewer")

// allowance is what a process may need beside the budgets that it is configured
// with.
const allowance = 128 << 20

// meter watches the memory of this process.
type meter struct {
	stop chan struct{}
	done chan struct{}
	// heap is the greatest heap in use right after a collection.
	heap uint64
}

func startMeter() *meter {
	m := &meter{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(m.done)
		for {
			runtime.GC()
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			m.heap = max(m.heap, stats.HeapInuse)
			select {
			case <-time.After(300 * time.Millisecond):
			case <-m.stop:
				return
			}
		}
	}()
	return m
}

// end returns the greatest heap that was seen.
func (m *meter) end() uint64 {
	close(m.stop)
	<-m.done
	return m.heap
}

// peakRSS returns the greatest resident size of a process so far, or 0 where the
// system does not tell.
func peakRSS(pid int) (kib uint64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib
		}
	}
	return 0
}

// memoryLimit is what an engine with these options may hold.
func memoryLimit(opts engine.Options) uint64 {
	opts = opts.WithDefaults()
	return uint64(opts.WAL.MaxBufferedBytes + opts.Compaction.MaxMemoryBytes + opts.CacheBytes + allowance) //nolint:gosec // positive
}

// message is a payload of 142 bytes.
func message(n int) []byte {
	text := fmt.Appendf(nil, `{"id":%d,"user":"user-%d","event":"view","amount":%d.5,"text":"`, n, n%10_000, n%1000)
	random := uint64(n) //nolint:gosec // not negative
	for len(text) < 140 {
		random = random*6364136223846793005 + 1442695040888963407 // text that does not compress to nothing
		text = strconv.AppendUint(text, random, 36)
	}
	return append(text[:140], `"}`...)
}

// Given a million messages appended as fast as they go in, with default budgets,
// when the engine has drained, then its heap never passed the budgets by more than
// the allowance, and the table holds each message once.
func TestMillionMessages(t *testing.T) {
	total := 100_000
	if *million {
		total = 1_000_000
	}
	const batchSize, appenders, partitions = 1000, 8, 4
	opts := engine.Options{DataDir: t.TempDir(), DrainTimeout: 10 * time.Minute, Logger: slog.New(slog.DiscardHandler)}
	limit := memoryLimit(opts)
	e, err := engine.Open(t.Context(), opts)
	require.NoError(t, err)
	s, err := e.EnsureStream(t.Context(), "load/messages", engine.StreamConfig{Partitions: partitions})
	require.NoError(t, err)

	memory := startMeter()
	started := time.Now()
	var running sync.WaitGroup
	errs := make([]error, appenders)
	for a := range appenders {
		running.Go(func() { errs[a] = appendMessages(t, s, a*total/appenders, (a+1)*total/appenders, batchSize) })
	}
	running.Wait()
	appended := time.Now()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.NoError(t, e.Close(t.Context()))
	drained := time.Now()
	heap := memory.end()

	t.Logf("%d messages: appended at %.0f/s, in the table at %.0f/s; heap at most %d MiB of %d, resident %d MiB", total,
		float64(total)/appended.Sub(started).Seconds(), float64(total)/drained.Sub(started).Seconds(), heap>>20, limit>>20, peakRSS(os.Getpid())>>10)
	require.LessOrEqual(t, heap, limit)
	require.Equal(t, int64(total), requireComplete(t, opts.DataDir, "load/messages"))
}

// Given as many messages that a pipeline of the real binary generates, one by one,
// then the whole process stays within the same bound, and the table holds each once.
func TestMillionMessagesThroughThePipeline(t *testing.T) {
	total := 50_000
	if *million {
		total = 1_000_000
	}
	w := newWorld(t)
	p := w.run(w.pipeline(fmt.Sprintf(`interval: "", count: %d`, total), "drain_timeout: 10m"))
	started, ended := time.Now(), make(chan crash.Ending, 1)
	go func() { ended <- p.Wait() }()
	var resident uint64
	for end := (crash.Ending{Code: -1}); end.Code != 0; {
		select {
		case end = <-ended:
			w.requireClean(end)
		case <-time.After(20 * time.Millisecond):
			resident = max(resident, peakRSS(p.PID()))
		}
	}
	limit := memoryLimit(engine.Options{})
	t.Logf("%d messages: in the table at %.0f/s; resident at most %d MiB of %d", total,
		float64(total)/time.Since(started).Seconds(), resident>>10, limit>>20)
	require.LessOrEqual(t, resident<<10, limit)
	require.Equal(t, int64(total), requireComplete(t, w.dir, stream))
}

func appendMessages(t *testing.T, s *engine.Stream, from, to, batchSize int) error {
	batch := engine.Batch{Logs: make([]engine.LogRecords, 1)}
	for n := from; n < to; n += batchSize {
		batch.Logs[0].Log.Partition = engine.Partition(n / batchSize % s.Partitions()) //nolint:gosec // few
		batch.Logs[0].Records = batch.Logs[0].Records[:0]
		for i := n; i < min(n+batchSize, to); i++ {
			batch.Logs[0].Records = append(batch.Logs[0].Records, engine.Record{Timestamp: engine.Millis(n), Value: message(i)})
		}
		if err := s.Append(t.Context(), &batch); err != nil {
			return err
		}
		if err := batch.Results[0].Err; err != nil {
			return err
		}
	}
	return nil
}

// requireComplete proves that a stream's table is complete, and returns its rows.
func requireComplete(t *testing.T, dir, stream string) (rows int64) {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{DataDir: dir, Observe: true, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	table, err := e.Table(stream)
	require.NoError(t, err)
	report, err := table.Verify(t.Context())
	require.NoError(t, err)
	require.NoError(t, report.Complete())
	for _, p := range report.Partitions {
		rows += p.Rows
	}
	return rows
}
