package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

func parseKafka(t *testing.T, yaml string) (config.KafkaInput, error) {
	t.Helper()
	conf, err := config.KafkaInputSpec().ParseYAML(yaml, nil)
	if err != nil {
		return config.KafkaInput{}, err
	}
	return config.ParseKafkaInput(conf)
}

func TestTheKafkaInputHasDefaults(t *testing.T) {
	in, err := parseKafka(t, "seed_brokers: [ kafka:9092 ]\ntopics: [ orders ]")
	require.NoError(t, err)
	require.Equal(t, config.KafkaInput{
		SeedBrokers: []string{"kafka:9092"}, Topics: []string{"orders"}, ClientID: "lakestream",
		CheckpointLimit: 1024, CommitPeriod: 5 * time.Second, MaxBatchBytes: 1 << 20, MaxBatchMessages: 1000, AutoReplayNacks: true,
		SessionTimeout: time.Minute, RebalanceTimeout: 45 * time.Second, HeartbeatInterval: 3 * time.Second, MetadataMaxAge: time.Minute,
		FetchMaxBytes: 32 << 20, FetchMaxPartitionBytes: 1 << 20,
	}, in)
}

func TestTheKafkaInputTakesCredentials(t *testing.T) {
	in, err := parseKafka(t, `
seed_brokers: [ kafka:9092 ]
topics: [ orders ]
consumer_group: lake
start_offset: latest
transaction_isolation_level: read_uncommitted
tls: { enabled: true }
sasl: [ { mechanism: scram-sha-512, username: lake, password: hush } ]
`)
	require.NoError(t, err)
	require.True(t, in.FromEnd)
	require.True(t, in.ReadUncommitted)
	require.NotNil(t, in.TLS)
	require.Equal(t, []config.KafkaSASL{{Mechanism: config.KafkaScramSHA512, Username: "lake", Password: "hush"}}, in.SASL)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", in, in, in.SASL), "hush", "a password does not print")
}

// Every mistake of a configuration is refused, and lint finds those of one field.
func TestMistakesOfTheKafkaInputAreNamed(t *testing.T) {
	env := service.NewEnvironment()
	require.NoError(t, env.RegisterBatchInput(config.KafkaComponentName, config.KafkaInputSpec(),
		func(*service.ParsedConfig, *service.Resources) (service.BatchInput, error) { return nil, nil }))
	linter := env.NewComponentConfigLinter()
	const good = "seed_brokers: [ kafka:9092 ]\ntopics: [ orders ]\n"
	for _, mistake := range []struct {
		yaml, says string
		lint       bool
	}{
		{yaml: "seed_brokers: []\ntopics: [ orders ]", says: "seed_brokers: want at least one"},
		{yaml: "seed_brokers: [ kafka:9092 ]\ntopics: [ '' ]", says: "topics: an item is empty"},
		{yaml: good + "start_offset: begin", says: "want one of earliest, latest", lint: true},
		{yaml: good + "transaction_isolation_level: none", says: "want one of read_committed, read_uncommitted", lint: true},
		{yaml: good + "sasl: [ { mechanism: GSSAPI } ]", says: "want one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512", lint: true},
		{yaml: good + "checkpoint_limit: 0", says: "want", lint: true},
		{yaml: good + "commit_period: soon", says: "want a duration", lint: true},
		{yaml: good + "max_yield_batch_bytes: many", says: "want a size", lint: true},
		{yaml: good + "fetch_max_bytes: 2GiB", says: "want at most 1GiB"},
		{yaml: good + "instance_id: a", says: "instance_id: there are members only in a consumer_group"},
		{yaml: good + "heartbeat_interval: 2m", says: "heartbeat_interval: 2m0s: want less than session_timeout, which is 1m0s"},
		{yaml: "seed_brokers: [ kafka:9092 ]\nregexp_topics: true\ntopics: [ '(' ]", says: "topics: error parsing regexp"},
	} {
		_, err := parseKafka(t, mistake.yaml)
		require.ErrorIs(t, err, engine.ErrInvalid, mistake.yaml)
		require.ErrorContains(t, err, mistake.says, mistake.yaml)
		lints, err := linter.LintInputYAML([]byte("kafka:\n  " + strings.ReplaceAll(mistake.yaml, "\n", "\n  ")))
		require.NoError(t, err)
		require.Equal(t, mistake.lint, len(lints) > 0, "%s: %v", mistake.yaml, lints)
	}
	lints, err := linter.LintInputYAML([]byte("kafka:\n  " + strings.ReplaceAll(good, "\n", "\n  ")))
	require.NoError(t, err)
	require.Empty(t, lints)
}
