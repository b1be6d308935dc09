package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// runbook returns the commands of the runbook, which this test runs.
func runbook(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "runbooks", "recover.md"))
	require.NoError(t, err)
	return string(text)
}

// The story of the runbook: the coordination of a directory is deleted, and comes
// back from the object store.
func TestTheRunbookOfALostCoordination(t *testing.T) {
	for _, command := range []string{
		"lakestream recover --dry-run", "lakestream recover --yes", "lakestream status --check", "lakestream table verify TABLE --complete",
	} {
		require.Contains(t, runbook(t), command)
	}
	dir := t.TempDir()
	e := open(t, dir, nil)
	appendOrders(t, e, 20)
	closeEngine(t, e)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "nats")))

	_, err := engine.Open(t.Context(), engine.Options{DataDir: dir})
	require.ErrorIs(t, err, engine.ErrForeign)
	require.ErrorContains(t, err, "lakestream recover")

	dry := lakestream(t, "recover", "--dry-run", "--data-dir", dir, "--json")
	require.Equal(t, 0, dry.code, dry.stderr)
	var report engine.RecoverReport
	require.NoError(t, json.Unmarshal([]byte(dry.stdout), &report))
	require.True(t, report.Whole)
	require.True(t, report.DryRun)
	require.Empty(t, report.Ahead, "an instance that ended in order had archived everything")
	_, err = engine.Open(t.Context(), engine.Options{DataDir: dir})
	require.ErrorIs(t, err, engine.ErrForeign, "a dry run changes nothing")

	refused := lakestream(t, "recover", "--data-dir", dir)
	require.Equal(t, 2, refused.code, "nobody confirmed")
	require.Contains(t, refused.stderr, "--yes")

	done := lakestream(t, "recover", "--yes", "--data-dir", dir)
	require.Equal(t, 0, done.code, done.stderr)
	require.Contains(t, done.stdout, "recovered cluster "+report.Cluster)
	require.Contains(t, done.stderr, "restoring the log of s00", "progress is told")

	e = open(t, dir, nil)
	appendOrders(t, e, 10)
	closeEngine(t, e)
	checked := lakestream(t, "status", "--check", "--data-dir", dir)
	require.Equal(t, 0, checked.code, checked.stdout+checked.stderr)
	verified := lakestream(t, "table", "verify", "shop.orders", "--complete", "--data-dir", dir)
	require.Equal(t, 0, verified.code, verified.stdout+verified.stderr)
	require.Contains(t, verified.stdout, "30")

	again := lakestream(t, "recover", "--yes", "--data-dir", dir)
	require.Equal(t, 1, again.code)
	require.Contains(t, again.stderr, "nothing to recover")
	require.Contains(t, again.stderr, "move it away and recover again", "what to do if it is there and damaged")
}

// Given a table that was committed after the newest archived record, when the log is
// recovered, then its offsets are not given again before the table is out of the way,
// and status says so. Otherwise the table would pass over the new records unnoticed.
func TestALogIsNotOpenedUnderATableThatIsAhead(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, nil)
	appendOrders(t, e, 20)
	closeEngine(t, e)
	archived := segments(t, dir)
	e = open(t, dir, nil)
	appendOrders(t, e, 10)
	closeEngine(t, e)
	for path := range segments(t, dir) {
		if !archived[path] {
			require.NoError(t, os.Remove(path))
		}
	}
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "nats")))
	done := lakestream(t, "recover", "--yes", "--data-dir", dir)
	require.Equal(t, 3, done.code, done.stderr)
	require.Contains(t, done.stdout, "is fenced: its table ends at offset")

	checked := lakestream(t, "status", "--check", "--data-dir", dir)
	require.Equal(t, 3, checked.code, checked.stdout)
	require.Contains(t, checked.stdout, "table shop.orders is ahead of its log")
	require.Contains(t, checked.stdout, "lakestream table reset")
	refused := lakestream(t, "stream", "unfence", "shop/orders", "--data-dir", dir)
	require.Equal(t, 1, refused.code, refused.stdout)
	require.Contains(t, refused.stderr, "the table is ahead of the log")
	require.Contains(t, refused.stderr, "drop or rename it, run lakestream table reset")

	dropTable(t, dir)
	require.Equal(t, 0, lakestream(t, "table", "reset", "shop.orders", "--yes", "--data-dir", dir).code)
	require.Equal(t, 0, lakestream(t, "stream", "unfence", "shop/orders", "--data-dir", dir).code)
	e = open(t, dir, nil)
	appendOrders(t, e, 10)
	closeEngine(t, e)
	verified := lakestream(t, "table", "verify", "shop.orders", "--complete", "--data-dir", dir)
	require.Equal(t, 0, verified.code, verified.stdout+verified.stderr)
	require.Equal(t, 0, lakestream(t, "status", "--check", "--data-dir", dir).code)
}

// segments returns the archived segments of a directory.
func segments(t *testing.T, dir string) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "objects", "commits", "*", "*"))
	require.NoError(t, err)
	found := make(map[string]bool)
	for _, path := range paths {
		found[path] = true
	}
	return found
}

func TestRecoverWithoutADirectoryCreatesNone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	require.Equal(t, 1, lakestream(t, "recover", "--yes", "--data-dir", dir).code)
	require.NoDirExists(t, dir)
}

// What a recovery is made from can be looked at.
func TestInspectingCheckpointsAndSegments(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, nil)
	appendOrders(t, e, 3)
	closeEngine(t, e)
	paths, err := filepath.Glob(filepath.Join(dir, "objects", "commits", "*", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, "closing archived what was not yet")
	shown := inProcess(t, "inspect", paths[0])
	require.Equal(t, 0, shown.code, shown.stderr)
	require.Contains(t, shown.stdout, "commit log segment, verified")

	require.NoError(t, os.RemoveAll(filepath.Join(dir, "nats")))
	require.Equal(t, 0, inProcess(t, "recover", "--yes", "--data-dir", dir).code)
	paths, err = filepath.Glob(filepath.Join(dir, "objects", "checkpoint", "*", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	shown = inProcess(t, "inspect", paths[0])
	require.Equal(t, 0, shown.code, shown.stderr)
	require.Contains(t, shown.stdout, "checkpoint, verified")
}
