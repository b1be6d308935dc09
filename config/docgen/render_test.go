package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const reference = "../../docs/reference"

// What users read is what the specs say.
func TestTheReferenceIsCurrent(t *testing.T) {
	pages, err := render()
	require.NoError(t, err)
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(reference, name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "run go generate ./config")
	}
	files, err := os.ReadDir(reference)
	require.NoError(t, err)
	require.Len(t, files, len(pages), "a page that nothing writes")
}

func TestEveryFieldIsDescribed(t *testing.T) {
	pages, err := render()
	require.NoError(t, err)
	for name, text := range pages {
		require.NotContains(t, string(text), "missing documentation", name)
		require.NotContains(t, string(text), "xref:", name)
		require.NotContains(t, string(text), "<no value>", name)
	}
	for name, fields := range map[string][]string{
		"output.md": {"stream", "partitions", "table.commit.interval", "batching.period", "metadata.include_prefixes", "engine"},
		"input.md":  {"streams", "start_offset", "stop_at_end", "auto_replay_nacks", "engine"},
		"kafka.md":  {"seed_brokers", "consumer_group", "sasl[].mechanism", "tls.enabled", "checkpoint_limit"},
		"engine.md": {"data_dir", "nats.urls", "wal.linger", "compaction.enabled", "drain_timeout"},
	} {
		for _, field := range fields {
			require.Contains(t, string(pages[name]), "\n### `"+field+"`\n", name)
		}
	}
}

func TestTheCommandWritesEveryPage(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run([]string{dir}))
	for _, name := range []string{"output.md", "input.md", "kafka.md", "engine.md"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(text), "<!-- Written by"))
	}
	require.ErrorContains(t, run(nil), "usage")
	require.Error(t, run([]string{filepath.Join(dir, "absent")}))
}
