package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// binary is built once; its examples run as users run them.
var binary string

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lakestream-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "lakestream")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", binary, ".") //nolint:gosec // the test chose the path
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// ran is what one run of the binary left.
type ran struct {
	code           int
	stdout, stderr string
}

// lakestream runs the binary in a directory.
func lakestream(t *testing.T, dir string, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...) //nolint:gosec // the test built it
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return ran{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// checkout returns a directory with a copy of the examples.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("examples")))
	return dir
}

func lines(text string) []string {
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	slices.Sort(all)
	return all
}

func TestEveryExampleIsCleanToLint(t *testing.T) {
	dir := checkout(t)
	files, err := filepath.Glob(filepath.Join(dir, "examples", "*", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	got := lakestream(t, dir, append([]string{"lint"}, files...)...)
	require.Zero(t, got.code, got.stderr)
	require.Empty(t, got.stderr)
}

// Given a fresh checkout, when a newcomer runs the examples in their order, then
// each does what its README says.
func TestTheExamplesDoWhatTheySay(t *testing.T) {
	dir := checkout(t)
	got := lakestream(t, dir, "run", "examples/quickstart/pipeline.yaml")
	require.Zero(t, got.code, got.stdout+got.stderr)
	require.NotContains(t, got.stdout, "level=warn")
	require.NotContains(t, got.stdout, "level=error")
	require.Contains(t, got.stdout, `msg="memory budget"`)
	for _, want := range []string{
		"wrote 329 records", "github/webhooks, 4 partitions, 329 records", "github.webhooks, 329 rows in snapshot",
		"lakestream-data", "lakestream table head github.webhooks",
	} {
		require.Contains(t, got.stderr, want)
	}

	input, err := os.ReadFile(filepath.Join("examples", "quickstart", "github-webhooks.ndjson"))
	require.NoError(t, err)
	got = lakestream(t, dir, "run", "examples/replay/pipeline.yaml")
	require.Zero(t, got.code, got.stderr)
	require.Equal(t, lines(string(input)), lines(got.stdout), "every payload, byte for byte")
	require.NotContains(t, got.stderr, "wrote", "a reader has nothing to sum up")

	got = lakestream(t, dir, "run", "examples/replay/verify.yaml")
	require.Zero(t, got.code, got.stderr)
	require.Empty(t, got.stdout, "each key is the event's repository")

	got = lakestream(t, dir, "run", "examples/routing/pipeline.yaml")
	require.Zero(t, got.code, got.stdout+got.stderr)
	require.Contains(t, got.stderr, "wrote 329 records")
	require.Contains(t, got.stderr, "and 48 streams more")

	got = lakestream(t, dir, "run", "examples/quickstart/pipeline.yaml")
	require.Zero(t, got.code, got.stdout+got.stderr)
	require.Contains(t, got.stderr, "github.webhooks, 658 rows in snapshot")
}

func TestAWrongConfigurationIsRefusedBeforeAnythingIsCreated(t *testing.T) {
	dir := t.TempDir()
	for name, yaml := range map[string]string{
		"lint": "output: { lakestream: { stream: a/b/c } }",
		"top":  "lakestream: { shards: 99 }\noutput: { drop: {} }",
	} {
		path := filepath.Join(dir, name+".yaml")
		require.NoError(t, os.WriteFile(path, []byte("http: { enabled: false }\n"+yaml), 0o600))
		got := lakestream(t, dir, "run", path)
		require.NotZero(t, got.code, name)
		require.Contains(t, got.stdout+got.stderr, "want ", name)
	}
	require.NoDirExists(t, filepath.Join(dir, "lakestream-data"))
}

// A pipeline whose data directory can never serve ends at once, whichever of its
// components names it: Benthos would try to connect for ever.
func TestADirectoryThatCannotServeEndsThePipeline(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "taken"), nil, 0o600))
	for name, yaml := range map[string]string{
		"top":    "lakestream: { data_dir: taken }\noutput: { lakestream: { stream: a/b } }",
		"output": "output: { lakestream: { stream: a/b, engine: { data_dir: taken } } }",
		"input":  "input: { lakestream: { streams: [ a/b ], engine: { data_dir: taken/below } } }\noutput: { drop: {} }",
	} {
		path := filepath.Join(dir, name+".yaml")
		require.NoError(t, os.WriteFile(path, []byte("http: { enabled: false }\n"+yaml), 0o600))
		got := lakestream(t, dir, "run", path)
		require.NotZero(t, got.code, name)
		require.Contains(t, got.stdout+got.stderr, "a file, not a directory", name)
	}
}

// The API of a pipeline is for this machine unless someone asks for more.
func TestTheHelpSaysWhatTheBinaryIs(t *testing.T) {
	got := lakestream(t, t.TempDir(), "--help")
	require.Zero(t, got.code)
	require.Contains(t, got.stdout, "lakestream - Benthos pipelines whose streams are Iceberg tables")
	require.NotContains(t, got.stdout, "mundane")
}

func TestTheAPIListensOnLoopback(t *testing.T) {
	got := lakestream(t, t.TempDir(), "create", "stdin//drop")
	require.Zero(t, got.code)
	require.Contains(t, got.stdout, "address: 127.0.0.1:4195")
}

func TestAPipelineThatLeftItsTableBehindSaysSoByItsExitCode(t *testing.T) {
	for name, c := range map[string]struct {
		code    int
		drained error
		want    int
	}{
		"drained":        {0, nil, 0},
		"behind":         {0, fmt.Errorf("closing: %w: t lacks 3", engine.ErrTablesBehind), exitUnavailable},
		"not durable":    {0, errors.New("store"), exitFailed},
		"benthos failed": {1, nil, 1},
		"both failed":    {1, engine.ErrTablesBehind, 1},
	} {
		var closed closings
		closed.add(engine.Status{}, c.drained)
		require.Equal(t, c.want, closed.exitCode(c.code), name)
	}
	var several closings
	several.add(engine.Status{}, engine.ErrTablesBehind)
	several.add(engine.Status{}, errors.New("store"))
	require.Equal(t, exitUnavailable, several.exitCode(0))
}

func TestTheSummaryTellsOnlyWhatThisProcessWrote(t *testing.T) {
	closed := closings{args: []string{"lakestream", "run", "my.yaml"}}
	closed.add(engine.Status{Storage: "unused"}, nil)
	closed.add(engine.Status{
		Storage: "file:///lake/objects", Warehouse: "file:///lake/warehouse", Catalog: "/lake/catalog.db",
		Written: engine.Written{Records: 10, Objects: 2, Bytes: 4096},
		Streams: []engine.StreamStatus{
			{Name: "a/others", Partitions: 1, Records: 99},
			{Name: "a/logs", Partitions: 2, Records: 7, Written: true},
			{Name: "a/new", Partitions: 1, Records: 1, Written: true, Table: &engine.TableStatus{Name: "a.new"}},
			{Name: "a/orders", Partitions: 3, Records: 12, Written: true, Table: &engine.TableStatus{
				Name: "a.orders", Rows: 8, DeadLetters: 1, Behind: 3, Snapshot: 77,
			}},
		},
	}, engine.ErrTablesBehind)
	var text strings.Builder
	closed.writeSummary(&text)
	golden := filepath.Join("testdata", "summary.txt")
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), text.String())
}

// Given a pipeline without an end, when it gets SIGTERM, then it writes what it
// has, waits for its table, and ends well.
func TestSIGTERMDrainsThePipeline(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "endless.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
http: { enabled: false }
input:
  generate: { interval: 1ms, mapping: 'root = { "id": counter() }' }
output:
  lakestream: { stream: a/endless, partitions: 2, key: "${! this.id }" }
`), 0o600))
	cmd := exec.CommandContext(t.Context(), binary, "run", path) //nolint:gosec // the test built it
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	objects := filepath.Join(dir, "lakestream-data", "objects", "wal", "*", "*", "*.wal")
	require.Eventually(t, func() bool {
		written, err := filepath.Glob(objects)
		return err == nil && len(written) > 5
	}, time.Minute, 20*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), stderr.String())
	require.Contains(t, stderr.String(), "rows in snapshot")
	got := lakestream(t, dir, "table", "verify", "a.endless", "--complete")
	require.Zero(t, got.code, got.stdout+got.stderr)
}

// What `create` prints is a configuration that lints.
func TestACreatedConfigurationLints(t *testing.T) {
	dir := t.TempDir()
	created := lakestream(t, dir, "create", "lakestream//lakestream")
	require.Zero(t, created.code, created.stderr)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "created.yaml"), []byte(created.stdout), 0o600))
	// The fields that nobody can choose for the user are left to be filled in.
	linted := lakestream(t, dir, "lint", "created.yaml")
	require.Zero(t, linted.code, linted.stderr)
}

// The line to query finds the engine that was written to, called as this program was.
func TestTheQueryLineFindsTheEngine(t *testing.T) {
	inDefault := engine.Status{
		Catalog: "lakestream-data/catalog.db", Coordination: "embedded NATS in ./lakestream-data", Storage: "file:///work/lakestream-data/objects",
	}
	elsewhere, inBucket, onServers := inDefault, inDefault, inDefault
	elsewhere.Catalog, inBucket.Storage, onServers.Coordination = "/lake/catalog.db", "s3://lake/prod", "nats://n1:4222"
	for _, c := range []struct {
		args            []string
		status          engine.Status
		program, engine string
	}{
		{[]string{"/usr/bin/lakestream", "run", "p.yaml"}, inDefault, "lakestream", ""},
		{[]string{"/usr/bin/lakestream", "run", "p.yaml"}, elsewhere, "lakestream", " -c p.yaml"},
		{[]string{"/usr/bin/lakestream", "run", "p.yaml"}, inBucket, "lakestream", " -c p.yaml"},
		{[]string{"/usr/bin/lakestream", "run", "p.yaml"}, onServers, "lakestream", " -c p.yaml"},
		{[]string{"/tmp/go-build12/b001/exe/lakestream", "run", "x/p.yml"}, inDefault, "go run .", ""},
		{[]string{"lakestream", "streams", "dir"}, elsewhere, "lakestream", ""},
	} {
		one := closing{args: c.args, status: c.status}
		require.Equal(t, c.program, one.program())
		require.Equal(t, c.engine, one.whichEngine())
	}
}

// A mistake that only the cluster can show ends the pipeline, with the field and what
// to do, instead of being tried for ever.
func TestAPipelineThatCanNeverConnectEnds(t *testing.T) {
	dir := t.TempDir()
	write := func(name, output string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte("http: { enabled: false }\n"+
			"input: { generate: { count: 3, interval: 1ms, mapping: 'root.id = 1' } }\noutput: { lakestream: "+output+" }\n"), 0o600))
		return path
	}
	got := lakestream(t, dir, "run", write("four.yaml", "{ stream: a/b, partitions: 4 }"))
	require.Zero(t, got.code, got.stderr)
	got = lakestream(t, dir, "run", write("two.yaml", "{ stream: a/b, partitions: 2 }"))
	require.Equal(t, 2, got.code, got.stderr)
	require.Contains(t, got.stderr, "set partitions to 4 or leave it out")
	got = lakestream(t, dir, "run", write("twin.yaml", "{ stream: a/c, table: { name: b } }"))
	require.Equal(t, 2, got.code, got.stderr)
	require.Contains(t, got.stderr, "that of stream a/b already; set table.name")
}
