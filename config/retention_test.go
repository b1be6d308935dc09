package config_test

import (
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

func TestARetentionIsRead(t *testing.T) {
	for yaml, want := range map[string]engine.Retention{
		"{}":                        {},
		"{ time: 168h }":            {Time: new(168 * time.Hour)},
		"{ time: 0s, bytes: 0 }":    {Time: new(time.Duration(0)), Bytes: new(int64(0))},
		"{ bytes: 10GiB }":          {Bytes: new(int64(10 << 30))},
		"{ wait_for_groups: true }": {WaitForGroups: new(true)},
		"{ wait_for_tables: 0s }":   {WaitForTables: new(time.Duration(0))},
		"{ time: unlimited, bytes: unlimited, wait_for_tables: 1h, wait_for_groups: false }": {
			Time: new(time.Duration(engine.Unlimited)), Bytes: new(int64(engine.Unlimited)),
			WaitForTables: new(time.Hour), WaitForGroups: new(false),
		},
	} {
		text := "stream: a/b\nretention: " + yaml
		out, err := parseOutput(t, text)
		require.NoError(t, err, yaml)
		require.Equal(t, want, out.StreamConfig.Retention, yaml)
		require.Empty(t, lintOf(t, linter(t), "output", text), yaml)
	}
}

func TestAMistakeInARetentionIsNamedByLintAndByTheRun(t *testing.T) {
	for yaml, c := range map[string]struct{ lint, run string }{
		"time: forever":       {"want a duration like 168h, or unlimited", `retention.time: "forever": want a duration`},
		"time: -1h":           {"want a duration like 168h, or unlimited", `retention.time: "-1h": want a duration`},
		"time: 10us":          {"", `retention.time: "10us": want a duration`},
		"bytes: much":         {"want a size like 10GiB, or unlimited", `retention.bytes: "much": want a size`},
		"bytes: -1":           {"want a size like 10GiB, or unlimited", `retention.bytes: "-1": want a size`},
		"wait_for_tables: 7d": {"want a duration", `retention.wait_for_tables: "7d": want a duration`},
	} {
		text := "stream: a/b\nretention: { " + yaml + " }"
		_, err := parseOutput(t, text)
		require.ErrorIs(t, err, engine.ErrInvalid, yaml)
		require.ErrorContains(t, err, c.run)
		lints := lintOf(t, linter(t), "output", text)
		if c.lint == "" {
			require.Empty(t, lints)
		} else {
			require.Contains(t, lints, c.lint)
		}
	}
}

func TestATableIsSwitchedOnlyByWhoSaysSo(t *testing.T) {
	for yaml, want := range map[string]*bool{"{}": nil, "{ enabled: true }": new(true), "{ enabled: false }": new(false)} {
		out, err := parseOutput(t, "stream: a/b\ntable: "+yaml)
		require.NoError(t, err)
		require.Equal(t, want, out.StreamConfig.Table.Enabled, yaml)
	}
}

func parseNamespaces(t *testing.T, yaml string) (map[string]engine.NamespaceConfig, error) {
	t.Helper()
	conf, err := service.NewConfigSpec().Field(config.TopLevelField()).ParseYAML("lakestream:\n  namespaces: "+yaml, nil)
	require.NoError(t, err)
	opts, err := config.ParseEngine(conf.Namespace(config.ComponentName))
	return opts.Namespaces, err
}

func TestWhatNamespacesHandDownIsRead(t *testing.T) {
	namespaces, err := parseNamespaces(t, `{ shop: { table: { enabled: false, namespace: lake, commit: { interval: 30s } }, retention: { time: 24h } }, web: {} }`)
	require.NoError(t, err)
	require.Len(t, namespaces, 2)
	shop := namespaces["shop"]
	require.False(t, *shop.Table.Enabled)
	require.Equal(t, "lake", shop.Table.Namespace)
	require.Equal(t, 30*time.Second, shop.Table.CommitInterval)
	require.Equal(t, engine.Retention{Time: new(24 * time.Hour)}, shop.Retention)
	web := namespaces["web"]
	require.Nil(t, web.Table.Enabled)
	require.Zero(t, web.Retention)
	none, err := parseNamespaces(t, "{}")
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestAMistakeInANamespaceIsNamed(t *testing.T) {
	for yaml, says := range map[string]string{
		`{ a/b: {} }`: `namespaces: "a/b": want 1 to 128`,
		`{ shop: { retention: { time: soon } } }`:                       `namespaces.shop: retention.time: "soon": want a duration`,
		`{ shop: { table: { commit: { interval: 1ms } } } }`:            "namespaces.shop: table: table commit interval 1ms",
		`{ shop: { retention: { bytes: x } }, web: { retention: {} } }`: `namespaces.shop: retention.bytes: "x": want a size`,
	} {
		_, err := parseNamespaces(t, yaml)
		require.ErrorIs(t, err, engine.ErrInvalid, yaml)
		require.ErrorContains(t, err, says)
	}
}
