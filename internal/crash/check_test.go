package crash_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/crash"
)

// Given a directory in which all is well, when it is made wrong in each way that a
// check promises to notice, then the check notices.
func TestACheckNoticesWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	spec := w.spec()
	end, err := crash.Live(t.Context(), spec)
	require.NoError(t, err)
	w.requireClean(end)
	w.check()

	ledger, err := os.ReadFile(spec.LedgerPath())
	require.NoError(t, err)
	restore := func() { require.NoError(t, os.WriteFile(spec.LedgerPath(), ledger, 0o600)) }
	for name, line := range map[string]string{
		"is lost": "nobody-0-1 shop/orders 0 0\n",
		"is at":   "life01-0-1 shop/orders 0 999999\n",
	} {
		require.NoError(t, os.WriteFile(spec.LedgerPath(), append(slices.Clip(ledger), line...), 0o600))
		_, err := crash.Check(t.Context(), w.dir)
		require.ErrorContains(t, err, name)
	}
	restore()

	objects, err := filepath.Glob(filepath.Join(w.dir, "objects", "compacted", "*", "*", "*.parquet"))
	require.NoError(t, err)
	require.NotEmpty(t, objects)
	hidden := filepath.Join(t.TempDir(), "hidden")
	require.NoError(t, os.Rename(objects[0], hidden))
	_, err = crash.Check(t.Context(), w.dir)
	require.ErrorContains(t, err, filepath.Base(objects[0]), "an object that the index names is gone")
	require.NoError(t, os.Rename(hidden, objects[0]))
	w.check()
}
