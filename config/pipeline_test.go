package config_test

import (
	"os"
	"path/filepath"
	"testing"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
	_ "github.com/lakestream-go/lakestream/plugin"
)

// Given pipelines that name their engine in one place or another, when a command
// reads them, then it finds the engine that their components use.
func TestAPipelineNamesItsEngine(t *testing.T) {
	t.Setenv("LAKE_DIR", "/lake")
	tests := map[string]struct{ yaml, want string }{
		"nowhere": {"input: { generate: { mapping: root = 1 } }\noutput: { lakestream: { stream: a } }", ""},
		"at the top level": {
			"lakestream: { data_dir: /top }\noutput: { lakestream: { stream: a } }", "/top",
		},
		"in the output": {
			"output: { lakestream: { stream: a, engine: { data_dir: /own } } }", "/own",
		},
		"in a component deep inside, over the top level": {
			"lakestream: { data_dir: /top }\noutput: { broker: { outputs: [ { drop: {} }, { lakestream: { stream: a, engine: { data_dir: /deep } } } ] } }", "/deep",
		},
		"in input and output alike": {
			"input: { lakestream: { streams: [ a ], engine: { data_dir: /own } } }\noutput: { lakestream: { stream: b, engine: { data_dir: /own } } }", "/own",
		},
		"by the environment":              {"lakestream: { data_dir: \"${LAKE_DIR}/x\" }", "/lake/x"},
		"by a default of the environment": {"lakestream: { data_dir: \"${LAKE_NONE:/other}\" }", "/other"},
		"without any component":           {"lakestream: { data_dir: /top }\noutput: { drop: {} }", "/top"},
		"beside interpolations":           {"lakestream: { data_dir: /top }\noutput: { lakestream: { stream: a, key: '${! this.id }' } }", "/top"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			opts, err := config.ParsePipeline([]byte(test.yaml))
			require.NoError(t, err)
			want := test.want
			if want == "" {
				want = engine.DefaultDataDir
			}
			require.Equal(t, want, opts.WithDefaults().DataDir)
		})
	}
}

// Given pipelines from which the engine cannot be told, when a command reads them,
// then it says why and guesses nothing.
func TestAPipelineWithoutOneEngineIsRefused(t *testing.T) {
	tests := map[string]struct{ yaml, want string }{
		"two engines": {
			"input: { lakestream: { streams: [ a ], engine: { data_dir: /a } } }\noutput: { lakestream: { stream: b, engine: { data_dir: /b } } }",
			"2 engines",
		},
		"own and shared engines": {
			"lakestream: { data_dir: /a }\ninput: { lakestream: { streams: [ a ] } }\noutput: { lakestream: { stream: b, engine: { data_dir: /b } } }",
			"2 engines",
		},
		"a missing variable": {"lakestream: { data_dir: \"${LAKE_NONE}\" }", "LAKE_NONE"},
		"a wrong value":      {"lakestream: { shards: 65 }", "shards"},
		"no YAML":            {"a: [", "yaml"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := config.ParsePipeline([]byte(test.yaml))
			require.ErrorIs(t, err, engine.ErrInvalid)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// Given no file, or one, when a command names it, then that it is absent is an
// error of the configuration.
func TestAPipelineIsReadFromItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipeline.yaml")
	_, err := config.LoadPipeline(path)
	require.ErrorIs(t, err, engine.ErrInvalid)
	require.ErrorIs(t, err, os.ErrNotExist)

	require.NoError(t, os.WriteFile(path, []byte("lakestream: { data_dir: /top }"), 0o600))
	opts, err := config.LoadPipeline(path)
	require.NoError(t, err)
	require.Equal(t, "/top", opts.DataDir)
}
