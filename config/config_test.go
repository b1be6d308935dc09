package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

func parseOutput(t *testing.T, yaml string) (config.Output, error) {
	t.Helper()
	conf, err := config.OutputSpec().ParseYAML(yaml, nil)
	if err != nil {
		return config.Output{}, err
	}
	return config.ParseOutput(conf)
}

func parseInput(t *testing.T, yaml string) (config.Input, error) {
	t.Helper()
	conf, err := config.InputSpec().ParseYAML(yaml, nil)
	if err != nil {
		return config.Input{}, err
	}
	return config.ParseInput(conf)
}

// linter lints components in an environment of the test's own.
func linter(t *testing.T) *service.ComponentConfigLinter {
	t.Helper()
	env := service.NewEnvironment()
	require.NoError(t, env.RegisterBatchOutput(config.ComponentName, config.OutputSpec(),
		func(*service.ParsedConfig, *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
			return nil, service.BatchPolicy{}, 0, nil
		}))
	require.NoError(t, env.RegisterBatchInput(config.ComponentName, config.InputSpec(),
		func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) { return nil, nil }))
	return env.NewComponentConfigLinter()
}

func lintOf(t *testing.T, l *service.ComponentConfigLinter, kind, yaml string) string {
	t.Helper()
	body := "lakestream:\n  " + strings.ReplaceAll(strings.TrimSpace(yaml), "\n", "\n  ") + "\n"
	var lints []service.Lint
	var err error
	if kind == "output" {
		lints, err = l.LintOutputYAML([]byte(body))
	} else {
		lints, err = l.LintInputYAML([]byte(body))
	}
	require.NoError(t, err, body)
	var texts []string
	for _, lint := range lints {
		texts = append(texts, lint.What)
	}
	return strings.Join(texts, "\n")
}

// What a spec documents as a default is what the engine does without it.
func TestAConfigurationWithoutFieldsIsTheEnginesDefault(t *testing.T) {
	out, err := parseOutput(t, "stream: a/b\nengine: { data_dir: "+engine.DefaultDataDir+" }")
	require.NoError(t, err)
	require.NotNil(t, out.Engine)
	require.Equal(t, withoutLogger(engine.Options{}), withoutLogger(*out.Engine))

	for _, none := range []string{"", "engine: {}", "engine: { shards: 4 }"} {
		out, err = parseOutput(t, "stream: a/b\n"+none)
		require.NoError(t, err)
		require.Nil(t, out.Engine, "the top-level block is not replaced by %q", none)
	}
}

func withoutLogger(o engine.Options) engine.Options {
	o = o.WithDefaults()
	o.Logger = nil
	if len(o.NATS.URLs) == 0 {
		o.NATS.URLs = nil
	}
	return o
}

func TestEveryFieldOfAnEngineReachesItsOption(t *testing.T) {
	const all = `
stream: a/b
engine:
  data_dir: /data
  shards: 7
  nats: { urls: [ "nats://a:4222", "nats://b:4222" ] }
  storage: { url: file:///lake }
  catalog: { type: sql, uri: /c.db, warehouse: /w }
  wal:
    linger: 33ms
    max_object_bytes: 1MiB
    max_buffered_bytes: 2MiB
    max_record_bytes: 3KiB
    upload_concurrency: 5
    compression: zstd
  compaction: { enabled: false, interval: 2m, target_bytes: 4MiB, max_memory_bytes: 64MiB }
  cache_bytes: 6MB
  lease_ttl: 7s
  drain_timeout: 10m
`
	out, err := parseOutput(t, all)
	require.NoError(t, err)
	require.Equal(t, engine.Options{
		DataDir: "/data", Shards: 7,
		NATS:    engine.NATSOptions{URLs: []string{"nats://a:4222", "nats://b:4222"}, Bucket: "lakestream"},
		Storage: engine.StorageOptions{URL: "file:///lake"},
		Catalog: engine.CatalogOptions{Type: "sql", URI: "/c.db", Warehouse: "/w"},
		WAL: engine.WALOptions{
			Linger: 33e6, MaxObjectBytes: 1 << 20, MaxBufferedBytes: 2 << 20, MaxRecordBytes: 3 << 10, UploadConcurrency: 5, Compression: "zstd",
		},
		Compaction: engine.CompactionOptions{Disabled: true, Interval: 120e9, TargetBytes: 4 << 20, MaxMemoryBytes: 64 << 20},
		CacheBytes: 6_000_000, LeaseTTL: 7e9, DrainTimeout: 600e9,
	}, *out.Engine)
	require.Empty(t, lintOf(t, linter(t), "output", all))
}

func TestEveryFieldOfTheOutputIsRead(t *testing.T) {
	const all = `
stream: orders
max_streams: 9
partitions: 3
key: ${! this.id.or("") }
partition: "2"
timestamp_ms: ${! this.at }
metadata: { include_prefixes: [ h_ ] }
max_in_flight: 1
batching: { count: 10, period: 1s }
table:
  enabled: false
  namespace: lake
  name: order_rows
  commit: { interval: 3s }
  system_columns: [ partition, offset, key ]
`
	out, err := parseOutput(t, all)
	require.NoError(t, err)
	require.Equal(t, "default/orders", out.StreamName)
	require.Equal(t, 9, out.MaxStreams)
	require.Equal(t, 3, out.StreamConfig.Partitions)
	require.True(t, out.Ordered())
	require.True(t, out.Metadata.Match("h_a"))
	require.False(t, out.Metadata.Match("a"))
	require.Equal(t, 10, out.Batching.Count)
	partition, static := out.Partition.Static()
	require.True(t, static)
	require.Equal(t, "2", partition)
	disabled := false
	require.Equal(t, engine.TablePolicy{
		Enabled: &disabled, Namespace: "lake", Name: "order_rows", CommitInterval: 3e9, SystemColumns: []string{"partition", "offset", "key"},
	}, out.StreamConfig.Table)
	require.Empty(t, lintOf(t, linter(t), "output", all))
}

func TestTheOutputsDefaults(t *testing.T) {
	out, err := parseOutput(t, "stream: a/b")
	require.NoError(t, err)
	require.Equal(t, 512, out.MaxInFlight)
	require.Equal(t, 1000, out.MaxStreams)
	require.Zero(t, out.StreamConfig.Partitions)
	require.Empty(t, out.StreamConfig.Table.SystemColumns)
	out.StreamConfig.Table.SystemColumns = nil
	require.Zero(t, out.StreamConfig.Table, "nothing is changed of a stream that exists")
	require.Zero(t, out.StreamConfig.Retention)
	require.True(t, out.Metadata.IsEmpty())
	require.True(t, out.Batching.IsNoop())
}

func TestTheInputsDefaults(t *testing.T) {
	in, err := parseInput(t, "streams: [ a/b, c ]")
	require.NoError(t, err)
	both := []engine.Selection{{Stream: "a/b", All: true}, {Stream: "default/c", All: true}}
	require.Equal(t, config.Input{
		Streams: []config.Selection{{Selection: both[0]}, {Selection: both[1]}},
		Group: engine.SubscribeOptions{
			Selections: both, SessionTimeout: time.Minute, RebalanceTimeout: 45 * time.Second, Heartbeat: 3 * time.Second,
		},
		CommitPeriod: 5 * time.Second, InFlight: 1, MaxBatchBytes: 1 << 20, MaxBatchMessages: 1000, AutoReplayNacks: true,
	}, in)
}

func TestEveryFieldOfTheInputIsRead(t *testing.T) {
	const all = `
streams: [ "shop/.*", "audit/a|audit/b" ]
regexp_streams: true
consumer_group: audit.v1
start_offset: committed
stop_at_end: true
max_yield_batch_bytes: 2MiB
max_yield_batch_messages: 7
auto_replay_nacks: false
unordered_processing: { enabled: true, checkpoint_limit: 9 }
commit_period: 2s
session_timeout: 10s
rebalance_timeout: 8s
heartbeat_interval: 1s
instance_id: blue-1
`
	in, err := parseInput(t, all)
	require.NoError(t, err)
	require.Equal(t, 9, in.InFlight)
	require.Equal(t, 2*time.Second, in.CommitPeriod)
	require.Equal(t, engine.Position{Kind: engine.Committed}, in.Start)
	require.Equal(t, "audit.v1", in.Group.Group)
	require.Equal(t, "blue-1", in.Group.InstanceID)
	require.Equal(t, []time.Duration{10 * time.Second, 8 * time.Second, time.Second}, []time.Duration{in.Group.SessionTimeout, in.Group.RebalanceTimeout, in.Group.Heartbeat})
	matching := func(name string) (n int) {
		for _, s := range in.Group.Selections {
			if s.Matches(name) {
				n++
			}
		}
		return n
	}
	for name, want := range map[string]int{"shop/orders": 1, "shop/": 1, "myshop/orders": 0, "audit/a": 1, "audit/b": 1, "audit/bc": 0, "audit": 0} {
		require.Equal(t, want, matching(name), "a pattern matches the whole of %s or nothing", name)
	}
	require.Empty(t, lintOf(t, linter(t), "input", all))
}

// Every mistake is found by lint and by a run, and both say what is wanted.
func TestAMistakeIsNamedByLintAndByTheRun(t *testing.T) {
	l := linter(t)
	for name, c := range map[string]struct{ kind, yaml, lint, run string }{
		"no stream":             {"output", "key: a", "field stream is required", "stream"},
		"stream grammar":        {"output", "stream: a/b/c", "want namespace/name", `stream: "a/b/c": want namespace/name`},
		"stream with blanks":    {"output", "stream: my orders", "want namespace/name", "stream: "},
		"negative partitions":   {"output", "stream: a\npartitions: -1", "want 0 to 4096", "partitions: -1: want 0 to 4096"},
		"many partitions":       {"output", "stream: a\npartitions: 5000", "want 0 to 4096", "partitions: 5000: want 0 to 4096"},
		"nothing in flight":     {"output", "stream: a\nmax_in_flight: 0", "want 1 to 65536", "max_in_flight: 0: want at least 1"},
		"no streams allowed":    {"output", "stream: a\nmax_streams: 0", "want 1 to 1000000", "max_streams: 0: want at least 1"},
		"batch without period":  {"output", "stream: a\nbatching: { count: 100 }", "want a period", "batching: want a period"},
		"bytes without period":  {"output", "stream: a\nbatching: { byte_size: 100 }", "want a period", "batching: want a period"},
		"check without period":  {"output", "stream: a\nbatching: { check: 'true' }", "want a period", "batching: want a period"},
		"table name":            {"output", "stream: a\ntable: { name: a.b/c }", "want 1 to 128", "table: table name"},
		"table of many":         {"output", "stream: ${! @s }\ntable: { name: t }", "", "table.name: \"t\": several streams cannot fill one table"},
		"commit interval":       {"output", "stream: a\ntable: { commit: { interval: soon } }", "want a duration", `table.commit.interval: "soon": want a duration`},
		"short commit interval": {"output", "stream: a\ntable: { commit: { interval: 10ms } }", "", "want at least 1s"},
		"system column":         {"output", "stream: a\ntable: { system_columns: [ partition, offset, rowid ] }", "want one of partition", `system column "rowid"`},
		"unknown field":         {"output", "stream: a\nproducers: {}", "field producers not recognised", ""},
		"size":                  {"output", "stream: a\nengine: { cache_bytes: much }", "want a size", `engine: cache_bytes: "much": want a size`},
		"no size":               {"output", "stream: a\nengine: { cache_bytes: 0B }", "", `cache_bytes: "0B": want a size`},
		"small size":            {"output", "stream: a\nengine: { wal: { max_object_bytes: 1KiB } }", "", "wal.max_object_bytes 1024: want 65536"},
		"shards":                {"output", "stream: a\nengine: { shards: 65 }", "want 1 to 64", "shards 65: want 1 to 64"},
		"compression":           {"output", "stream: a\nengine: { wal: { compression: lzo } }", "value lzo is not a valid option", `wal.compression "lzo": want zstd or none`},
		"catalog":               {"output", "stream: a\nengine: { catalog: { type: hive } }", "value hive is not a valid option", `catalog.type "hive": want sql`},
		"storage":               {"output", "stream: a\nengine: { storage: { url: 'ftp://lake' } }", "want s3://bucket/prefix", "want file, mem, s3, gs, azblob"},
		"drain timeout":         {"output", "stream: a\nengine: { drain_timeout: 15 }", "want a duration", "drain_timeout"},
		"lease ttl":             {"output", "stream: a\nengine: { lease_ttl: soon }", "want a duration", `lease_ttl: "soon": want a duration`},
		"short lease ttl":       {"output", "stream: a\nengine: { lease_ttl: 1s }", "", "lease_ttl 1s: want at least 5s"},
		"linger":                {"output", "stream: a\nengine: { wal: { linger: -1s } }", "want a duration", `wal.linger: "-1s": want a duration`},
		"nats without store":    {"output", "stream: a\nengine: { nats: { urls: [ 'nats://a' ] } }", "", "storage.url: name a store"},
		"no selection":          {"input", "streams: []", "", "streams: empty: want namespace/name"},
		"selection":             {"input", "streams: [ a/b:x ]", "want namespace/name", `streams: "a/b:x": want namespace/name`},
		"selection backwards":   {"input", "streams: [ a/b:3-1 ]", "", `streams: "a/b:3-1"`},
		"selection twice":       {"input", "streams: [ 'a/b:0-3', 'a/b:3:5' ]", "", "name each partition once"},
		"committed":             {"input", "streams: [ a ]\nstart_offset: committed", "committed needs a consumer_group", "start_offset: committed needs a consumer_group"},
		"a broken pattern":      {"input", "streams: [ 'a(' ]\nregexp_streams: true", "", "streams: error parsing regexp"},
		"a group's name":        {"input", "streams: [ a ]\nconsumer_group: a b", "want 1 to 96", "consumer_group: "},
		"a member's name":       {"input", "streams: [ a ]\nconsumer_group: g\ninstance_id: a/b", "want 1 to 96", "instance_id: "},
		"a session's part":      {"input", "streams: [ a ]\nsession_timeout: 1500ms", "", "session_timeout 1.5s: want whole seconds"},
		"slow heartbeats":       {"input", "streams: [ a ]\nsession_timeout: 3s", "", "heartbeat_interval 3s: want less than session_timeout"},
		"commit period":         {"input", "streams: [ a ]\ncommit_period: 5", "want a duration", "commit_period"},
		"checkpoint limit":      {"input", "streams: [ a ]\nunordered_processing: { enabled: true, checkpoint_limit: 0 }", "want 1 to 4096", "unordered_processing.checkpoint_limit: 0: want at least 1"},
		"a negative offset":     {"input", "streams: [ a ]\nstart_offset: '-5'", "want earliest, latest", `start_offset: "-5": want earliest`},
		"a strange time":        {"input", "streams: [ a ]\nstart_offset: '@yesterday'", "want earliest, latest", `start_offset: "@yesterday": want earliest`},
		"batch messages":        {"input", "streams: [ a ]\nmax_yield_batch_messages: 0", "want 1 to 1000000", "max_yield_batch_messages: 0: want at least 1"},
		"batch bytes":           {"input", "streams: [ a ]\nmax_yield_batch_bytes: 1XB", "want a size", `max_yield_batch_bytes: "1XB": want a size`},
	} {
		t.Run(name, func(t *testing.T) {
			lints := lintOf(t, l, c.kind, c.yaml)
			if c.lint == "" {
				require.Empty(t, lints)
			} else {
				require.Contains(t, lints, c.lint)
			}
			var err error
			if c.kind == "output" {
				_, err = parseOutput(t, c.yaml)
			} else {
				_, err = parseInput(t, c.yaml)
			}
			if c.run != "" {
				require.ErrorContains(t, err, c.run)
			}
		})
	}
}

func TestAllMistakesAreToldAtOnce(t *testing.T) {
	_, err := parseOutput(t, "stream: a b\npartitions: -1\nbatching: { count: 5 }")
	require.ErrorIs(t, err, engine.ErrInvalid)
	for _, field := range []string{"stream: ", "partitions: ", "batching: "} {
		require.ErrorContains(t, err, field)
	}
}

func TestInterpolatedStreamsAreLeftToTheMessages(t *testing.T) {
	const yaml = "stream: tenant/${! this.tenant }"
	out, err := parseOutput(t, yaml)
	require.NoError(t, err)
	require.Empty(t, out.StreamName)
	require.Empty(t, lintOf(t, linter(t), "output", yaml))
}
