package crash_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/crash"
)

// binaryDir is where the binary is built; it is removed at the end.
var binaryDir = filepath.Join(os.TempDir(), fmt.Sprintf("lakestream-crash-%d", os.Getpid()))

// binary builds the lakestream binary, once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	if err := os.MkdirAll(binaryDir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(binaryDir, "lakestream")
	build := exec.Command("go", "build", "-o", path, ".") //nolint:gosec // to a path of our own
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// pipeline writes a configuration that generates messages into a stream.
func (w *world) pipeline(generate, engine string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "pipeline.yaml")
	text := fmt.Sprintf(`
http: { enabled: false }
input:
  generate: { %s, mapping: 'root = {"n": counter(), "text": "%s", "id": uuid_v4()}' }
output:
  lakestream:
    stream: %s
    partitions: 3
    key: ${! this.id }
lakestream: { data_dir: %q, %s }
`, generate, "some text that makes the message about as long as others are", stream, w.dir, engine)
	require.NoError(w.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (w *world) run(pipeline string) *crash.Process {
	w.t.Helper()
	path, err := binary()
	require.NoError(w.t, err)
	p, err := crash.Run(w.t.Context(), []string{path, "run", pipeline})
	require.NoError(w.t, err)
	return p
}

// Given a pipeline that never ends by itself, when it is terminated, then it ends
// with 0, and the table is complete.
func TestATerminatedPipelineDrains(t *testing.T) {
	w := newWorld(t)
	p := w.run(w.pipeline(`interval: ""`, "drain_timeout: 15s"))
	w.awaitObjects()
	require.NoError(t, p.Terminate())
	w.requireClean(p.Wait())
	rows := requireComplete(t, w.dir, stream)
	require.Positive(t, rows)
}

// awaitObjects waits until something was written.
func (w *world) awaitObjects() {
	w.t.Helper()
	pattern := filepath.Join(w.dir, "objects", "wal", "*", "*", "*.wal")
	require.Eventually(w.t, func() bool {
		found, err := filepath.Glob(pattern)
		return err == nil && len(found) > 10
	}, patience, 10*time.Millisecond)
}

// Given a pipeline whose input ends, then it ends with 0 by itself, and the table
// holds all that there was.
func TestAPipelineWhoseInputEndsDrains(t *testing.T) {
	w := newWorld(t)
	const count = 5000
	w.requireClean(w.run(w.pipeline(fmt.Sprintf(`interval: "", count: %d`, count), "drain_timeout: 15s")).Wait())
	require.Equal(t, int64(count), requireComplete(t, w.dir, stream))
}

// Given a pipeline that is killed, when it is run again and ends, then the table is
// complete.
func TestAKilledPipelineGoesOn(t *testing.T) {
	w := newWorld(t)
	p := w.run(w.pipeline(`interval: ""`, "drain_timeout: 15s"))
	w.awaitObjects()
	require.NoError(t, p.Kill())
	require.True(t, p.Wait().Killed)
	w.requireClean(w.run(w.pipeline(`interval: "", count: 100`, "drain_timeout: 60s")).Wait())
	require.Greater(t, requireComplete(t, w.dir, stream), int64(100))
}
