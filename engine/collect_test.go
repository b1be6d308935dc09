package engine_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// quickly makes an engine look at retention all the time.
func quickly(opts engine.Options) engine.Options {
	opts.Reclaim = engine.ReclaimOptions{Interval: 100 * time.Millisecond, Grace: time.Second, CheckpointEvery: time.Second}
	return opts
}

func keepNothing() engine.StreamConfig {
	none, off := int64(0), false
	return engine.StreamConfig{Retention: engine.Retention{Bytes: &none}, Table: engine.TablePolicy{Enabled: &off}}
}

// Given a stream that keeps nothing, when records are appended, then they are given
// up by themselves and whoever asks for them learns that they were trimmed.
func TestOldRecordsAreGivenUpByThemselves(t *testing.T) {
	e := open(t, quickly(options(t)))
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	s, err := e.EnsureStream(t.Context(), "shop/orders", keepNothing())
	require.NoError(t, err)
	appendOrders(t, s, 0, 10)
	log, err := s.Log(0)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err = log.Read(t.Context(), 0, engine.ReadLimits{})
		return err != nil
	}, time.Minute, 20*time.Millisecond)
	require.ErrorIs(t, err, engine.ErrTrimmed)
	appendOrders(t, s, 10, 1)
	require.Empty(t, e.Status(t.Context()).Problems)
}

// A record that the table lacks is not given up.
func TestRecordsWaitForTheirTable(t *testing.T) {
	opts := quickly(options(t))
	e := open(t, opts)
	none := int64(0)
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{Retention: engine.Retention{Bytes: &none}})
	require.NoError(t, err)
	for i := range 20 {
		appendOrders(t, s, 10*i, 10)
	}
	require.NoError(t, e.Close(t.Context()))
	e = open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	table, err := e.Table("shop.orders")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return e.Status(t.Context()).Streams[0].Logs[0].Start == 200 }, time.Minute, 20*time.Millisecond)
	report, err := table.Verify(t.Context())
	require.NoError(t, err)
	require.NoError(t, report.Complete())
	require.EqualValues(t, 200, report.Partitions[0].Rows)
}

// Given objects that compaction replaced, then they are deleted by themselves, and
// what lives stays.
func TestWhatCompactionReplacedIsDeletedByItself(t *testing.T) {
	opts := quickly(options(t))
	opts.Shards, opts.Compaction.Interval = 1, time.Second
	e := open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	for i := range 20 {
		appendOrders(t, s, 10*i, 10)
	}
	require.Eventually(t, func() bool {
		return len(objects(t, opts.DataDir)) == 0
	}, time.Minute, 20*time.Millisecond, "every WAL object was compacted, and went")
	inventory, err := e.Inventory(t.Context())
	require.NoError(t, err)
	require.Positive(t, inventory.Live)
	require.Empty(t, inventory.Missing)
	require.Empty(t, inventory.Orphans)
}

func objects(t *testing.T, dir string) (keys []string) {
	t.Helper()
	root := filepath.Join(dir, "objects", "wal")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			keys = append(keys, path)
		}
		return err
	}))
	return keys
}

// Behaviour 51. Given what a killed process left behind, then a dry run tells of it
// and a run deletes it, and nothing else.
func TestUploadsThatNothingNamesAreCollected(t *testing.T) {
	opts := options(t)
	opts.Compaction.Disabled = true // so that the records stay where they are
	e := open(t, opts)
	s, err := e.EnsureStream(t.Context(), "shop/orders", keepNothing())
	require.NoError(t, err)
	appendOrders(t, s, 0, 10)
	require.NoError(t, e.Close(t.Context()))
	before := objects(t, opts.DataDir)
	require.Len(t, before, 1)
	data, err := os.ReadFile(before[0])
	require.NoError(t, err)
	orphan := strings.Replace(before[0], "00001.wal", "00002.wal", 1)
	require.NoError(t, os.WriteFile(orphan, data, 0o600))

	opts.Observe = true
	e = open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	planned, err := e.Collect(t.Context(), engine.CollectOptions{DryRun: true})
	require.NoError(t, err)
	require.Equal(t, 1, planned.Orphans)
	require.Equal(t, []engine.TrimmedLog{{Stream: "shop/orders", To: 10}}, planned.Trimmed)
	require.FileExists(t, orphan)
	done, err := e.Collect(t.Context(), engine.CollectOptions{})
	require.NoError(t, err)
	require.Equal(t, planned.Trimmed, done.Trimmed)
	require.Equal(t, 1, done.Orphans)
	require.NoFileExists(t, orphan)
	require.Equal(t, 1, done.Dead)
	require.FileExists(t, before[0], "its readers may not be done")
	again, err := e.Collect(t.Context(), engine.CollectOptions{DryRun: true})
	require.NoError(t, err)
	require.Empty(t, again.Trimmed)
	require.Zero(t, again.Orphans)
}

// Given batch jobs that never run for as long as the grace, then a call that waits
// deletes what is dead.
func TestWhatIsDeadIsCollectedByACallThatWaits(t *testing.T) {
	opts := options(t)
	opts.Compaction.Disabled = true // so that the records stay where they are
	e := open(t, opts)
	s, err := e.EnsureStream(t.Context(), "shop/orders", keepNothing())
	require.NoError(t, err)
	appendOrders(t, s, 0, 10)
	require.NoError(t, e.Close(t.Context()))

	opts = quickly(opts)
	opts.Observe = true
	e = open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	var left []int
	done, err := e.Collect(t.Context(), engine.CollectOptions{
		Wait: time.Minute, Progress: func(c engine.Collected) { left = append(left, c.Dead) },
	})
	require.NoError(t, err)
	require.Equal(t, 1, left[0])
	require.Equal(t, 1, done.Deleted)
	require.Zero(t, done.Dead)
	require.Empty(t, objects(t, opts.DataDir))
}

func TestAnEngineThatCollectsByItselfIsNotAskedTo(t *testing.T) {
	e := open(t, options(t))
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	_, err := e.Collect(t.Context(), engine.CollectOptions{})
	require.ErrorIs(t, err, engine.ErrInvalid)
}

// Given an instance that does not compact, when the index is full, then its appends
// wait and the status says for what; another instance compacts, and they go on.
func TestAppendsWaitWhileTheIndexIsFull(t *testing.T) {
	opts := options(t)
	opts.Shards, opts.MaxIndexEntries, opts.Compaction = 1, 1000, engine.CompactionOptions{Disabled: true}
	e := open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	off := false
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{Partitions: 500, Table: engine.TablePolicy{Enabled: &off}})
	require.NoError(t, err)
	batch := engine.Batch{Logs: make([]engine.LogRecords, 500)}
	for p := range batch.Logs {
		batch.Logs[p].Log.Partition = engine.Partition(p)
		batch.Logs[p].Records = []engine.Record{{Value: []byte("{}")}}
	}
	require.NoError(t, s.Append(t.Context(), &batch))
	require.NoError(t, s.Append(t.Context(), &batch))
	appended := make(chan error, 1)
	go func() { appended <- s.Append(t.Context(), &batch) }()
	require.Eventually(t, func() bool {
		for _, p := range e.Status(t.Context()).Problems {
			if strings.Contains(p.Reason, "index of its logs is full") {
				return true
			}
		}
		return false
	}, time.Minute, 20*time.Millisecond)

	helping := opts
	helping.Compaction = engine.CompactionOptions{Interval: time.Second}
	other := open(t, helping)
	defer func() { require.NoError(t, other.Close(t.Context())) }()
	require.NoError(t, <-appended)
}
