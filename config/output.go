package config

import (
	"fmt"
	"strings"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// Output is the configuration of the output.
type Output struct {
	// Stream names the stream of each message. StreamName is the full name
	// when it is the same for all, else empty.
	Stream     *service.InterpolatedString
	StreamName string
	// MaxStreams bounds the streams that an interpolated name may reach.
	MaxStreams int
	// StreamConfig is what a stream shall have.
	StreamConfig engine.StreamConfig
	// Key, Partition and TimestampMS resolve for each message; empty text
	// means none.
	Key, Partition, TimestampMS *service.InterpolatedString
	// Idempotency says how repeats are told.
	Idempotency Idempotency
	// Metadata chooses what becomes headers.
	Metadata    *service.MetadataFilter
	MaxInFlight int
	Batching    service.BatchPolicy
	// Engine is the component's own; nil means the top-level one.
	Engine *engine.Options
}

// Ordered reports whether batches are written one at a time.
func (o *Output) Ordered() bool { return o.MaxInFlight == 1 }

// OutputSpec returns the spec of the output.
func OutputSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Services").Version("0.1.0").
		Summary("Appends messages to a stream, which is durable and replayable at once and an Apache Iceberg table seconds later.").
		Description(outputDescription).
		Fields(outputFields()...).
		Example("Webhooks by repository", "Messages of one repository share a partition and keep their order there.", `
output:
  lakestream:
    stream: github/webhooks
    partitions: 4
    key: ${! this.payload.repository.full_name.or("") }
`).
		Example("One writer, exact order", "With one batch in flight and one pipeline thread the log has the order of the input. The stream gets no table.", `
pipeline:
  threads: 1
output:
  lakestream:
    stream: audit/events
    max_in_flight: 1
    table: { enabled: false }
`)
}

const outputDescription = `
A message is acknowledged when its record is durable in the object store and in the commit log and has its offset. The stream is created when it is absent.

### Records

The content of a message is the record's value, byte for byte; nothing is parsed. A message with the metadata ` + "`lakestream_tombstone`" + ` set to ` + "`true`" + ` becomes a record without a value. Records of one partition have the order in which they were appended.

### Errors

A message that can never be written (too large, a partition that does not exist, a timestamp that is no number) fails alone: the rest of its batch is written, and retries repeat only the failed ones. When it cannot be told whether records were appended, the error says that the outcome is unknown; a retry may then write them twice, each at an offset of its own. While the store or coordination does not answer, writes wait, and a warning names what they wait for. When it cannot be reached at all at the start, ` + "`/ready`" + ` is 503 for three attempts, of at most 15 seconds each; then the output counts as connected and refuses batches until it gets through, so that a ` + "`fallback`" + ` output takes over. What only a change of the configuration or of the data can heal ends ` + "`lakestream run`" + `; elsewhere it stays 503.

### Exactly once

With ` + "`idempotency`" + ` the stream takes each message of a source once, whatever is delivered again: by retries, after a crash, by several instances, in other batches, in another order. It remembers exactly the 65,536 newest sequences of each producer. A message that is older is refused, because nobody can tell whether it is there; so the source must commit at least that often. The output does not outrun the window: while a message is not acknowledged, others of its producer wait that are 65,536 sequences ahead of it. Messages of one batch with one sequence are appended together. A message that the pipeline splits over several batches cannot be told from a repeat: leave it off there.

### Performance

Many batches in flight share objects, so that no batching is needed in the output. A batch policy here makes Benthos replay whole batches where single messages failed; batch at the input where it helps.
`

func outputFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewInterpolatedStringField(fieldStream).LintRule(lintInterpolated(streamPattern, wantStream)).
			Description("The stream: `namespace/name`. A name without a slash is in the namespace `default`.").Example("github/webhooks"),
		service.NewIntField(fieldMaxStreams).Default(1000).Advanced().LintRule(lintBetween(1, 1_000_000)).
			Description("How many streams an interpolated `stream` may reach. Messages for more are refused."),
		service.NewIntField(fieldPartitions).Default(0).LintRule(lintBetween(0, engine.MaxPartitions)).
			Description("Partitions of a stream that is created; 0 means 1. An existing stream keeps its partitions: fewer here is an error, more a warning."),
		service.NewInterpolatedStringField(fieldKey).Default("").
			Description("The record's key. Records of one key share a partition, chosen by murmur2 as Kafka's clients do. An empty key is none, and the partition then changes from batch to batch. A missing value resolves to the text `null`, hence `.or(\"\")`.").
			Example(`${! this.user.id.or("") }`),
		service.NewInterpolatedStringField(fieldPartition).Default("").Advanced().
			Description("The record's partition, a number from 0. It wins over the key. Empty means none is given.").
			Example(`${! metadata("kafka_partition").or("") }`),
		service.NewInterpolatedStringField(fieldTimestampMS).Default("").Advanced().
			Description("The record's time in milliseconds since the Unix epoch. Empty means now.").
			Example(`${! metadata("kafka_timestamp_ms").or("") }`),
		service.NewMetadataFilterField(fieldMetadata).Optional().
			Description("Metadata that becomes headers of the record. By default none."),
		service.NewOutputMaxInFlightField().Default(512).LintRule(lintBetween(1, 65_536)).
			Description("Batches in flight, bounded by `wal.max_buffered_bytes`. With 1 (and one pipeline thread) the log has the order of the input, and every batch is written at once."),
		service.NewBatchPolicyField(fieldBatching).Advanced().LintRule(lintBatching).
			Description("A batch policy, rarely needed. It needs a `period`."),
		idempotencyField(),
		retentionField("What the stream's log keeps. What is set here is applied when the output connects; what is not keeps what the stream has, or is inherited from its namespace."),
		tableField(),
		engineField(),
	}
}

// ParseOutput reads a configuration of OutputSpec. Whatever is wrong is
// engine.ErrInvalid and named.
func ParseOutput(conf *service.ParsedConfig) (Output, error) {
	v := values{conf: conf}
	out := Output{
		Stream:     v.interpolated(fieldStream),
		MaxStreams: v.count(fieldMaxStreams),
		StreamConfig: engine.StreamConfig{
			Partitions: read(&v, conf.FieldInt, fieldPartitions), Table: v.table(fieldTable), Retention: v.retention(fieldRetention),
		},
		Idempotency: v.idempotency(),
		Key:         v.interpolated(fieldKey),
		Partition:   v.interpolated(fieldPartition),
		TimestampMS: v.interpolated(fieldTimestampMS),
		Metadata:    read(&v, conf.FieldMetadataFilter, fieldMetadata),
		MaxInFlight: v.count(fieldMaxInFlight),
		Batching:    read(&v, conf.FieldBatchPolicy, fieldBatching),
	}
	v.checkStream(&out)
	if n := out.StreamConfig.Partitions; n < 0 || n > engine.MaxPartitions {
		v.fail(fmt.Errorf("%d: want 0 to %d", out.StreamConfig.Partitions, engine.MaxPartitions), fieldPartitions)
	}
	if b := out.Batching; (b.Count > 1 || b.ByteSize > 0 || b.Check != "") && b.Period == "" {
		v.fail(fmt.Errorf("%s", wantPeriod), fieldBatching)
	}
	if err := v.err(); err != nil {
		return Output{}, err
	}
	var err error
	out.Engine, err = parseEngineOf(conf)
	return out, err
}

// checkStream resolves a name that is the same for all messages.
func (v *values) checkStream(out *Output) {
	if out.Stream == nil {
		if len(v.errs) == 0 {
			v.fail(fmt.Errorf("missing: %s", wantStream), fieldStream)
		}
		return
	}
	name, static := out.Stream.Static()
	if !static {
		if t := out.StreamConfig.Table; t.Name != "" {
			v.fail(fmt.Errorf("%q: several streams cannot fill one table; leave it out where %s is interpolated", t.Name, fieldStream), fieldTable, fieldName)
		}
		return
	}
	full, err := engine.ParseStreamName(strings.TrimSpace(name))
	if err != nil {
		v.fail(fmt.Errorf("%q: %s", name, wantStream), fieldStream)
		return
	}
	out.StreamName = full
}
