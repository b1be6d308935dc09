package config_test

import (
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/config"
)

func parseMain(t *testing.T, yaml string) *service.ParsedConfig {
	t.Helper()
	conf, err := service.NewConfigSpec().Field(config.TopLevelField()).ParseYAML(yaml, nil)
	require.NoError(t, err)
	return conf
}

// Given a top-level block, when a component has an engine of its own, then nothing
// of the block remains; without one the block holds.
func TestAComponentsEngineReplacesTheTopLevelBlockWhole(t *testing.T) {
	require.NoError(t, config.SetTopLevel(parseMain(t, "lakestream: { data_dir: /shared, shards: 9 }")))
	t.Cleanup(func() { require.NoError(t, config.SetTopLevel(parseMain(t, "{}"))) })

	out, err := parseOutput(t, "stream: a")
	require.NoError(t, err)
	require.Equal(t, "/shared", config.EngineOptions(out.Engine).DataDir)

	out, err = parseOutput(t, "stream: a\nengine: { data_dir: /own }")
	require.NoError(t, err)
	own := config.EngineOptions(out.Engine)
	require.Equal(t, "/own", own.DataDir)
	require.Equal(t, 4, own.Shards)
}

func TestWithoutATopLevelBlockTheDefaultsHold(t *testing.T) {
	require.NoError(t, config.SetTopLevel(parseMain(t, "{}")))
	require.Equal(t, "./lakestream-data", config.EngineOptions(nil).WithDefaults().DataDir)
}

func TestAMistakeInTheTopLevelBlockIsNamed(t *testing.T) {
	err := config.SetTopLevel(parseMain(t, "lakestream: { wal: { linger: never } }"))
	require.ErrorContains(t, err, `lakestream: wal.linger: "never": want a duration`)
}
