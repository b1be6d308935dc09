package engine_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// options are those of an engine in a directory of the test's own.
func options(t *testing.T) engine.Options {
	return engine.Options{DataDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), DrainTimeout: 5 * time.Minute}
}

func open(t *testing.T, opts engine.Options) *engine.Engine {
	t.Helper()
	e, err := engine.Open(t.Context(), opts)
	require.NoError(t, err)
	return e
}

func appendOrders(t *testing.T, s *engine.Stream, from, n int) {
	t.Helper()
	batch := engine.Batch{Logs: []engine.LogRecords{{}}}
	for i := from; i < from+n; i++ {
		batch.Logs[0].Records = append(batch.Logs[0].Records, engine.Record{
			Timestamp: engine.Millis(time.Now().UnixMilli()),
			Value:     fmt.Appendf(nil, `{"id":%d,"name":"order %d"}`, i, i),
		})
	}
	require.NoError(t, s.Append(t.Context(), &batch))
	require.NoError(t, batch.Results[0].Err)
	require.Equal(t, n, batch.Results[0].Records)
}

// Given an empty directory, when records are appended and the engine closes, then
// the table holds each once, and an engine that opens the directory again reads
// every record back.
func TestAppendedRecordsAreInTheTableWhenTheEngineCloses(t *testing.T) {
	opts := options(t)
	e := open(t, opts)
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	appendOrders(t, s, 0, 100)
	appendOrders(t, s, 100, 1)
	require.NoError(t, e.Close(t.Context()))

	e = open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	table, err := e.Table("shop.orders")
	require.NoError(t, err)
	report, err := table.Verify(t.Context())
	require.NoError(t, err)
	require.NoError(t, report.Complete())
	require.Equal(t, int64(101), report.Partitions[0].Rows)

	s, err = e.Stream("shop/orders")
	require.NoError(t, err)
	log, err := s.Log(0)
	require.NoError(t, err)
	next := engine.Offset(0)
	for next < 101 {
		records, err := log.Read(t.Context(), next, engine.ReadLimits{})
		require.NoError(t, err)
		for _, r := range records.Records {
			require.Equal(t, next, r.Offset)
			require.JSONEq(t, fmt.Sprintf(`{"id":%d,"name":"order %d"}`, next, next), string(r.Value))
			next++
		}
	}
}
