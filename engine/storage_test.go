package engine_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
	"github.com/lakestream-go/lakestream/internal/blob/servertest"
)

// onServer are the options of an engine whose objects and tables are in a bucket.
func onServer(t *testing.T, server *servertest.Server) engine.Options {
	opts := options(t)
	opts.Storage = engine.StorageOptions{
		URL: server.Prefix(), Region: server.Cloud.Region, Endpoint: server.Cloud.Endpoint,
		ForcePathStyleURLs: server.Cloud.ForcePathStyleURLs, Credentials: server.Cloud.Credentials,
	}
	return opts
}

// Given a real object store, when records are appended, compacted and materialized,
// and the engine is closed and opened again, then the log replays every record, the
// table is proved to hold each once, everything lies in the bucket, and appends go
// on.
func TestAStreamLivesInABucket(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *servertest.Server{
		"S3": servertest.S3, "GCS": servertest.GCS, "Azure": servertest.Azure,
	} {
		t.Run(name, func(t *testing.T) {
			opts := onServer(t, start(t))
			for round := range 2 {
				e := open(t, opts)
				s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
				require.NoError(t, err)
				requireReplay(t, s, 100*round)
				appendOrders(t, s, 100*round, 60)
				appendOrders(t, s, 100*round+60, 40)
				require.NoError(t, e.Close(t.Context()))
				requireRequests(t, e)
			}
			requireVerified(t, opts, 200)
			require.NoDirExists(t, filepath.Join(opts.DataDir, "objects"))
			require.NoDirExists(t, filepath.Join(opts.DataDir, "warehouse"))
		})
	}
}

func requireReplay(t *testing.T, s *engine.Stream, n int) {
	t.Helper()
	log, err := s.Log(0)
	require.NoError(t, err)
	for next := engine.Offset(0); next < engine.Offset(n); {
		records, err := log.Read(t.Context(), next, engine.ReadLimits{})
		require.NoError(t, err)
		for _, r := range records.Records {
			require.Equal(t, next, r.Offset)
			require.JSONEq(t, fmt.Sprintf(`{"id":%d,"name":"order %d"}`, next, next), string(r.Value))
			next++
		}
	}
}

// requireRequests checks that an engine counted what it asked of the store.
func requireRequests(t *testing.T, e *engine.Engine) {
	t.Helper()
	asked := e.Status(t.Context()).Requests
	require.Positive(t, asked.Puts)
	require.Positive(t, asked.Gets)
	require.Positive(t, asked.PutBytes)
}

func requireVerified(t *testing.T, opts engine.Options, rows int64) {
	t.Helper()
	opts.Observe = true
	e := open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	table, err := e.Table("shop.orders")
	require.NoError(t, err)
	report, err := table.Verify(t.Context())
	require.NoError(t, err)
	require.NoError(t, report.Complete())
	require.Equal(t, rows, report.Partitions[0].Rows)
	status := e.Status(t.Context())
	require.Equal(t, opts.Storage.URL, status.Storage)
	require.True(t, strings.HasPrefix(status.Streams[0].Table.Location, status.Warehouse+"/"), status.Streams[0].Table.Location)
	require.True(t, strings.HasSuffix(status.Warehouse, "/warehouse"), status.Warehouse)
	require.Empty(t, status.Problems)
}

// Given a warehouse in another place of the bucket, when a stream is materialized,
// then its table is there.
func TestATableMayLieApartFromItsLog(t *testing.T) {
	server := servertest.S3(t)
	opts := onServer(t, server)
	opts.Catalog.Warehouse = server.Prefix()
	e := open(t, opts)
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	appendOrders(t, s, 0, 10)
	require.NoError(t, e.Close(t.Context()))
	opts.Observe = true
	e = open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	location := e.Status(t.Context()).Streams[0].Table.Location
	require.True(t, strings.HasPrefix(location, opts.Catalog.Warehouse+"/"), location)
}

// Given credentials that the store does not know, when the engine opens, then it
// says what to correct, shows no secret and leaves nothing that a later start would
// mistake for a cluster.
func TestAStoreThatDoesNotKnowUsIsNamed(t *testing.T) {
	server := servertest.S3(t)
	opts := onServer(t, server)
	good := opts.Storage.Credentials.Secret
	opts.Storage.Credentials.Secret = "hunter2hunter2"
	_, err := engine.Open(t.Context(), opts)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	require.ErrorContains(t, err, "storage.credentials.secret")
	require.NotContains(t, err.Error(), "hunter2")
	opts.Storage.Credentials.Secret = good
	require.NoError(t, open(t, opts).Close(t.Context()))
}

func TestStorageOptionsAreCheckedWithoutOpening(t *testing.T) {
	tests := map[string]struct {
		storage   engine.StorageOptions
		warehouse string
		says      string
	}{
		"plaintext off loopback":       {engine.StorageOptions{URL: "s3://lake", Endpoint: "http://minio:9000"}, "", "storage.endpoint"},
		"options of a bucket on files": {engine.StorageOptions{Region: "eu-west-1"}, "", "are for s3"},
		"an account that nobody names": {engine.StorageOptions{URL: "azblob://lake"}, "", "storage.credentials.id"},
		"a warehouse of another account": {
			engine.StorageOptions{URL: "azblob://lake", Credentials: engine.StorageCredentials{ID: "acme"}},
			"abfss://lake@other.dfs.core.windows.net/x", "must lie in storage.url",
		},
		"a warehouse nowhere": {engine.StorageOptions{}, "ftp://x", "catalog.warehouse"},
		"a secret in the url": {engine.StorageOptions{URL: "s3://me:hunter2@lake"}, "", "credentials"},
	}
	t.Setenv("AZURE_STORAGE_ACCOUNT", "")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			opts := options(t)
			opts.Storage, opts.Catalog.Warehouse = test.storage, test.warehouse
			err := opts.WithDefaults().Validate()
			require.ErrorIs(t, err, engine.ErrInvalid)
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}
