package cli_test

import (
	"bufio"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// Given an engine that writes, when commands run in other processes, then they see
// what it has written so far, and it goes on.
func TestCommandsRunBesideARunningEngine(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, nil)
	appendOrders(t, e, 5)

	got := lakestream(t, "status", "--data-dir", dir, "--json")
	require.Zero(t, got.code, got.stderr)
	require.Empty(t, got.stderr)
	var status engine.Status
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &status))
	require.Equal(t, e.Cluster(), status.Cluster)
	require.Len(t, status.Instances, 1)
	require.Equal(t, int64(5), status.Streams[0].Records)

	got = lakestream(t, "table", "verify", "shop.orders", "--wait", "60s", "--complete", "--data-dir", dir)
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "each record of the log is there exactly once")
	require.Equal(t, 5, countLines(lakestream(t, "table", "head", "shop.orders", "--data-dir", dir).stdout)-1)
	key, _ := findObject(t, dir, "wal")
	require.Zero(t, lakestream(t, "inspect", key, "--data-dir", dir).code)
	require.Zero(t, lakestream(t, "compact", "--once", "--data-dir", dir).code)

	appendOrders(t, e, 5)
	closeEngine(t, e)
	require.Zero(t, lakestream(t, "table", "verify", "shop.orders", "--complete", "--data-dir", dir).code)
}

func countLines(text string) (n int) {
	for _, c := range text {
		if c == '\n' {
			n++
		}
	}
	return n
}

// Given a directory that nobody uses, when commands look at it, then they leave
// every object, every file of the tables and no trace of their server.
func TestLookingLeavesEverythingAsItWas(t *testing.T) {
	dir := filled(t)
	before := files(t, dir)
	key, _ := findObject(t, dir, "wal")
	for _, args := range [][]string{
		{"status"},
		{"stream", "ls"},
		{"table", "describe", "shop.orders"},
		{"table", "head", "shop.orders"},
		{"table", "verify", "shop.orders", "--complete"},
		{"inspect", key},
		{"inspect", "s00@1"},
	} {
		require.Zero(t, lakestream(t, append(args, "--data-dir", dir)...).code, "%v", args)
	}
	require.Equal(t, before, files(t, dir))
}

// files returns what a directory holds but for the inside of the two databases:
// the content of each file by its path.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "nats":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		case d.Name() == "catalog.db":
			found[path] = ""
			return nil
		}
		data, err := os.ReadFile(path) //nolint:gosec // in the test's own directory
		found[path] = string(data)
		return err
	})
	require.NoError(t, err)
	return found
}

// Given directories that hold no engine's data, when commands look at them, then
// they say so and create nothing.
func TestLookingAtNothingCreatesNothing(t *testing.T) {
	for _, command := range [][]string{{"status"}, {"table", "verify", "a.b"}, {"compact", "--once"}, {"inspect", "s00@1"}} {
		parent := t.TempDir()
		absent := filepath.Join(parent, "absent")
		require.Equal(t, 1, lakestream(t, append(command, "--data-dir", absent)...).code)
		require.Equal(t, 1, lakestream(t, append(command, "--data-dir", parent)...).code, "a directory of something else")
		left, err := os.ReadDir(parent)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// Given a status that is watched, when the process is interrupted, then that is its
// ordinary end.
func TestWatchingEndsWhenInterrupted(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), binaryPath, "status", "--watch", "--data-dir", filled(t)) //nolint:gosec // our own
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	for looks := 0; looks < 2 && lines.Scan(); {
		if lines.Text() == "healthy" {
			looks++
		}
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	for lines.Scan() { // until it has closed its output
	}
	require.NoError(t, cmd.Wait())
}

// Given a table that another tool dropped, when more is written, then a second
// process shows that the table is suspended, why, and what to do. Once that is done
// a new table is filled from the log.
func TestASuspendedTableFailsTheCheckElsewhere(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, nil)
	appendOrders(t, e, 5)
	table, err := e.Table("shop.orders")
	require.NoError(t, err)
	require.NoError(t, table.WaitCaughtUp(t.Context()))
	require.Zero(t, lakestream(t, "status", "--check", "--data-dir", dir).code)

	dropTable(t, dir)
	appendOrders(t, e, 5)
	var got result
	require.Eventually(t, func() bool {
		got = lakestream(t, "status", "--check", "--data-dir", dir)
		return got.code != 0
	}, 2*time.Minute, 500*time.Millisecond)
	require.Equal(t, 3, got.code, got.stderr)
	require.Contains(t, got.stdout, "! table shop.orders is SUSPENDED: ")
	require.Contains(t, got.stdout, "it was dropped")
	require.Contains(t, got.stdout, "  next: restore table shop.orders")
	require.Contains(t, got.stderr, "error: check failed: 1 problem\n")
	require.ErrorIs(t, e.Close(t.Context()), engine.ErrTablesBehind)

	got = lakestream(t, "compact", "--once", "--data-dir", dir)
	require.Equal(t, 4, got.code, got.stderr)
	require.Contains(t, got.stderr, "it was dropped")
	got = lakestream(t, "table", "reset", "shop.orders", "--yes", "--data-dir", dir)
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "next: ")
	got = lakestream(t, "compact", "--once", "--data-dir", dir)
	require.Zero(t, got.code, got.stderr)
	got = lakestream(t, "table", "verify", "shop.orders", "--complete", "--data-dir", dir)
	require.Zero(t, got.code, got.stdout+got.stderr)
	require.Contains(t, got.stdout, "        0  0-10       10 ")
}
