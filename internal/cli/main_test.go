package cli_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
	"github.com/lakestream-go/lakestream/internal/cli"
)

// binaryPath is the lakestream binary, built from this checkout.
var binaryPath string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lakestream-cli")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binaryPath = filepath.Join(dir, "lakestream")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", binaryPath, "../..") //nolint:gosec // our own
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the binary: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// result is how a command ended.
type result struct {
	stdout, stderr string
	code           int
}

// inProcess runs a command in the test's process.
func inProcess(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := 0
	app := &ucli.App{
		Name: "lakestream", Commands: cli.Commands(readDataDir), HideVersion: true,
		Reader: bytes.NewReader(nil), Writer: &stdout, ErrWriter: &stderr,
		ExitErrHandler: func(_ *ucli.Context, err error) {
			if err != nil {
				code = cli.ExitCode(err)
				fmt.Fprintln(&stderr, err)
			}
		},
	}
	err := app.RunContext(t.Context(), append([]string{"lakestream"}, args...))
	require.Equal(t, err == nil, code == 0)
	return result{stdout: stdout.String(), stderr: stderr.String(), code: code}
}

// readDataDir stands for the parser of configurations: its files hold a directory.
func readDataDir(path string) (engine.Options, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return engine.Options{}, fmt.Errorf("%w: %w", engine.ErrInvalid, err)
	}
	return engine.Options{DataDir: string(data)}, nil
}

// lakestream runs a command as a process of its own.
func lakestream(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binaryPath, args...) //nolint:gosec // our own
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
	}
	return result{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
}

func open(t *testing.T, dir string, change func(*engine.Options)) *engine.Engine {
	t.Helper()
	opts := engine.Options{DataDir: dir, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&opts)
	}
	e, err := engine.Open(t.Context(), opts)
	require.NoError(t, err)
	return e
}

func closeEngine(t *testing.T, e *engine.Engine) {
	t.Helper()
	require.NoError(t, e.Close(context.WithoutCancel(t.Context())))
}

func withoutCompaction(o *engine.Options) { o.Compaction.Disabled = true }

// appendOrders appends n records to partition 0 of shop/orders.
func appendOrders(t *testing.T, e *engine.Engine, n int) {
	t.Helper()
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{
		Partitions: 2, Table: engine.TablePolicy{CommitInterval: time.Second},
	})
	require.NoError(t, err)
	batch := engine.Batch{Logs: []engine.LogRecords{{}}}
	for i := range n {
		batch.Logs[0].Records = append(batch.Logs[0].Records, engine.Record{
			Timestamp: 1_790_000_000_000, Key: []byte("k"),
			Value: fmt.Appendf(nil, `{"id":%d,"name":"order %d","address":{"city":"Zürich"}}`, i, i),
		})
	}
	require.NoError(t, s.Append(t.Context(), &batch))
	require.NoError(t, batch.Results[0].Err)
}

// filled is a directory whose stream shop/orders holds 20 records, all of them in
// its table. Tests read it only.
func filled(t *testing.T) string {
	t.Helper()
	fixture.once.Do(func() {
		dir := filepath.Join(filepath.Dir(binaryPath), "filled")
		e := open(t, dir, nil)
		appendOrders(t, e, 20)
		closeEngine(t, e)
		fixture.dir = dir
	})
	require.NotEmpty(t, fixture.dir, "the fixture failed")
	return fixture.dir
}

var fixture struct {
	once sync.Once
	dir  string
}

// findObject returns the key of the first object under a prefix, and its path.
func findObject(t *testing.T, dir, prefix string) (key, path string) {
	t.Helper()
	root := filepath.Join(dir, "objects")
	err := filepath.WalkDir(filepath.Join(root, prefix), func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && path == "" {
			path = p
		}
		return err
	})
	require.NoError(t, err)
	key, err = filepath.Rel(root, path)
	require.NoError(t, err)
	return filepath.ToSlash(key), path
}

// dropTable drops the table of shop/orders from its catalog, as another tool does.
func dropTable(t *testing.T, dir string) {
	t.Helper()
	changeCatalog(t, dir, "DELETE FROM iceberg_tables WHERE table_name = 'orders'")
}

// changeCatalog does to the catalog what the engine never does.
func changeCatalog(t *testing.T, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "catalog.db"))
	require.NoError(t, err)
	done, err := db.ExecContext(t.Context(), statement)
	require.NoError(t, errors.Join(err, db.Close()))
	rows, err := done.RowsAffected()
	require.NoError(t, err)
	require.Positive(t, rows)
}
