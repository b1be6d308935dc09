package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// fresh is a directory with an empty cluster.
func fresh(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	closeEngine(t, open(t, dir, nil))
	return dir
}

// A directory whose pipeline keeps its objects in a bucket has none of its own: who
// forgets to name the pipeline's file is told so.
func TestObjectsThatAreElsewhereAreFoundByThePipelinesFile(t *testing.T) {
	s := session{t: t, dir: fresh(t), run: inProcess}
	require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "objects")))
	s.fails(1, "name the pipeline's file with -c", "status")
	require.NoDirExists(t, filepath.Join(s.dir, "objects"))
}

// session runs commands on one directory.
type session struct {
	t   *testing.T
	dir string
	run func(t *testing.T, args ...string) result
}

// does runs a command that succeeds and returns what it printed.
func (s session) does(args ...string) string {
	s.t.Helper()
	got := s.run(s.t, append(args, "--data-dir", s.dir)...)
	require.Zero(s.t, got.code, "%v: %s", args, got.stderr)
	require.Empty(s.t, got.stderr)
	return got.stdout
}

// fails runs a command that ends with a code and says why.
func (s session) fails(code int, says string, args ...string) {
	s.t.Helper()
	got := s.run(s.t, append(args, "--data-dir", s.dir)...)
	require.Equal(s.t, code, got.code, "%v: %s%s", args, got.stdout, got.stderr)
	require.Contains(s.t, got.stderr, says)
	require.Empty(s.t, got.stdout)
}

func (s session) json(into any, args ...string) {
	s.t.Helper()
	require.NoError(s.t, json.Unmarshal([]byte(s.does(append(args, "--json")...)), into))
}

// The life of a stream, by commands as a person gives them, each a process of its own.
func TestAStreamLivesByCommands(t *testing.T) {
	s := session{t: t, dir: fresh(t), run: lakestream}
	require.Contains(t, s.does("stream", "create", "shop/orders", "--partitions", "2", "--retention", "168h"), "stream shop/orders is there")
	require.Contains(t, s.does("stream", "ls", "shop"), "shop/orders")
	require.Contains(t, s.does("stream", "set", "shop/orders", "retention.bytes=10GiB", "property.owner=me"), "10.0 GiB")
	require.Contains(t, s.does("stream", "grow", "shop/orders", "3"), "partitions")
	described := s.does("stream", "describe", "shop/orders")
	for _, says := range []string{"168h0m0s, or the newest 10 GiB of a partition where that is less", "ACTIVE", "property.owner  me"} {
		require.Contains(t, described, says)
	}
	require.Contains(t, s.does("stream", "trim", "shop/orders:2", "0", "--hard", "--yes"), "begins at offset 0")
	require.Contains(t, s.does("stream", "fence", "shop/orders:1", "--reason", "moving", "--yes"), "moving")
	require.Contains(t, s.does("stream", "describe", "shop/orders"), "partition 1 is fenced: moving")
	require.Contains(t, s.does("stream", "unfence", "shop/orders"), "takes appends")
	s.fails(2, "pass --yes to confirm", "stream", "delete", "shop/orders")
	require.Contains(t, s.does("stream", "delete", "shop/orders", "--yes"), "its data is kept")
	require.Contains(t, s.does("stream", "ls", "--deleted"), "shop/orders")
	require.Contains(t, s.does("stream", "delete", "--purge", "--yes", "shop/orders"), "and its data were deleted")
	require.Contains(t, s.does("stream", "ls", "--deleted"), "nothing is kept")
	require.Contains(t, s.does("stream", "delete", "shop/orders", "--yes", "--purge"), "nothing to delete")
	s.fails(1, "its name is never used again", "stream", "create", "shop/orders")
}

func TestANamespaceLivesByCommands(t *testing.T) {
	s := session{t: t, dir: fresh(t), run: inProcess}
	require.Contains(t, s.does("namespace", "ls"), "no namespaces yet")
	s.does("namespace", "create", "shop", "retention.time=24h", "table.namespace=lake", "property.team=a")
	s.fails(1, "already exists; namespace set changes it", "namespace", "create", "shop")
	s.does("stream", "create", "shop/orders")
	var stream engine.StreamStatus
	s.json(&stream, "stream", "describe", "shop/orders")
	require.Equal(t, "lake.orders", stream.Table.Name)
	require.EqualValues(t, 24*3600*1000, stream.Retention.TimeMS)
	require.Contains(t, s.does("namespace", "set", "shop", "table.namespace=", "retention.time=unlimited", "property.team="), "unlimited")
	s.json(&stream, "stream", "describe", "shop/orders")
	require.Equal(t, "shop.orders", stream.Table.Name, "a key without a value is inherited again")
	require.EqualValues(t, -1, stream.Retention.TimeMS)
	var namespace struct {
		Streams  int
		Settings map[string]string
	}
	s.json(&namespace, "namespace", "describe", "shop")
	require.Equal(t, 1, namespace.Streams)
	require.Equal(t, map[string]string{"retention.time": "unlimited"}, namespace.Settings)
	require.Contains(t, s.does("namespace", "ls"), "shop")
	s.fails(2, "pass --yes to confirm", "namespace", "delete", "shop")
	s.fails(1, "the namespace is not empty", "namespace", "delete", "shop", "--yes")
	s.does("stream", "delete", "shop/orders", "--yes")
	require.Contains(t, s.does("namespace", "delete", "--yes", "shop"), "was deleted")
	s.fails(1, "no such namespace", "namespace", "delete", "shop", "--yes")
	s.fails(1, "no such namespace", "namespace", "describe", "shop")
}

func TestSettingsAreReadAsTheyAreShown(t *testing.T) {
	s := session{t: t, dir: fresh(t), run: inProcess}
	keys := []string{
		"retention.time=1h0m0s", "retention.bytes=unlimited", "retention.wait_for_tables=2h0m0s", "retention.wait_for_groups=true",
		"table.enabled=false", "table.namespace=n", "table.name=t", "table.commit.interval=20s", "table.system_columns=partition,offset",
		"property.a=b",
	}
	var made struct{ Settings map[string]string }
	s.json(&made, append([]string{"stream", "create", "orders"}, keys...)...)
	shown := made.Settings
	require.Len(t, shown, len(keys))
	for _, key := range keys {
		name, value, _ := strings.Cut(key, "=")
		require.Equal(t, value, shown[name])
	}
	var unset []string
	for name := range shown {
		unset = append(unset, name+"=")
	}
	made.Settings = nil
	s.json(&made, append([]string{"stream", "set", "default/orders"}, unset...)...)
	require.Empty(t, made.Settings)
}

func TestAWrongChangeIsRefusedBeforeAnythingHappens(t *testing.T) {
	s := session{t: t, dir: fresh(t), run: inProcess}
	s.does("stream", "create", "a/b", "--partitions", "2")
	for says, args := range map[string][]string{
		"want KEY=VALUE":                 {"stream", "set", "a/b", "retention.time"},
		`"colour" is no key`:             {"stream", "set", "a/b", "colour=red"},
		"retention.bytes is given twice": {"namespace", "set", "a", "retention.bytes=1", "retention.bytes=2"},
		"want a duration like 168h":      {"stream", "set", "a/b", "retention.time=-1h"},
		"want a size like 10GiB":         {"namespace", "create", "c", "retention.bytes=many"},
		"retention.wait_for_groups":      {"stream", "create", "c/d", "retention.wait_for_groups=perhaps"},
		"table.commit.interval":          {"stream", "set", "a/b", "table.commit.interval=x"},
		"table commit interval 1ms":      {"stream", "set", "a/b", "table.commit.interval=1ms"},
		"--partitions 0":                 {"stream", "create", "c/d", "--partitions", "0"},
		`"many": want a number`:          {"stream", "grow", "a/b", "many"},
		"it has 2 and never shrinks":     {"stream", "grow", "a/b", "1"},
		`"a/b": want STREAM:PARTITION`:   {"stream", "trim", "a/b", "0", "--yes"},
		`"a/b:x": want STREAM:PARTITION`: {"stream", "unfence", "a/b:x"},
		`"@noon": want an offset`:        {"stream", "trim", "a/b:0", "@noon", "--yes"},
		"it ends at 0":                   {"stream", "trim", "a/b:0", "1", "--yes"},
		"stream trim takes the records":  {"stream", "trim", "a/b:0", "0"},
		"stream fence makes every":       {"stream", "fence", "a/b"},
		"want a reason":                  {"stream", "fence", "a/b", "--yes", "--reason", ""},
		"would fill one table":           {"namespace", "set", "a", "table.name=t"},
	} {
		s.fails(2, says, args...)
	}
	s.fails(1, "already exists; stream set and stream grow change it", "stream", "create", "a/b", "--partitions", "3")
	s.fails(1, "no such stream", "stream", "grow", "a/c", "3")
	s.fails(1, "partition 7: it has 2", "stream", "fence", "a/b:7", "--yes")
}

// Given an engine that appends, when others change its stream, then it notices.
func TestCommandsChangeAStreamThatIsBeingWritten(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, nil)
	t.Cleanup(func() { closeEngine(t, e) })
	appendOrders(t, e, 20)
	stream, err := e.Stream("shop/orders")
	require.NoError(t, err)
	appendOne := func() error {
		batch := engine.Batch{Logs: []engine.LogRecords{{Records: []engine.Record{{Value: []byte("{}")}}}}}
		require.NoError(t, stream.Append(t.Context(), &batch))
		return batch.Results[0].Err
	}
	s := session{t: t, dir: dir, run: inProcess}
	s.does("stream", "trim", "shop/orders:0", "7", "--yes")
	s.does("stream", "trim", "shop/orders:0", "@-1h", "--yes", "--hard")
	s.does("stream", "fence", "shop/orders", "--yes", "--reason", "moving house")
	require.Eventually(t, func() bool { return appendOne() != nil }, 30*time.Second, 20*time.Millisecond)
	err = appendOne()
	require.ErrorIs(t, err, engine.ErrFenced)
	require.ErrorContains(t, err, "moving house")
	require.ErrorContains(t, err, "shop/orders")
	s.does("stream", "unfence", "shop/orders")
	s.does("stream", "grow", "shop/orders", "4")
	require.Eventually(t, func() bool { return stream.Partitions() == 4 }, 30*time.Second, 20*time.Millisecond)
	require.NoError(t, appendOne())
	s.does("stream", "delete", "shop/orders", "--yes")
	require.Eventually(t, func() bool { return appendOne() != nil }, 30*time.Second, 20*time.Millisecond)
	err = appendOne()
	require.ErrorIs(t, err, engine.ErrStreamPermanentlyDeleted)
	require.ErrorIs(t, err, engine.ErrNotFound)
}
