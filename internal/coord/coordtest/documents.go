package coordtest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// ttl is the time to live that the suite gives documents that are to expire.
const ttl = 2 * time.Second

func documentStories() []story {
	return []story{
		{"a document is created once", createOnce},
		{"a document changes by compare-and-set", compareAndSet},
		{"of racing changes one wins", racingChanges},
		{"of racing creates one wins", racingCreates},
		{"a deleted document can be created again", createAfterDelete},
		{"documents are listed by prefix", listByPrefix},
		{"a document expires unless updated", expiry},
		{"a document made permanent does not expire", permanence},
		{"bad keys, values and times are refused", badDocuments},
	}
}

func createOnce(t *testing.T, c Cluster) {
	docs, other := c.Open(t).Documents(), c.Open(t).Documents()
	_, err := docs.Get(t.Context(), "a.b")
	require.ErrorIs(t, err, base.ErrNotFound)
	at, err := docs.Create(t.Context(), "a.b", []byte("value"), 0)
	require.NoError(t, err)
	_, err = other.Create(t.Context(), "a.b", []byte("mine"), 0)
	require.ErrorIs(t, err, base.ErrExists)
	got, err := other.Get(t.Context(), "a.b")
	require.NoError(t, err)
	assert.Equal(t, coord.Document{Key: "a.b", Value: []byte("value"), Revision: at}, got)
}

func compareAndSet(t *testing.T, c Cluster) {
	docs := c.Open(t).Documents()
	_, err := docs.Update(t.Context(), "k", []byte("v"), 1, 0)
	require.ErrorIs(t, err, base.ErrConflict, "an absent document")
	first, err := docs.Create(t.Context(), "k", []byte("1"), 0)
	require.NoError(t, err)
	second, err := docs.Update(t.Context(), "k", []byte("2"), first, 0)
	require.NoError(t, err)
	assert.Greater(t, second, first)
	for _, stale := range []base.Revision{0, first, second + 1} {
		_, err = docs.Update(t.Context(), "k", []byte("3"), stale, 0)
		require.ErrorIs(t, err, base.ErrConflict)
		require.ErrorIs(t, docs.Delete(t.Context(), "k", stale), base.ErrConflict)
	}
	got, err := docs.Get(t.Context(), "k")
	require.NoError(t, err)
	assert.Equal(t, coord.Document{Key: "k", Value: []byte("2"), Revision: second}, got)
}

// racingChanges has instances count up one document, each by reading and then
// changing it: the sum is exact only if no change overwrites another.
func racingChanges(t *testing.T, c Cluster) {
	const instances, each = 3, 10
	docs := c.Open(t).Documents()
	_, err := docs.Create(t.Context(), "counter", []byte("0"), 0)
	require.NoError(t, err)
	var counters sync.WaitGroup
	for range instances {
		mine := c.Open(t).Documents()
		counters.Go(func() {
			for done := 0; done < each; {
				err := increment(t, mine)
				if err == nil {
					done++
				} else if !assert.ErrorIs(t, err, base.ErrConflict) {
					return
				}
			}
		})
	}
	counters.Wait()
	got, err := docs.Get(t.Context(), "counter")
	require.NoError(t, err)
	assert.Equal(t, strconv.Itoa(instances*each), string(got.Value))
}

func increment(t *testing.T, docs coord.Documents) error {
	doc, err := docs.Get(t.Context(), "counter")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(doc.Value))
	if err != nil {
		return err
	}
	_, err = docs.Update(t.Context(), "counter", []byte(strconv.Itoa(n+1)), doc.Revision, 0)
	return err
}

func racingCreates(t *testing.T, c Cluster) {
	const instances = 4
	var won, lost atomic.Int32
	var racers sync.WaitGroup
	for i := range instances {
		docs := c.Open(t).Documents()
		racers.Go(func() {
			_, err := docs.Create(t.Context(), "identity", fmt.Append(nil, i), 0)
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, base.ErrExists):
				lost.Add(1)
			}
		})
	}
	racers.Wait()
	assert.EqualValues(t, 1, won.Load())
	assert.EqualValues(t, instances-1, lost.Load())
}

func createAfterDelete(t *testing.T, c Cluster) {
	docs := c.Open(t).Documents()
	at, err := docs.Create(t.Context(), "k", []byte("1"), 0)
	require.NoError(t, err)
	require.NoError(t, docs.Delete(t.Context(), "k", at))
	_, err = docs.Get(t.Context(), "k")
	require.ErrorIs(t, err, base.ErrNotFound)
	require.ErrorIs(t, docs.Delete(t.Context(), "k", at), base.ErrConflict)
	_, err = docs.Update(t.Context(), "k", []byte("late"), at, 0)
	require.ErrorIs(t, err, base.ErrConflict)
	again, err := docs.Create(t.Context(), "k", []byte("2"), 0)
	require.NoError(t, err)
	assert.Greater(t, again, at, "revisions never repeat")
}

func listByPrefix(t *testing.T, c Cluster) {
	docs := c.Open(t).Documents()
	for _, key := range []string{"lease.b", "lease.a", "lease.a.deep", "leases", "other", "lease.gone"} {
		at, err := docs.Create(t.Context(), key, []byte("value of "+key), 0)
		require.NoError(t, err)
		if key == "lease.gone" {
			require.NoError(t, docs.Delete(t.Context(), key, at))
		}
	}
	for prefix, want := range map[string][]string{
		"lease.":   {"lease.a", "lease.a.deep", "lease.b"},
		"lease":    {"lease.a", "lease.a.deep", "lease.b", "leases"},
		"lease.a.": {"lease.a.deep"},
		"":         {"lease.a", "lease.a.deep", "lease.b", "leases", "other"},
		"nothing":  nil,
	} {
		found, err := docs.List(t.Context(), prefix)
		require.NoError(t, err)
		var keys []string
		for _, doc := range found {
			keys = append(keys, doc.Key)
			assert.Equal(t, "value of "+doc.Key, string(doc.Value))
			assert.NotZero(t, doc.Revision)
		}
		assert.Equal(t, want, keys, "prefix %q", prefix)
	}
}

func expiry(t *testing.T, c Cluster) {
	docs := c.Open(t).Documents()
	at, err := docs.Create(t.Context(), "k", []byte("1"), ttl)
	require.NoError(t, err)
	for range 2 { // together longer than the time to live
		c.Pass(t, ttl*2/3)
		at, err = docs.Update(t.Context(), "k", []byte("renewed"), at, ttl)
		require.NoError(t, err)
	}
	c.Pass(t, ttl+ttl/2)
	_, err = docs.Get(t.Context(), "k")
	require.ErrorIs(t, err, base.ErrNotFound)
	_, err = docs.Update(t.Context(), "k", []byte("late"), at, ttl)
	require.ErrorIs(t, err, base.ErrConflict)
	found, err := docs.List(t.Context(), "")
	require.NoError(t, err)
	assert.Empty(t, found)
	again, err := docs.Create(t.Context(), "k", []byte("2"), ttl)
	require.NoError(t, err)
	assert.Greater(t, again, at)
}

func permanence(t *testing.T, c Cluster) {
	docs := c.Open(t).Documents()
	at, err := docs.Create(t.Context(), "k", []byte("1"), ttl)
	require.NoError(t, err)
	_, err = docs.Update(t.Context(), "k", []byte("2"), at, 0)
	require.NoError(t, err)
	c.Pass(t, ttl+ttl/2)
	got, err := docs.Get(t.Context(), "k")
	require.NoError(t, err)
	assert.Equal(t, "2", string(got.Value))
}

func badDocuments(t *testing.T, c Cluster) {
	docs := c.Open(t).Documents()
	for _, key := range []string{"", ".", "a.", ".a", "a..b", "a b", "a/b", "a.*", "a.>", "ä"} {
		_, err := docs.Create(t.Context(), key, nil, 0)
		require.ErrorIs(t, err, base.ErrInvalid, "key %q", key)
		_, err = docs.Get(t.Context(), key)
		require.ErrorIs(t, err, base.ErrInvalid, "key %q", key)
		require.ErrorIs(t, docs.Delete(t.Context(), key, 1), base.ErrInvalid, "key %q", key)
	}
	for _, bad := range []time.Duration{-time.Second, time.Millisecond, 1500 * time.Millisecond} {
		_, err := docs.Create(t.Context(), "k", nil, bad)
		require.ErrorIs(t, err, base.ErrInvalid, "time to live %s", bad)
		_, err = docs.Update(t.Context(), "k", nil, 1, bad)
		require.ErrorIs(t, err, base.ErrInvalid, "time to live %s", bad)
	}
	_, err := docs.Create(t.Context(), "k", bytes.Repeat([]byte{'x'}, coord.MaxRecordBytes+1), 0)
	require.ErrorIs(t, err, base.ErrInvalid)
}
