// Package coordtest is the acceptance suite of the coordination seam: what every
// provider of coord.Store must do, told as stories. A provider calls Run from
// its own tests with a way to start a cluster.
package coordtest

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/coord"
)

// patience bounds every wait of the suite.
const patience = 20 * time.Second

// Cluster is a fresh, empty cluster under test.
type Cluster struct {
	// Open connects one more instance and closes it when the test ends.
	Open func(t *testing.T) coord.Store
	// Interrupt breaks the connections of all instances and lets them come
	// back. It may return before they have.
	Interrupt func(t *testing.T)
	// Pass lets time go by, for times to live.
	Pass func(t *testing.T, d time.Duration)
	// Stray does to a log what a foreign client could do: put a record, or,
	// with nil data, delete the key.
	Stray func(t *testing.T, log string, data []byte)
}

type story struct {
	name string
	tell func(t *testing.T, c Cluster)
}

// Run tells each story on a cluster of its own.
func Run(t *testing.T, start func(t *testing.T) Cluster) {
	t.Helper()
	for _, s := range slices.Concat(logStories(), purgeStories(), documentStories()) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel() // some stories wait for real time to pass
			s.tell(t, start(t))
		})
	}
}

// openLog opens the log "s00" through one more instance.
func openLog(t *testing.T, c Cluster) (coord.Store, coord.CommitLog) {
	t.Helper()
	store := c.Open(t)
	log, err := store.Log(t.Context(), "s00")
	require.NoError(t, err)
	return store, log
}

// watch starts a watch that ends with the test.
func watch(t *testing.T, log coord.CommitLog, from int) coord.Watch {
	t.Helper()
	w, err := log.Watch(t.Context(), revision(from))
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return w
}

// next receives one entry.
func next(t *testing.T, w coord.Watch) coord.Entry {
	t.Helper()
	select {
	case entry, ok := <-w.Entries():
		require.True(t, ok, "the watch ended")
		return entry
	case <-time.After(patience):
		require.FailNow(t, "no entry arrived")
	}
	return coord.Entry{}
}

// ended waits until the watch's channel is closed, past what lies in it.
func ended(t *testing.T, w coord.Watch) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case _, ok := <-w.Entries():
			if !ok {
				return
			}
		case <-deadline:
			require.FailNow(t, "the watch did not end")
		}
	}
}
