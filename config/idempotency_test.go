package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

func TestIdempotencyIsOffUnlessAskedFor(t *testing.T) {
	out, err := parseOutput(t, "stream: a/b")
	require.NoError(t, err)
	require.Equal(t, config.IdempotencyOff, out.Idempotency.Mode)

	out, err = parseOutput(t, "stream: a/b\nidempotency: { mode: kafka, source: kafka-eu }")
	require.NoError(t, err)
	require.Equal(t, config.IdempotencyKafka, out.Idempotency.Mode)
	require.Equal(t, "kafka-eu", out.Idempotency.Source)
}

func TestFieldsOfIdempotencyBelongToTheirMode(t *testing.T) {
	l := linter(t)
	for _, c := range []struct{ fields, want string }{
		{"mode: kafka", ""},
		{"mode: Kafka, source: eu", ""},
		{`mode: explicit, producer: p, sequence: '${! metadata("n") }'`, ""},
		{"mode: once", "want one of off, kafka, explicit"},
		{"mode: explicit", "want producer and sequence in mode explicit"},
		{"mode: explicit, producer: p", "want producer and sequence in mode explicit"},
		{"producer: p, sequence: '1'", "producer and sequence are of mode explicit"},
		{"mode: kafka, sequence: '1'", "producer and sequence are of mode explicit"},
		{"mode: explicit, producer: p, sequence: '1', source: eu", "source is of mode kafka"},
		{"source: eu", "source is of mode kafka"},
	} {
		yaml := "stream: a/b\nidempotency: { " + c.fields + " }"
		lints := lintOf(t, l, "output", yaml)
		_, err := parseOutput(t, yaml)
		if c.want == "" {
			require.Empty(t, lints, yaml)
			require.NoError(t, err, yaml)
			continue
		}
		require.Contains(t, lints, c.want, yaml)
		require.ErrorIs(t, err, engine.ErrInvalid, yaml)
		require.ErrorContains(t, err, c.want, yaml)
	}
}
