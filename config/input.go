package config

import (
	"errors"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// Input is the configuration of the input.
type Input struct {
	// Streams are what to read, none twice.
	Streams []Selection
	// Start is where partitions without a start of their own, and without a
	// commit of the group, begin.
	Start engine.Position
	// StopAtEnd ends the input at the heads that it found when it connected.
	StopAtEnd bool
	// Group is with whom to share the partitions; its Selections are those of
	// Streams. CommitPeriod is how often it commits.
	Group        engine.SubscribeOptions
	CommitPeriod time.Duration
	// MaxBatchBytes and MaxBatchMessages bound one batch.
	MaxBatchBytes    int64
	MaxBatchMessages int
	// InFlight is how many batches of one partition may be unaccepted; 1 keeps
	// their order.
	InFlight int
	// AutoReplayNacks delivers rejected messages again.
	AutoReplayNacks bool
	// Engine is the component's own; nil means the top-level one.
	Engine *engine.Options
}

// InputSpec returns the spec of the input.
func InputSpec() *service.ConfigSpec {
	return service.NewConfigSpec().Beta().Categories("Services").Version("0.1.0").
		Summary("Reads streams from any offset, and goes on as they grow.").
		Description(inputDescription).
		Fields(inputFields()...).
		LintRule(lintInput).
		Example("Replay a stream and stop", "Everything that the stream holds now, from its first record.", `
input:
  lakestream:
    streams: [ github/webhooks ]
    stop_at_end: true
output:
  stdout: {}
`).
		Example("The last hour, then onwards", "Two partitions of one stream and all of another.", `
input:
  lakestream:
    streams: [ web/events:0-1, web/clicks ]
    start_offset: "@-1h"
`).
		Example("Share the work", "Run this any number of times, on any machines of one cluster: each reads a share of the partitions.", `
input:
  lakestream:
    streams: [ shop/orders ]
    consumer_group: billing
`)
}

const inputDescription = `
A message has exactly the bytes of its record. Records of one partition come in the order of their offsets, and the next batch of a partition only when the one before was accepted, so that this order holds in any pipeline and at any output; partitions are read side by side. With ` + "`unordered_processing`" + ` batches of a partition overtake each other.

Inputs of one ` + "`consumer_group`" + ` share the partitions, on any number of machines, and go on where the group has committed. When a member comes or goes, only its share moves: the old owner finishes what is in flight, commits, and lets go. One that does not within ` + "`rebalance_timeout`" + ` is overruled, and can commit nothing any more. Without a group nothing is stored of what was read: every start begins at ` + "`start_offset`" + `.

Delivery is at least once. When a part of a batch is rejected, those records are read from the log again and delivered again, with growing pauses, until they are accepted. With ` + "`auto_replay_nacks: false`" + ` rejected records are dropped with a warning.

When a stream does not exist, the input waits until it does. Partitions that a stream gets later are read from their first record.

With ` + "`stop_at_end`" + ` an input of a group ends when the group, all of its members together, has committed everything.

### Metadata

| key | value |
|---|---|
| ` + "`lakestream_stream`" + ` | full name of the stream |
| ` + "`lakestream_partition`" + `, ` + "`lakestream_offset`" + ` | the record's place, numbers |
| ` + "`lakestream_key`" + ` | the key, absent when it has none |
| ` + "`lakestream_timestamp_ms`" + `, ` + "`lakestream_timestamp_unix`" + ` | the record's time in milliseconds and in seconds, numbers |
| ` + "`lakestream_lag`" + ` | records of the partition after this one, when it was read, a number |
| ` + "`lakestream_tombstone`" + ` | ` + "`true`" + ` for a record without a value, else absent |

Headers become metadata under their own names; of several with one name the last one stays.
`

func inputFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringListField(fieldStreams).
			Description("Streams to read: `namespace/name` for all partitions, `namespace/name:0-3` for some, `namespace/name:0:100` for one from an offset on.").
			Example([]string{"github/webhooks"}).Example([]string{"shop/orders:0-3", "shop/returns:0:100"}),
		service.NewBoolField(fieldRegexpStreams).Default(false).
			Description("Take `streams` as regular expressions that match whole full names, as `shop/.*` does. Streams that are created later are read from their beginning."),
		service.NewStringField(fieldConsumerGroup).Default("").LintRule(lintPattern(groupPattern, wantGroup)).
			Description("Share the partitions with every other input of this group, and go on after a restart where the group has committed. Empty reads everything and commits nothing."),
		service.NewStringField(fieldStartOffset).Default("earliest").LintRule(lintPattern(positionPattern, wantPosition)).
			Description("Where to begin without a commit of the group: `earliest`, `latest`, `committed` (which refuses to begin without one), an offset, or the first record appended at or after a time: `@2026-11-01T00:00:00Z`, `@1793491200000`, `@-1h`. A place before the first live record means that record.").
			Example("latest").Example("@-1h"),
		service.NewBoolField(fieldStopAtEnd).Default(false).
			Description("End when everything that the streams held at the start was delivered and accepted."),
		size(fieldMaxYieldBatchBytes, "Largest batch, by its keys, values and headers. A larger record comes alone.").Default("1MiB").Advanced(),
		service.NewIntField(fieldMaxYieldBatchMessages).Default(1000).Advanced().LintRule(lintBetween(1, 1_000_000)).
			Description("Most messages of a batch."),
		service.NewBoolField(fieldAutoReplayNacks).Default(true).Advanced().
			Description("Deliver rejected messages again, from the log. Otherwise they are dropped with a warning."),
		service.NewObjectField(fieldUnorderedProcessing,
			service.NewBoolField(fieldEnabled).Default(false).Description("Hand out batches of a partition before those ahead of them are accepted."),
			service.NewIntField(fieldCheckpointLimit).Default(1024).LintRule(lintBetween(1, engine.MaxAcks)).
				Description("Most batches of one partition that are not accepted."),
		).Advanced().Description("By default a partition has one batch in flight, with a consumer_group and without, so that its order holds in any pipeline and over rejections; the next batches are read ahead meanwhile. With several in flight a later batch may be accepted before an earlier one is rejected, and no redelivery undoes that. Partitions are always processed side by side."),
		duration(fieldCommitPeriod, "How often a group commits. It commits at the end and before a partition moves, too.").Default("5s").Advanced(),
		duration(fieldSessionTimeout, "How long a member of a group that is silent keeps its partitions, in whole seconds.").Default("1m").Advanced(),
		duration(fieldRebalanceTimeout, "How long a member may take to finish what is in flight of a partition that moves; then the next owner takes it and it is delivered again.").Default("45s").Advanced(),
		duration(fieldHeartbeatInterval, "How often a member looks whether the group or the streams have changed. Its session is renewed three times in a `session_timeout`.").Default("3s").Advanced(),
		service.NewStringField(fieldInstanceID).Default("").LintRule(lintPattern(groupPattern, wantGroup)).Advanced().
			Description("Name of this member, its own in the group: a restart within `session_timeout` then moves no partition."),
		engineField(),
	}
}

// ParseInput reads a configuration of InputSpec. Whatever is wrong is
// engine.ErrInvalid and named.
func ParseInput(conf *service.ParsedConfig) (Input, error) {
	v := values{conf: conf}
	in := Input{
		StopAtEnd:        v.flag(fieldStopAtEnd),
		CommitPeriod:     v.duration(fieldCommitPeriod),
		MaxBatchBytes:    v.size(fieldMaxYieldBatchBytes),
		MaxBatchMessages: v.count(fieldMaxYieldBatchMessages),
		InFlight:         1,
		AutoReplayNacks:  v.flag(fieldAutoReplayNacks),
	}
	if v.flag(fieldUnorderedProcessing, fieldEnabled) {
		in.InFlight = v.count(fieldUnorderedProcessing, fieldCheckpointLimit)
	}
	parse := parseSelections
	if v.flag(fieldRegexpStreams) {
		parse = parsePatterns
	}
	var err error
	if in.Streams, err = parse(v.list(fieldStreams)); err != nil {
		v.fail(err, fieldStreams)
	}
	if in.Start, err = engine.ParsePosition(v.text(fieldStartOffset)); err != nil {
		v.fail(err, fieldStartOffset)
	}
	in.Group = v.group(in.Streams)
	if in.Start.Kind == engine.Committed && in.Group.Group == "" {
		v.fail(errors.New(wantCommitted), fieldStartOffset)
	}
	if err := v.err(); err != nil {
		return Input{}, err
	}
	in.Engine, err = parseEngineOf(conf)
	return in, err
}

// group reads the fields of membership.
func (v *values) group(streams []Selection) engine.SubscribeOptions {
	o := engine.SubscribeOptions{
		Group: v.text(fieldConsumerGroup), InstanceID: v.text(fieldInstanceID),
		SessionTimeout: v.duration(fieldSessionTimeout), RebalanceTimeout: v.duration(fieldRebalanceTimeout),
		Heartbeat: v.duration(fieldHeartbeatInterval),
	}
	for _, s := range streams {
		o.Selections = append(o.Selections, s.Selection)
	}
	if err := o.Validate(); err != nil {
		v.errs = append(v.errs, err) // it names the field
	}
	return o
}
