package engine_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakestream-go/lakestream/engine"
)

// Given an engine that two components share, then it closes with the second release,
// and components that want it otherwise are told which field differs.
func TestComponentsOfAProcessShareAnEngine(t *testing.T) {
	opts := options(t)
	first, releaseFirst, err := engine.Acquire(t.Context(), opts)
	require.NoError(t, err)
	second, releaseSecond, err := engine.Acquire(t.Context(), opts)
	require.NoError(t, err)
	require.Same(t, first, second)

	other := opts
	other.WAL.Linger = 77 * time.Millisecond
	_, _, err = engine.Acquire(t.Context(), other)
	require.ErrorIs(t, err, engine.ErrInvalid)
	require.ErrorContains(t, err, "wal.linger (10ms and 77ms)")
	secret := opts
	secret.Catalog.Properties = map[string]string{"token": "hunter2"}
	_, _, err = engine.Acquire(t.Context(), secret)
	require.ErrorContains(t, err, "catalog.properties")
	require.NotContains(t, err.Error(), "hunter2")
	require.ErrorContains(t, err, "share the engine on embedded NATS in "+opts.DataDir)

	require.NoError(t, releaseFirst(t.Context()))
	require.NoError(t, releaseFirst(t.Context()), "the second time does nothing")
	_, err = second.EnsureStream(t.Context(), "a/b", engine.StreamConfig{})
	require.NoError(t, err, "the engine is open while someone holds it")

	var closed []engine.Status
	engine.OnClose(func(s engine.Status, _ error) { closed = append(closed, s) })
	require.NoError(t, releaseSecond(t.Context()))
	require.Len(t, closed, 1)
	require.Equal(t, first.Cluster(), closed[0].Cluster)

	again, release, err := engine.Acquire(t.Context(), other)
	require.NoError(t, err, "a closed engine's options bind nobody")
	require.NotSame(t, first, again)
	require.NoError(t, release(t.Context()))
}

// Given any key, then its partition is the one that Kafka's clients choose.
func TestKeysHaveTheirKafkaPartition(t *testing.T) {
	const n = 12
	oracle := kgo.StickyKeyPartitioner(nil).ForTopic("t")
	for _, key := range []string{"a", "ab", "abc", "abcd", "abcde", "octo-org/octo-repo", "Ünïcode", "\x00\xff\xfe", "0123456789abcdef0"} {
		want := oracle.Partition(&kgo.Record{Key: []byte(key)}, n)
		require.Equal(t, want, engine.KeyPartition([]byte(key), n), "key %q", key)
	}
}

// Given options that cannot work, then the error names each field.
func TestWrongOptionsAreNamed(t *testing.T) {
	opts := options(t)
	opts.Shards, opts.WAL.Linger, opts.LeaseTTL = 99, -time.Second, time.Second
	opts.NATS.URLs = []string{"nats://127.0.0.1:1"}
	opts.Catalog.URI, opts.Catalog.Warehouse = "postgres://user:secret@db/x", "ftp://bucket/x"
	_, err := engine.Open(t.Context(), opts)
	require.ErrorIs(t, err, engine.ErrInvalid)
	for _, field := range []string{"shards 99", "wal.linger -1s", "lease_ttl 1s", "storage.url", "catalog.uri postgres://", "catalog.warehouse ftp://"} {
		require.ErrorContains(t, err, field)
	}
	require.NotContains(t, err.Error(), "secret")
}

// Given a directory that does not exist, when an engine only looks, then it says so
// and creates nothing.
func TestLookingCreatesNothing(t *testing.T) {
	opts := options(t)
	opts.DataDir += "/absent"
	opts.Observe = true
	_, err := engine.Open(t.Context(), opts)
	require.ErrorIs(t, err, engine.ErrNotFound)
	require.NoDirExists(t, opts.DataDir)
}

// Given an engine that writes, when another looks at the same directory, then it sees
// the stream and its records at once, and can append nothing.
func TestAnObserverSeesARunningEngine(t *testing.T) {
	opts := options(t)
	e := open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{Partitions: 2})
	require.NoError(t, err)
	appendOrders(t, s, 0, 10)

	opts.Observe = true
	observer := open(t, opts)
	defer func() { require.NoError(t, observer.Close(context.WithoutCancel(t.Context()))) }()
	status := observer.Status(t.Context())
	require.Len(t, status.Streams, 1)
	require.Equal(t, "shop/orders", status.Streams[0].Name)
	require.Equal(t, int64(10), status.Streams[0].Records)
	require.Empty(t, status.Problems)
	require.NotEmpty(t, status.Instances)

	seen, err := observer.Stream("shop/orders")
	require.NoError(t, err)
	batch := engine.Batch{Logs: []engine.LogRecords{{Records: []engine.Record{{Value: []byte("x")}}}}}
	require.ErrorIs(t, seen.Append(t.Context(), &batch), engine.ErrInvalid)
}

// Given engines on memory, then records are appended, read back and materialized, and
// nothing is left of one when the next is opened.
func TestObjectsCanLiveInMemory(t *testing.T) {
	opts := options(t)
	opts.Storage.URL = "mem://"
	opts.WAL.Linger = time.Millisecond
	for range 2 {
		e := open(t, opts)
		require.Empty(t, e.Streams())
		s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
		require.NoError(t, err)
		appendOrders(t, s, 0, 10)
		log, err := s.Log(0)
		require.NoError(t, err)
		records, err := log.Read(t.Context(), 3, engine.ReadLimits{MaxMessages: 2})
		require.NoError(t, err)
		require.Len(t, records.Records, 2)
		require.Equal(t, engine.Offset(5), records.Next)
		at, err := log.OffsetAt(t.Context(), time.Now().Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, engine.Offset(10), at)
		require.NoError(t, e.Close(t.Context()))
	}
	left, err := os.ReadDir(opts.DataDir)
	require.NoError(t, err)
	require.Empty(t, left)

	opts.Observe = true
	_, err = engine.Open(t.Context(), opts)
	require.ErrorIs(t, err, engine.ErrInvalid)
	require.ErrorContains(t, err, "storage.url")
}
