package config

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// Input is the configuration of the input.
type Input struct {
	// Streams are what to read, none twice.
	Streams []Selection
	// Start is where partitions without a start of their own begin.
	Start Position
	// StopAtEnd ends the input at the heads that it found when it connected.
	StopAtEnd bool
	// MaxBatchBytes and MaxBatchMessages bound one batch.
	MaxBatchBytes    int64
	MaxBatchMessages int
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
`)
}

const inputDescription = `
A message has exactly the bytes of its record. Records of one partition come in the order of their offsets; partitions are read side by side. Nothing is stored of what was read: every start begins at ` + "`start_offset`" + `.

Delivery is at least once. When a part of a batch is rejected, those records are read from the log again and delivered again, with growing pauses, until they are accepted. Batches that were handed out meanwhile are not taken back, so that a record that was rejected may come after later ones. With ` + "`auto_replay_nacks: false`" + ` rejected records are dropped with a warning.

When the stream does not exist, the input waits until it does.

### Metadata

| key | value |
|---|---|
| ` + "`lakestream_stream`" + ` | full name of the stream |
| ` + "`lakestream_partition`" + `, ` + "`lakestream_offset`" + ` | the record's place |
| ` + "`lakestream_key`" + ` | the key, absent when it has none |
| ` + "`lakestream_timestamp_ms`" + `, ` + "`lakestream_timestamp_unix`" + ` | the record's time in milliseconds and in seconds |
| ` + "`lakestream_lag`" + ` | records of the partition after this one, when it was read |
| ` + "`lakestream_tombstone`" + ` | ` + "`true`" + ` for a record without a value, else absent |

Headers become metadata under their own names; of several with one name the last one stays.
`

func inputFields() []*service.ConfigField {
	return []*service.ConfigField{
		service.NewStringListField(fieldStreams).LintRule(lintPattern(selectorPattern, wantSelector)).
			Description("Streams to read: `namespace/name` for all partitions, `namespace/name:0-3` for some, `namespace/name:0:100` for one from an offset on.").
			Example([]string{"github/webhooks"}).Example([]string{"shop/orders:0-3", "shop/returns:0:100"}),
		service.NewStringField(fieldStartOffset).Default("earliest").LintRule(lintPattern(positionPattern, wantPosition)).
			Description("Where to begin: `earliest`, `latest`, an offset, or the first record appended at or after a time: `@2026-11-01T00:00:00Z`, `@1793491200000`, `@-1h`. A place before the first live record means that record.").
			Example("latest").Example("@-1h"),
		service.NewBoolField(fieldStopAtEnd).Default(false).
			Description("End when everything that the streams held at the start was delivered and accepted."),
		size(fieldMaxYieldBatchBytes, "Largest batch, by its keys, values and headers. A larger record comes alone.").Default("1MiB").Advanced(),
		service.NewIntField(fieldMaxYieldBatchMessages).Default(1000).Advanced().LintRule(lintBetween(1, 1_000_000)).
			Description("Most messages of a batch."),
		service.NewBoolField(fieldAutoReplayNacks).Default(true).Advanced().
			Description("Deliver rejected messages again, from the log. Otherwise they are dropped with a warning."),
		engineField(),
	}
}

// ParseInput reads a configuration of InputSpec. Whatever is wrong is
// engine.ErrInvalid and named.
func ParseInput(conf *service.ParsedConfig) (Input, error) {
	v := values{conf: conf}
	in := Input{
		StopAtEnd:        v.flag(fieldStopAtEnd),
		MaxBatchBytes:    v.size(fieldMaxYieldBatchBytes),
		MaxBatchMessages: v.count(fieldMaxYieldBatchMessages),
		AutoReplayNacks:  v.flag(fieldAutoReplayNacks),
	}
	var err error
	if in.Streams, err = parseSelections(v.list(fieldStreams)); err != nil {
		v.fail(err, fieldStreams)
	}
	if in.Start, err = ParsePosition(v.text(fieldStartOffset)); err != nil {
		v.fail(err, fieldStartOffset)
	}
	if err := v.err(); err != nil {
		return Input{}, err
	}
	in.Engine, err = parseEngineOf(conf)
	return in, err
}
