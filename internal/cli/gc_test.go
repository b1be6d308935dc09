package cli_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// Given a stream that keeps less than it holds, when old data is collected, then a
// dry run says what would go and changes nothing, and a run gives it up.
func TestOldDataIsCollectedByACommand(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filled(t)))) // other tests count what is there
	s := session{t: t, dir: dir, run: inProcess}
	require.Contains(t, s.does("gc"), "deleted 0 uploads that no record names")
	s.does("stream", "set", "shop/orders", "retention.bytes=0")
	planned := s.does("gc", "--dry-run")
	require.Contains(t, planned, "would trim partition 0 of shop/orders")
	require.Equal(t, planned, s.does("gc", "--dry-run"))
	require.Contains(t, s.does("gc"), "trimmed partition 0 of shop/orders")
	var done engine.Collected
	s.json(&done, "gc", "--dry-run")
	require.Empty(t, done.Trimmed)
	require.Positive(t, done.Dead)
	s.fails(2, "want none", "gc", "everything")
}
