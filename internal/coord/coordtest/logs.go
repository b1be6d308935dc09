package coordtest

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

func logStories() []story {
	return []story{
		{"an empty log has no bounds", emptyLog},
		{"revisions are dense from 1", denseRevisions},
		{"a watch replays from any revision", replayFromAnyRevision},
		{"a watch from the future waits", watchFromTheFuture},
		{"records of several instances have one order", oneOrder},
		{"bounds are known to every instance at once", boundsAtOnce},
		{"logs are apart", logsAreApart},
		{"a stopped watch ends", stoppedWatch},
		{"an interruption ends the watch and loses nothing", interruption},
		{"strays are visible to all alike", strays},
		{"bytes are the caller's and the receiver's own", ownBytes},
		{"what is too big or out of range is refused", refusals},
		{"a closed store says so", closedStore},
	}
}

func revision(n int) base.Revision { return base.Revision(n) } //nolint:gosec // tests use small numbers

// put appends the texts and returns the last revision.
func put(t *testing.T, log coord.CommitLog, texts ...string) base.Revision {
	t.Helper()
	var last base.Revision
	for _, text := range texts {
		var err error
		last, err = log.Put(t.Context(), []byte(text))
		require.NoError(t, err)
	}
	return last
}

func emptyLog(t *testing.T, c Cluster) {
	_, log := openLog(t, c)
	first, last, err := log.Bounds(t.Context())
	require.NoError(t, err)
	assert.Zero(t, first)
	assert.Zero(t, last)
}

func denseRevisions(t *testing.T, c Cluster) {
	_, log := openLog(t, c)
	for i := range 20 {
		assert.Equal(t, revision(i+1), put(t, log, "record"))
	}
}

func replayFromAnyRevision(t *testing.T, c Cluster) {
	_, log := openLog(t, c)
	const count = 12
	for i := range count {
		put(t, log, fmt.Sprintf("record %d", i+1))
	}
	for from := 1; from <= count; from++ {
		w := watch(t, log, from)
		for want := from; want <= count; want++ {
			entry := next(t, w)
			require.Equal(t, revision(want), entry.Revision)
			require.Equal(t, fmt.Sprintf("record %d", want), string(entry.Data))
			require.Positive(t, entry.Time)
		}
		w.Stop()
	}
}

func watchFromTheFuture(t *testing.T, c Cluster) {
	_, log := openLog(t, c)
	put(t, log, "one")
	w := watch(t, log, 3)
	put(t, log, "two", "three")
	assert.Equal(t, "three", string(next(t, w).Data))
}

// oneOrder has instances put at once, and every instance watch.
func oneOrder(t *testing.T, c Cluster) {
	const instances, each = 3, 30
	logs := make([]coord.CommitLog, instances)
	watches := make([]coord.Watch, instances)
	for i := range instances {
		_, logs[i] = openLog(t, c)
		watches[i] = watch(t, logs[i], 1)
	}
	var mu sync.Mutex
	byRevision := map[base.Revision]string{}
	var writers sync.WaitGroup
	for i, log := range logs {
		writers.Go(func() {
			for n := range each {
				text := fmt.Sprintf("instance %d record %d", i, n)
				at, err := log.Put(t.Context(), []byte(text))
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				assert.NotContains(t, byRevision, at, "two records at one revision")
				byRevision[at] = text
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	for _, w := range watches {
		for want := 1; want <= instances*each; want++ {
			entry := next(t, w)
			require.Equal(t, revision(want), entry.Revision)
			require.Equal(t, byRevision[entry.Revision], string(entry.Data))
		}
	}
}

func boundsAtOnce(t *testing.T, c Cluster) {
	_, writer := openLog(t, c)
	_, reader := openLog(t, c)
	for range 50 {
		at := put(t, writer, "record")
		first, last, err := reader.Bounds(t.Context())
		require.NoError(t, err)
		require.Equal(t, at, last)
		require.Equal(t, revision(1), first)
	}
}

func logsAreApart(t *testing.T, c Cluster) {
	store, shard := openLog(t, c)
	meta, err := store.Log(t.Context(), "meta")
	require.NoError(t, err)
	put(t, shard, "one", "two")
	assert.Equal(t, revision(1), put(t, meta, "other"))
	assert.Equal(t, "other", string(next(t, watch(t, meta, 1)).Data))
	again, err := store.Log(t.Context(), "s00")
	require.NoError(t, err)
	assert.Equal(t, revision(3), put(t, again, "three"))
}

func stoppedWatch(t *testing.T, c Cluster) {
	_, log := openLog(t, c)
	w := watch(t, log, 1)
	for range 2000 { // more than any buffer on the way: the provider must not be stuck
		put(t, log, "record")
	}
	w.Stop()
	w.Stop()
	ended(t, w)
	assert.Equal(t, revision(2001), put(t, log, "after"))
}

func interruption(t *testing.T, c Cluster) {
	store, log := openLog(t, c)
	put(t, log, "one", "two")
	w := watch(t, log, 1)
	next(t, w)
	next(t, w)
	before := store.Reconnects()

	c.Interrupt(t)

	ended(t, w)
	require.Eventually(t, func() bool { return store.Reconnects() > before }, patience, 5*time.Millisecond)
	assert.Equal(t, revision(3), put(t, log, "three"))
	again := watch(t, log, 2) // overlaps what was seen
	assert.Equal(t, "two", string(next(t, again).Data))
	assert.Equal(t, "three", string(next(t, again).Data))
}

func strays(t *testing.T, c Cluster) {
	_, log := openLog(t, c)
	_, other := openLog(t, c)
	put(t, log, "ours")
	c.Stray(t, "s00", []byte("foreign"))
	c.Stray(t, "s00", nil)
	assert.Equal(t, revision(4), put(t, log, "ours again"))
	for _, l := range []coord.CommitLog{log, other} {
		w := watch(t, l, 1)
		for i, want := range []string{"ours", "foreign", "", "ours again"} {
			entry := next(t, w)
			assert.Equal(t, revision(i+1), entry.Revision)
			assert.Equal(t, want, string(entry.Data))
		}
	}
}

func ownBytes(t *testing.T, c Cluster) {
	_, log := openLog(t, c)
	first, second := watch(t, log, 1), watch(t, log, 1)
	data := []byte("record")
	_, err := log.Put(t.Context(), data)
	require.NoError(t, err)
	copy(data, "XXXXXX")
	got := next(t, first).Data
	assert.Equal(t, "record", string(got))
	copy(got, "YYYYYY")
	assert.Equal(t, "record", string(next(t, second).Data))
	assert.Equal(t, "record", string(next(t, watch(t, log, 1)).Data))
}

func refusals(t *testing.T, c Cluster) {
	store, log := openLog(t, c)
	largest := bytes.Repeat([]byte{'x'}, coord.MaxRecordBytes)
	_, err := log.Put(t.Context(), slices.Concat(largest, []byte{'x'}))
	require.ErrorIs(t, err, base.ErrInvalid)
	at, err := log.Put(t.Context(), largest)
	require.NoError(t, err)
	assert.Equal(t, revision(1), at, "the refused record left no trace")
	assert.Equal(t, largest, next(t, watch(t, log, 1)).Data)

	_, err = log.Watch(t.Context(), 0)
	require.ErrorIs(t, err, base.ErrInvalid)
	for _, name := range []string{"", "a.b", "a b", "a/b", "*"} {
		_, err = store.Log(t.Context(), name)
		require.ErrorIs(t, err, base.ErrInvalid, name)
	}
}

func closedStore(t *testing.T, c Cluster) {
	store, log := openLog(t, c)
	w := watch(t, log, 1)
	require.NoError(t, store.Close(t.Context()))
	ended(t, w)
	_, err := log.Put(t.Context(), []byte("late"))
	require.ErrorIs(t, err, base.ErrClosed)
	_, _, err = log.Bounds(t.Context())
	require.ErrorIs(t, err, base.ErrClosed)
	_, err = log.Watch(t.Context(), 1)
	require.ErrorIs(t, err, base.ErrClosed)
	_, err = store.Documents().Get(t.Context(), "key")
	require.ErrorIs(t, err, base.ErrClosed)
}
