package engine_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// webhooks returns the lines of the quickstart's input, keyed by repository.
func webhooks(t *testing.T) (lines [][]byte, keys []string) {
	t.Helper()
	f, err := os.Open("../examples/quickstart/github-webhooks.ndjson")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := append([]byte(nil), scanner.Bytes()...)
		var event struct {
			Payload struct {
				Repository struct {
					FullName string `json:"full_name"`
				} `json:"repository"`
			} `json:"payload"`
		}
		require.NoError(t, json.Unmarshal(line, &event))
		lines, keys = append(lines, line), append(keys, event.Payload.Repository.FullName)
	}
	require.NoError(t, scanner.Err())
	return lines, keys
}

// Given the real webhooks written twice, when the engine closes, then the table
// holds each delivery twice, at two offsets.
func TestRealEventsLandOnceForEachAppend(t *testing.T) {
	lines, keys := webhooks(t)
	opts := options(t)
	for range 2 {
		e := open(t, opts)
		s, err := e.EnsureStream(t.Context(), "github/webhooks", engine.StreamConfig{Partitions: 4})
		require.NoError(t, err)
		batch := engine.Batch{Logs: make([]engine.LogRecords, s.Partitions())}
		for i := range batch.Logs {
			batch.Logs[i].Log.Partition = engine.Partition(i)
		}
		for i, line := range lines {
			p := engine.KeyPartition([]byte(keys[i]), s.Partitions())
			batch.Logs[p].Records = append(batch.Logs[p].Records, engine.Record{Timestamp: 1, Key: []byte(keys[i]), Value: line})
		}
		require.NoError(t, s.Append(t.Context(), &batch))
		for _, r := range batch.Results {
			require.NoError(t, r.Err)
		}
		require.NoError(t, e.Close(t.Context()))
	}
	e := open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	table, err := e.Table("github.webhooks")
	require.NoError(t, err)
	report, err := table.Verify(t.Context())
	require.NoError(t, err)
	require.NoError(t, report.Complete())
	rows, err := table.Head(t.Context(), []string{"delivery"}, 1000)
	require.NoError(t, err)
	require.Len(t, rows, 2*len(lines))
	seen := make(map[string]int)
	for _, r := range rows {
		seen[string(r["delivery"])]++
	}
	require.Len(t, seen, len(lines))
	for delivery, n := range seen {
		require.Equal(t, 2, n, "delivery %s", delivery)
	}
}
