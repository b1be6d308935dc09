// Package blobtest is the acceptance suite of package blob: what every Store must
// do, written as tests. A provider's own test calls Run with a function that opens
// an empty store. To demand something of every provider, add a test here.
package blobtest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
)

// Run runs the suite. open returns an empty store for one test; the suite closes
// it. Each test gets a store of its own.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	t.Helper()
	tests := []struct {
		name string
		run  func(*testing.T, blob.Store)
	}{
		{"an object reads back as it was put", readsBack},
		{"data belongs to the caller again after put", dataNotKept},
		{"a key is put once", putOnce},
		{"of many puts of one key exactly one wins", putRace},
		{"ranges are exact or an error", ranges},
		{"the destination is used where it suffices", destination},
		{"an absent object is not found", absent},
		{"a key outside the grammar is invalid everywhere", invalidKeys},
		{"stat tells key and size", stat},
		{"delete removes and is repeatable", deletes},
		{"lists are in byte order, paged", lists},
		{"a list is of whole prefixes of keys", listPrefixes},
		{"a list agrees with a model", listAgreesWithModel},
		{"a created object appears at commit", commitShows},
		{"an aborted object never appears", abortHides},
		{"a commit never replaces", commitOnce},
		{"of many commits of one key exactly one wins", commitRace},
		{"a cancelled context ends a write", cancelledWrite},
		{"a cancelled context refuses every call", cancelledCalls},
		{"a closed store refuses every call", closedStore},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			test.run(t, s)
		})
	}
}

// Content returns size bytes that differ from block to block and from seed to seed.
func Content(seed byte, size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = seed + byte(i) + byte(i>>8)
	}
	return data
}

func put(t *testing.T, s blob.Store, key string, data []byte) {
	t.Helper()
	require.NoError(t, s.Put(t.Context(), key, data))
}

func requireObject(t *testing.T, s blob.Store, key string, want []byte) {
	t.Helper()
	got, err := s.ReadRange(t.Context(), key, 0, int64(len(want)), nil)
	require.NoError(t, err)
	require.Len(t, got, len(want))
	if !bytes.Equal(want, got) { // a diff of whole objects helps nobody
		require.Fail(t, "other bytes than were put", "object %s", key)
	}
	info, err := s.Stat(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, int64(len(want)), info.Size)
}

func requireAbsent(t *testing.T, s blob.Store, key string) {
	t.Helper()
	_, err := s.Stat(t.Context(), key)
	require.ErrorIs(t, err, base.ErrNotFound)
	found, err := s.List(t.Context(), key, "", 10)
	require.NoError(t, err)
	require.Empty(t, found)
}

// allCalls makes every call that a store has and returns the error of each.
func allCalls(ctx context.Context, s blob.Store, key string) map[string]error {
	_, createErr := s.Create(ctx, key)
	_, readErr := s.ReadRange(ctx, key, 0, 1, nil)
	_, statErr := s.Stat(ctx, key)
	_, listErr := s.List(ctx, key, "", 1)
	return map[string]error{
		"Put": s.Put(ctx, key, []byte("x")), "Create": createErr, "ReadRange": readErr,
		"Stat": statErr, "List": listErr, "Delete": s.Delete(ctx, key),
	}
}

// race runs n contenders at once and returns the index of the only one that won;
// every other must have lost to it with ErrExists.
func race(t *testing.T, n int, contend func(i int) error) int {
	t.Helper()
	errs := make([]error, n)
	start := make(chan struct{})
	var contenders sync.WaitGroup
	for i := range n {
		contenders.Go(func() {
			<-start
			errs[i] = contend(i)
		})
	}
	close(start)
	contenders.Wait()
	winner := -1
	for i, err := range errs {
		if err == nil {
			require.Equal(t, -1, winner, "contenders %d and %d both won", winner, i)
			winner = i
			continue
		}
		require.ErrorIs(t, err, base.ErrExists, "contender %d", i)
	}
	require.NotEqual(t, -1, winner, "nobody won")
	return winner
}

func contenderData(i int) []byte { return fmt.Appendf(nil, "contender %02d", i) }
