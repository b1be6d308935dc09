// Package servertest starts real object stores for tests: versitygw, a server of the
// S3 protocol; fake-gcs-server and Azurite, the emulators of Google Cloud Storage
// and Azure Blob Storage. Each test that asks gets a server of its own, on
// loopback, with a bucket in a temporary directory or in memory, which ends with
// the test.
//
// The program of a server is looked for in the environment variable that its type
// names, in .ci/cache/stores of the checkout, where .ci/stores installs all three,
// and in PATH. Where there is none the test is skipped, or fails when
// LAKESTREAM_TEST_STORES is "required".
//
// To add a server, write a function that starts it and returns a Server, and have
// .ci/stores install its program.
package servertest

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/blob"
)

// Server is a running object store with one bucket.
type Server struct {
	// URL names the bucket, as storage.url does.
	URL string
	// Cloud says how to reach it.
	Cloud blob.Cloud

	prefixes atomic.Int64
}

// Open opens the store under a prefix of its own: empty, and apart from all others.
func (s *Server) Open(t testing.TB) blob.Store {
	t.Helper()
	store, err := blob.Open(t.Context(), s.Prefix(), blob.Options{Cloud: s.Cloud})
	require.NoError(t, err)
	return store
}

// Prefix returns the URL of a part of the bucket that nobody else was given.
func (s *Server) Prefix() string {
	return s.URL + "/test/" + strconv.FormatInt(s.prefixes.Add(1), 10)
}

// required is the value of LAKESTREAM_TEST_STORES that turns a skip into a failure.
const required = "required"

// find returns the path of a program, or ends the test.
func find(t testing.TB, variable, program string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	_, here, _, _ := runtime.Caller(0)
	cached := filepath.Join(filepath.Dir(here), "..", "..", "..", ".ci", "cache", "stores", "bin", program)
	if _, err := os.Stat(cached); err == nil {
		return cached
	}
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	if os.Getenv("LAKESTREAM_TEST_STORES") == required {
		t.Fatalf("%s was not found: run .ci/stores, which installs it, or name it in %s", program, variable)
	}
	t.Skipf("SKIPPED: this test needs %s: run .ci/stores, which installs it, or name it in %s", program, variable)
	return ""
}

// Time that a server gets to answer for the first time, and pauses between looks.
const (
	startTimeout = 60 * time.Second
	startPause   = 50 * time.Millisecond
)

// start runs a program until the test ends, and waits until it listens.
func start(t testing.TB, address, program string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	output, err := os.Create(filepath.Join(dir, "output"))
	require.NoError(t, err)
	cmd := exec.Command(program, args...) //nolint:gosec,noctx // a test's own program, which its clean-up ends
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, output, output
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // killed below
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("output of %s:\n%s", program, tail(output))
		}
		_ = output.Close()
	})
	await(t, address, program, ended, output)
}

func await(t testing.TB, address, program string, ended <-chan struct{}, output *os.File) {
	t.Helper()
	dialer := net.Dialer{Timeout: time.Second}
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(startPause) {
		select {
		case <-ended:
			t.Fatalf("%s ended: %s", program, tail(output))
		default:
		}
		if conn, err := dialer.DialContext(t.Context(), "tcp", address); err == nil {
			_ = conn.Close()
			return
		}
	}
	t.Fatalf("%s does not listen at %s: %s", program, address, tail(output))
}

// tail returns the end of what a server printed.
func tail(output *os.File) string {
	const most = 4 << 10
	size, err := output.Seek(0, io.SeekEnd)
	if err != nil {
		return err.Error()
	}
	data := make([]byte, min(size, most))
	if _, err := output.ReadAt(data, size-int64(len(data))); err != nil && !errors.Is(err, io.EOF) {
		return err.Error()
	}
	return string(data)
}

// freeAddress returns a loopback address where nothing listens.
func freeAddress(t testing.TB) (host, port string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	host, port, err = net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return host, port
}
