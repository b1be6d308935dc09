package engine_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// filled returns the options of an engine that wrote to its directory and closed.
func filled(t *testing.T) engine.Options {
	t.Helper()
	opts := options(t)
	e := open(t, opts)
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	appendOrders(t, s, 0, 5)
	require.NoError(t, e.Close(t.Context()))
	return opts
}

// requireRefused requires that an engine does not open, and says why in words that
// help.
func requireRefused(t *testing.T, opts engine.Options, class error, words ...string) {
	t.Helper()
	e, err := engine.Open(t.Context(), opts)
	if err == nil {
		require.NoError(t, e.Close(t.Context()))
	}
	require.ErrorIs(t, err, class)
	for _, w := range words {
		require.ErrorContains(t, err, w)
	}
}

// files returns the paths of all files below a directory.
func files(t *testing.T, dir string) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// Given a cluster whose parts are not those that belong together, then an engine
// refuses it in words that name both, changes nothing, and opens it again once the
// parts are right.
func TestPartsThatDoNotBelongTogetherAreRefused(t *testing.T) {
	opts, other := filled(t), filled(t)
	objects := files(t, filepath.Join(opts.DataDir, "objects"))
	log, aside := filepath.Join(opts.DataDir, "nats"), filepath.Join(opts.DataDir, "aside")

	require.NoError(t, os.Rename(log, aside))
	requireRefused(t, opts, engine.ErrForeign, opts.DataDir+"/objects", "run lakestream recover")
	requireRefused(t, opts, engine.ErrForeign, "does not know") // the first attempt left nothing that helps the second
	require.NoError(t, os.RemoveAll(log))
	require.NoError(t, os.Rename(aside, log))

	foreign := opts
	foreign.Storage.URL = filepath.Join(other.DataDir, "objects")
	requireRefused(t, foreign, engine.ErrForeign, opts.DataDir, other.DataDir, "belong to different clusters")

	empty := opts
	empty.Storage.URL = t.TempDir()
	requireRefused(t, empty, engine.ErrForeign, empty.Storage.URL, "check the storage setting")
	require.Empty(t, files(t, empty.Storage.URL))

	require.Equal(t, objects, files(t, filepath.Join(opts.DataDir, "objects")))
	require.Len(t, readAll(t, opts, "shop/orders"), 5)
}

// Given objects of a log whose identity is gone too, then no fresh cluster is begun
// beside them.
func TestObjectsBesideAnEmptyLogAreNoFreshCluster(t *testing.T) {
	opts := filled(t)
	require.NoError(t, os.RemoveAll(filepath.Join(opts.DataDir, "nats")))
	require.NoError(t, os.Remove(filepath.Join(opts.DataDir, "objects", "cluster.json")))
	left := files(t, filepath.Join(opts.DataDir, "objects"))
	requireRefused(t, opts, engine.ErrForeign, "although the log that would explain it is empty", "nothing was changed")
	require.Equal(t, left, files(t, filepath.Join(opts.DataDir, "objects")))
}

// Given places that cannot be a data directory, then the error names the place, and
// nothing is created.
func TestPlacesThatAreNoDataDirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, place := range []string{file, filepath.Join(file, "below")} {
		opts := options(t)
		opts.DataDir = place
		requireRefused(t, opts, engine.ErrInvalid, place)
	}
	require.Equal(t, []string{file}, files(t, dir))
}

// Given servers that do not answer, then the error names them without their
// password, and no object is written.
func TestServersThatDoNotAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	opts := options(t)
	opts.NATS.URLs = []string{"nats://user:secret@" + address}
	opts.Storage.URL = t.TempDir()
	_, err = engine.Open(t.Context(), opts)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	require.ErrorContains(t, err, address)
	require.NotContains(t, err.Error(), "secret")
	require.Empty(t, files(t, opts.Storage.URL))
	require.Empty(t, files(t, opts.DataDir))
}

// Given options that are wrong in several ways, then the error names every field as
// the configuration does, and what it wants.
func TestEveryWrongOptionIsNamed(t *testing.T) {
	opts := options(t)
	opts.Shards, opts.LeaseTTL, opts.WAL.Compression, opts.Compaction.MaxMemoryBytes = -1, 1, "lz", 1
	requireRefused(t, opts, engine.ErrInvalid, "shards -1: want 1 to", "lease_ttl 1ns: want at least 5s",
		`wal.compression "lz": want zstd or none`, "compaction.max_memory_bytes 1: want")
	opts = options(t)
	opts.Storage.URL = "gopher://bucket"
	requireRefused(t, opts, engine.ErrInvalid, "storage url", "gopher")
	require.NoDirExists(t, filepath.Join(opts.DataDir, "objects"))
}

// Given a record over the limit among others, then it alone is refused, with its
// place and both sizes.
func TestARecordOverTheLimitIsRefusedAlone(t *testing.T) {
	opts := options(t)
	opts.WAL.MaxRecordBytes = 1 << 10
	e := open(t, opts)
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	batch := engine.Batch{Logs: []engine.LogRecords{{Records: []engine.Record{
		{Value: []byte(`{"n":0}`)}, {Value: make([]byte, 1025)}, {Value: []byte(`{"n":2}`)},
	}}}}
	require.NoError(t, s.Append(t.Context(), &batch))
	result := batch.Results[0]
	require.NoError(t, result.Err)
	require.Equal(t, 2, result.Records)
	require.Len(t, result.Invalid, 1)
	require.Equal(t, 1, result.Invalid[0].Index)
	require.ErrorIs(t, result.Invalid[0].Err, engine.ErrInvalid)
	require.ErrorContains(t, result.Invalid[0].Err, "record of 1025 bytes, at most 1024 are taken")
	require.NoError(t, e.Close(t.Context()))
	require.Equal(t, []string{`{"n":0}`, `{"n":2}`}, readAll(t, opts, "shop/orders"))
}

// readAll returns the payloads of a stream's first partition, read by an engine
// that only looks.
func readAll(t *testing.T, opts engine.Options, name string) (payloads []string) {
	t.Helper()
	opts.Observe = true
	e := open(t, opts)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	s, err := e.Stream(name)
	require.NoError(t, err)
	log, err := s.Log(0)
	require.NoError(t, err)
	_, head, err := log.Bounds()
	require.NoError(t, err)
	for next := engine.Offset(0); next < head; {
		records, err := log.Read(t.Context(), next, engine.ReadLimits{})
		require.NoError(t, err)
		for _, r := range records.Records {
			require.Equal(t, next, r.Offset)
			payloads = append(payloads, string(r.Value))
			next++
		}
	}
	return payloads
}
