package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// KafkaComponentName is the name of the input that reads Kafka.
const KafkaComponentName = "kafka"

// KafkaInput is the configuration of the Kafka input.
type KafkaInput struct {
	// SeedBrokers are host:port of brokers that the first connection tries.
	SeedBrokers []string
	// Topics are names, or regular expressions where Regexp is set.
	Topics []string
	Regexp bool
	// ConsumerGroup commits offsets; empty reads every partition and commits
	// nothing. InstanceID makes membership static.
	ConsumerGroup, InstanceID string
	// FromEnd begins, where no offset is committed, after what the topics hold.
	FromEnd          bool
	ClientID, RackID string
	// TLS is nil for connections in the clear.
	TLS *tls.Config
	// SASL are the credentials to try, in their order.
	SASL []KafkaSASL
	// CheckpointLimit bounds the messages of one partition that are handed out
	// and not accepted.
	CheckpointLimit int
	CommitPeriod    time.Duration
	// MaxBatchBytes and MaxBatchMessages bound one batch.
	MaxBatchBytes    int64
	MaxBatchMessages int
	// AutoReplayNacks delivers rejected messages again.
	AutoReplayNacks bool
	// ReadUncommitted delivers records of open and aborted transactions too.
	ReadUncommitted                                     bool
	SessionTimeout, RebalanceTimeout, HeartbeatInterval time.Duration
	MetadataMaxAge                                      time.Duration
	// FetchMaxBytes and FetchMaxPartitionBytes bound one answer of a broker.
	FetchMaxBytes, FetchMaxPartitionBytes int32
}

// KafkaSASL is one way to authenticate.
type KafkaSASL struct {
	// Mechanism is one of the KafkaMechanism constants.
	Mechanism string
	Username  string
	Password  Secret
}

// Mechanisms of SASL.
const (
	KafkaPlain       = "PLAIN"
	KafkaScramSHA256 = "SCRAM-SHA-256"
	KafkaScramSHA512 = "SCRAM-SHA-512"
)

// Names of the fields of the Kafka input that others do not have.
const (
	fieldSeedBrokers            = "seed_brokers"
	fieldTopics                 = "topics"
	fieldRegexpTopics           = "regexp_topics"
	fieldClientID               = "client_id"
	fieldRackID                 = "rack_id"
	fieldTLS                    = "tls"
	fieldSASL                   = "sasl"
	fieldMechanism              = "mechanism"
	fieldUsername               = "username"
	fieldPassword               = "password"
	fieldCheckpointLimit        = "checkpoint_limit"
	fieldMetadataMaxAge         = "metadata_max_age"
	fieldIsolationLevel         = "transaction_isolation_level"
	fieldFetchMaxBytes          = "fetch_max_bytes"
	fieldFetchMaxPartitionBytes = "fetch_max_partition_bytes"
)

const (
	brokerPattern = `^[^:/ ]+(:[0-9]{1,5})?$`
	wantBroker    = "want host:port or host"
	// maxFetchBytes is the most that a broker may be asked for at once.
	maxFetchBytes = 1 << 30
)

// KafkaInputSpec returns the spec of the Kafka input.
func KafkaInputSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Services").Version("0.2.0").
		Summary("Reads topics of Kafka, alone or in a consumer group.").
		Description(kafkaDescription).
		Fields(kafkaFields()...).
		Example("Topics become a stream, exactly once", "The output drops what it has already, whatever is delivered again.", `
input:
  kafka:
    seed_brokers: [ kafka:9092 ]
    topics: [ orders ]
    consumer_group: lake
output:
  lakestream:
    stream: shop/orders
    partitions: 12
    key: ${! metadata("kafka_key").or("") }
    timestamp_ms: ${! metadata("kafka_timestamp_ms") }
`)
}

const kafkaDescription = `
A batch holds messages of one partition, in the order of their offsets. Batches of one partition may be in flight side by side, up to ` + "`checkpoint_limit`" + ` messages; partitions do not wait for each other.

Delivery is at least once. With a ` + "`consumer_group`" + `, the offset that is committed lies before everything that was not accepted, so that a restart delivers at most again what was in flight and what was accepted since the last commit: never more than the 65,536 newest offsets of a partition, which an output with ` + "`idempotency`" + ` tells from new ones, because commits come early and messages wait for them where it takes that. When a partition moves to another member, what is in flight has half of ` + "`rebalance_timeout`" + ` to be accepted; what is accepted later is not committed, and the new owner delivers it again. Without a group every start begins at ` + "`start_offset`" + `.

### Rejected messages and order

Messages that are rejected are delivered again, with growing pauses, until they are accepted. Batches that were handed out meanwhile are not taken back, so that a message that was rejected may come after later ones. With ` + "`checkpoint_limit: 1`" + ` one batch of a partition at a time is in flight, and order holds across batches; within a batch of which a part was rejected, that part comes later. With ` + "`auto_replay_nacks: false`" + ` rejected messages are dropped with a warning, and count as accepted.

### Metadata

| key | value |
|---|---|
| ` + "`kafka_topic`, `kafka_partition`, `kafka_offset`" + ` | the record's place |
| ` + "`kafka_key`" + ` | the key, absent when it has none |
| ` + "`kafka_timestamp_ms`, `kafka_timestamp_unix`" + ` | the record's time in milliseconds and in seconds |
| ` + "`kafka_lag`" + ` | records of the partition after this one, when it was read |
| ` + "`kafka_tombstone_message`" + ` | ` + "`true`" + ` for a record without a value, else ` + "`false`" + ` |

Headers become metadata under their own names; of several with one name the last one stays, and none replaces a name above.
`

func kafkaFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringListField(fieldSeedBrokers).LintRule(lintPattern(brokerPattern, wantBroker)).
			Description("Brokers to connect to first, as `host:port`. The others are learned from them.").Example([]string{"kafka-1:9092", "kafka-2:9092"}),
		service.NewStringListField(fieldTopics).
			Description("Topics to read, or regular expressions of their names. A topic that does not exist is waited for.").Example([]string{"orders", "returns"}),
		service.NewBoolField(fieldRegexpTopics).Default(false).
			Description("Take `topics` as regular expressions, unanchored; topics that are created later are found too."),
		service.NewStringField(fieldConsumerGroup).Default("").
			Description("The group that shares the partitions and keeps the offsets. Without one every partition is read and nothing is kept."),
		service.NewStringField(fieldStartOffset).Default("earliest").LintRule(lintChoice("earliest", "latest")).
			Description("Where to begin a partition that has no committed offset: `earliest` or `latest`."),
		service.NewStringField(fieldClientID).Default("lakestream").Advanced().
			Description("Tells this client in the brokers' logs and quotas."),
		service.NewStringField(fieldRackID).Default("").Advanced().
			Description("Where this client is, so that it may read from a replica nearby."),
		service.NewStringField(fieldInstanceID).Default("").Advanced().
			Description("Makes membership of the group static: a restart within `session_timeout` moves no partition. Each instance needs one of its own."),
		service.NewTLSToggledField(fieldTLS),
		service.NewObjectListField(fieldSASL,
			service.NewStringField(fieldMechanism).LintRule(lintChoice(KafkaPlain, KafkaScramSHA256, KafkaScramSHA512)).
				Description("`PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`."),
			service.NewStringField(fieldUsername).Default("").Description("The user."),
			service.NewStringField(fieldPassword).Default("").Secret().Description("The user's password."),
		).Optional().Advanced().Description("How to authenticate; the first mechanism that the brokers know is used. Use it with TLS: `PLAIN` sends the password as it is."),
		service.NewIntField(fieldCheckpointLimit).Default(1024).Advanced().LintRule(lintBetween(1, 65_536)).
			Description("How many messages of one partition may be in flight. A batch that is larger comes when nothing of its partition is in flight. 1 keeps the order of a partition."),
		duration(fieldCommitPeriod, "How often offsets are committed. They are committed at the end and before a partition moves, too.").Default("5s").Advanced(),
		size(fieldMaxYieldBatchBytes, "Largest batch, by its keys, values and headers. A larger record comes alone.").Default("1MiB").Advanced(),
		service.NewIntField(fieldMaxYieldBatchMessages).Default(1000).Advanced().LintRule(lintBetween(1, 65_536)).
			Description("Most messages of a batch."),
		service.NewBoolField(fieldAutoReplayNacks).Default(true).Advanced().
			Description("Deliver rejected messages again. Otherwise they are dropped with a warning."),
		service.NewStringField(fieldIsolationLevel).Default("read_committed").Advanced().LintRule(lintChoice("read_committed", "read_uncommitted")).
			Description("`read_committed` leaves out what open and aborted transactions wrote; `read_uncommitted` delivers it."),
		duration(fieldSessionTimeout, "How long the group waits for a sign of life before it gives a member's partitions to others.").Default("1m").Advanced(),
		duration(fieldRebalanceTimeout, "How long members have to give partitions up. What is in flight has half of it to be accepted.").Default("45s").Advanced(),
		duration(fieldHeartbeatInterval, "How often a member shows that it is alive.").Default("3s").Advanced(),
		duration(fieldMetadataMaxAge, "How long a new partition or topic may go unnoticed.").Default("1m").Advanced(),
		size(fieldFetchMaxBytes, "Most bytes that one broker is asked for at once.").Default("32MiB").Advanced(),
		size(fieldFetchMaxPartitionBytes, "Most bytes of one partition in one answer; a larger record still comes.").Default("1MiB").Advanced(),
	}
}

// ParseKafkaInput reads a configuration of KafkaInputSpec. Whatever is wrong is
// engine.ErrInvalid and named.
func ParseKafkaInput(conf *service.ParsedConfig) (KafkaInput, error) {
	v := values{conf: conf}
	in := KafkaInput{
		SeedBrokers:       v.filled(fieldSeedBrokers),
		Topics:            v.filled(fieldTopics),
		Regexp:            v.flag(fieldRegexpTopics),
		ConsumerGroup:     v.text(fieldConsumerGroup),
		InstanceID:        v.text(fieldInstanceID),
		FromEnd:           v.choice([]string{"earliest", "latest"}, fieldStartOffset) == "latest",
		ClientID:          v.text(fieldClientID),
		RackID:            v.text(fieldRackID),
		SASL:              v.sasl(),
		CheckpointLimit:   v.count(fieldCheckpointLimit),
		CommitPeriod:      v.duration(fieldCommitPeriod),
		MaxBatchBytes:     v.size(fieldMaxYieldBatchBytes),
		MaxBatchMessages:  v.count(fieldMaxYieldBatchMessages),
		AutoReplayNacks:   v.flag(fieldAutoReplayNacks),
		ReadUncommitted:   v.choice([]string{"read_committed", "read_uncommitted"}, fieldIsolationLevel) == "read_uncommitted",
		SessionTimeout:    v.duration(fieldSessionTimeout),
		RebalanceTimeout:  v.duration(fieldRebalanceTimeout),
		HeartbeatInterval: v.duration(fieldHeartbeatInterval),
		MetadataMaxAge:    v.duration(fieldMetadataMaxAge),
	}
	in.FetchMaxBytes = v.fetchSize(fieldFetchMaxBytes)
	in.FetchMaxPartitionBytes = v.fetchSize(fieldFetchMaxPartitionBytes)
	tlsConfig, enabled, err := conf.FieldTLSToggled(fieldTLS)
	switch {
	case err != nil:
		v.fail(err, fieldTLS)
	case enabled:
		in.TLS = tlsConfig
	}
	v.checkKafka(&in)
	if err := v.err(); err != nil {
		return KafkaInput{}, err
	}
	return in, nil
}

// checkKafka finds what single fields cannot tell.
func (v *values) checkKafka(in *KafkaInput) {
	if in.Regexp {
		for _, topic := range in.Topics {
			if _, err := regexp.Compile(topic); err != nil {
				v.fail(err, fieldTopics)
			}
		}
	}
	if in.InstanceID != "" && in.ConsumerGroup == "" {
		v.fail(fmt.Errorf("there are members only in a %s: set it too, or leave %s out", fieldConsumerGroup, fieldInstanceID), fieldInstanceID)
	}
	if in.HeartbeatInterval >= in.SessionTimeout && in.SessionTimeout > 0 {
		v.fail(fmt.Errorf("%s: want less than %s, which is %s", in.HeartbeatInterval, fieldSessionTimeout, in.SessionTimeout), fieldHeartbeatInterval)
	}
}

// filled reads a list that holds something.
func (v *values) filled(path ...string) []string {
	list := v.list(path...)
	if len(list) == 0 {
		v.fail(errors.New("want at least one"), path...)
	}
	for _, item := range list {
		if strings.TrimSpace(item) == "" {
			v.fail(errors.New("an item is empty"), path...)
		}
	}
	return list
}

// choice reads one of the allowed texts, in any case of letters.
func (v *values) choice(allowed []string, path ...string) string {
	text := v.text(path...)
	for _, one := range allowed {
		if strings.EqualFold(one, text) {
			return one
		}
	}
	v.fail(fmt.Errorf("%q: want one of %s", text, strings.Join(allowed, ", ")), path...)
	return ""
}

func (v *values) fetchSize(path ...string) int32 {
	n := v.size(path...)
	if n > maxFetchBytes {
		v.fail(fmt.Errorf("%d bytes: want at most 1GiB", n), path...)
		return 0
	}
	return int32(n) //nolint:gosec // at most maxFetchBytes
}

func (v *values) sasl() []KafkaSASL {
	var all []KafkaSASL
	for _, conf := range read(v, v.conf.FieldObjectList, fieldSASL) {
		one := values{conf: conf}
		all = append(all, KafkaSASL{
			Mechanism: one.choice([]string{KafkaPlain, KafkaScramSHA256, KafkaScramSHA512}, fieldMechanism),
			Username:  one.text(fieldUsername), Password: Secret(one.text(fieldPassword)),
		})
		if err := errors.Join(one.errs...); err != nil {
			v.fail(err, fieldSASL)
		}
	}
	return all
}
