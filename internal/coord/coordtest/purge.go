package coordtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

func purgeStories() []story {
	return []story{
		{"a purge drops what lies below and nothing else", purgeBelow},
		{"a purge keeps the last record and the place of the log", purgeKeepsTheLast},
		{"an empty log can be purged", purgeEmpty},
		{"a purge during a watch loses nothing above it", purgeUnderAWatch},
		{"a log starts at the revision it is told to", logFromARevision},
		{"a log from revision 1 is like any other", logFromOne},
		{"a log that is there is not started elsewhere", logFromIsNoReset},
		{"the place of a log outlives an interruption", placeOutlivesAnInterruption},
		{"of racing starts of a log none undoes another", racingStarts},
	}
}

// requireBounds compares the bounds of a log as each instance sees them.
func requireBounds(t *testing.T, first, last int, logs ...coord.CommitLog) {
	t.Helper()
	for _, log := range logs {
		f, l, err := log.Bounds(t.Context())
		require.NoError(t, err)
		require.Equal(t, [2]base.Revision{revision(first), revision(last)}, [2]base.Revision{f, l})
	}
}

func purgeBelow(t *testing.T, c Cluster) {
	_, log := openLog(t, c)
	_, other := openLog(t, c)
	const count = 10
	for i := range count {
		put(t, log, fmt.Sprintf("record %d", i+1))
	}
	for _, below := range []int{0, 1, 2, 6, 6, 3, 9} {
		before, _, err := log.Bounds(t.Context())
		require.NoError(t, err)
		require.NoError(t, log.Purge(t.Context(), revision(below)))
		first := max(int(before), below) //nolint:gosec // small numbers
		requireBounds(t, first, count, log, other)
		for _, from := range []int{1, first} {
			w := watch(t, other, from)
			for want := first; want <= count; want++ {
				entry := next(t, w)
				require.Equal(t, revision(want), entry.Revision)
				require.Equal(t, fmt.Sprintf("record %d", want), string(entry.Data))
			}
			w.Stop()
		}
	}
	assert.Equal(t, revision(count+1), put(t, other, "after"))
}

func purgeKeepsTheLast(t *testing.T, c Cluster) {
	_, log := openLog(t, c)
	_, other := openLog(t, c)
	put(t, log, "one", "two", "three")
	for range 2 {
		require.NoError(t, log.Purge(t.Context(), 1000))
		requireBounds(t, 3, 3, log, other)
	}
	assert.Equal(t, "three", string(next(t, watch(t, other, 1)).Data))
	assert.Equal(t, revision(4), put(t, other, "four"))
	requireBounds(t, 3, 4, log, other)
}

func purgeEmpty(t *testing.T, c Cluster) {
	_, log := openLog(t, c)
	require.NoError(t, log.Purge(t.Context(), 7))
	requireBounds(t, 0, 0, log)
	assert.Equal(t, revision(1), put(t, log, "one"))
}

// purgeUnderAWatch purges right behind a receiver while records arrive.
func purgeUnderAWatch(t *testing.T, c Cluster) {
	_, log := openLog(t, c)
	w := watch(t, log, 1)
	for want := 1; want <= 30; want++ {
		put(t, log, "record")
		require.Equal(t, revision(want), next(t, w).Revision)
		require.NoError(t, log.Purge(t.Context(), revision(want)))
		requireBounds(t, want, want, log)
	}
}

func logFromARevision(t *testing.T, c Cluster) {
	const first = 4711
	store := c.Open(t)
	log, err := store.LogFrom(t.Context(), "s00", first)
	require.NoError(t, err)
	_, other := openLog(t, c)
	requireBounds(t, first, first-1, log, other)
	require.NoError(t, log.Purge(t.Context(), first+1), "there is nothing to purge")
	requireBounds(t, first, first-1, log, other)

	again, err := store.LogFrom(t.Context(), "s00", first)
	require.NoError(t, err, "it is as it was asked for")
	early := watch(t, other, 1)
	assert.Equal(t, revision(first), put(t, again, "first"))
	assert.Equal(t, revision(first+1), put(t, other, "second"))
	requireBounds(t, first, first+1, log, other)
	for _, w := range []coord.Watch{early, watch(t, log, 1), watch(t, log, first)} {
		entry := next(t, w)
		assert.Equal(t, revision(first), entry.Revision)
		assert.Equal(t, "first", string(entry.Data))
		assert.Equal(t, revision(first+1), next(t, w).Revision)
	}
}

func logFromOne(t *testing.T, c Cluster) {
	log, err := c.Open(t).LogFrom(t.Context(), "s00", 1)
	require.NoError(t, err)
	requireBounds(t, 0, 0, log)
	assert.Equal(t, revision(1), put(t, log, "one"))
	requireBounds(t, 1, 1, log)
}

func logFromIsNoReset(t *testing.T, c Cluster) {
	store, log := openLog(t, c)
	_, err := store.LogFrom(t.Context(), "s00", 5)
	require.ErrorIs(t, err, base.ErrExists, "it is empty and starts at 1")
	put(t, log, "one", "two", "three")
	require.NoError(t, log.Purge(t.Context(), 3))
	for _, first := range []int{1, 3, 4, 5} {
		_, err = c.Open(t).LogFrom(t.Context(), "s00", revision(first))
		require.ErrorIs(t, err, base.ErrExists, "from %d", first)
	}
	requireBounds(t, 3, 3, log)
	assert.Equal(t, revision(4), put(t, log, "four"))
	for _, first := range []base.Revision{0, 1 << 60} {
		_, err = store.LogFrom(t.Context(), "s01", first)
		require.ErrorIs(t, err, base.ErrInvalid)
	}
	_, err = store.LogFrom(t.Context(), "s.1", 2)
	require.ErrorIs(t, err, base.ErrInvalid)
}

// Bounds are as they were when the servers come back.
func placeOutlivesAnInterruption(t *testing.T, c Cluster) {
	store, log := openLog(t, c)
	empty, err := store.LogFrom(t.Context(), "s01", 42)
	require.NoError(t, err)
	put(t, log, "one", "two", "three")
	require.NoError(t, log.Purge(t.Context(), 3))
	before := store.Reconnects()
	c.Interrupt(t)
	require.Eventually(t, func() bool { return store.Reconnects() > before }, patience, 5*time.Millisecond)
	requireBounds(t, 3, 3, log)
	requireBounds(t, 42, 41, empty)
	assert.Equal(t, revision(42), put(t, empty, "first"))
	assert.Equal(t, revision(4), put(t, log, "four"))
}

// racingStarts has instances start one log, each elsewhere, and put at once: what
// one was acknowledged stays where it is.
func racingStarts(t *testing.T, c Cluster) {
	const instances = 4
	type started struct{ asked, got base.Revision }
	results := make(chan started, instances)
	for i := range instances {
		store, first := c.Open(t), revision(100*(i+1))
		go func() {
			log, err := store.LogFrom(t.Context(), "s00", first)
			if err != nil {
				assert.ErrorIs(t, err, base.ErrExists)
				results <- started{}
				return
			}
			at, err := log.Put(t.Context(), fmt.Append(nil, first))
			assert.NoError(t, err)
			results <- started{first, at}
		}()
	}
	winners := 0
	for range instances {
		if r := <-results; r.asked != 0 {
			winners++
			assert.Equal(t, r.asked, r.got)
			_, log := openLog(t, c)
			requireBounds(t, int(r.asked), int(r.got), log) //nolint:gosec // small numbers
		}
	}
	assert.Equal(t, 1, winners)
}
