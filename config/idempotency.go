package config

import (
	"errors"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// IdempotencyMode says where the identity of a message comes from.
type IdempotencyMode string

// Modes of idempotency.
const (
	// IdempotencyOff appends whatever is delivered.
	IdempotencyOff IdempotencyMode = "off"
	// IdempotencyKafka takes topic, partition and offset of the message's metadata.
	IdempotencyKafka IdempotencyMode = "kafka"
	// IdempotencyExplicit takes what the fields producer and sequence resolve to.
	IdempotencyExplicit IdempotencyMode = "explicit"
)

// Idempotency says how the output tells a message that it appended already.
type Idempotency struct {
	Mode IdempotencyMode
	// Source is the source cluster: the first part of the producer in mode kafka.
	Source string
	// Producer and Sequence resolve for each message in mode explicit.
	Producer, Sequence *service.InterpolatedString
}

const (
	wantExplicit     = "want producer and sequence in mode explicit"
	wantModeExplicit = "producer and sequence are of mode explicit: set it, or leave them out"
	wantModeKafka    = "source is of mode kafka: set it, or make it part of the producer"
)

// lintIdempotency complains about fields that do not belong together.
const lintIdempotency = `let mode = this.mode.or("off").string().lowercase()
let named = [ this.producer.or(""), this.sequence.or("") ].filter(text -> text != "").length()
root = match {
  $mode == "explicit" && $named < 2 => [ "` + wantExplicit + `" ]
  $mode != "explicit" && $named > 0 => [ "` + wantModeExplicit + `" ]
  $mode != "kafka" && this.source.or("") != "" => [ "` + wantModeKafka + `" ]
  _ => []
}`

func idempotencyField() *service.ConfigField {
	return service.NewObjectField(fieldIdempotency,
		service.NewStringField(fieldMode).Default(string(IdempotencyOff)).LintRule(lintChoice(idempotencyModes()...)).
			Description("`off` appends whatever is delivered. `kafka` tells messages by the metadata `kafka_topic`, `kafka_partition` and `kafka_offset`, as inputs that read Kafka set it. `explicit` tells them by `producer` and `sequence`."),
		service.NewStringField(fieldSource).Default("").
			Description("In mode `kafka`: the cluster that the topics are in. Another text makes other producers: change it when a topic was deleted and created again, whose offsets then begin anew.").
			Example("kafka-eu"),
		service.NewInterpolatedStringField(fieldProducer).Default("").
			Description("In mode `explicit`: who numbers the message, at most 512 bytes. A stream knows at most 10,000.").
			Example(`${! metadata("lakestream_stream") }/${! metadata("lakestream_partition") }`),
		service.NewInterpolatedStringField(fieldSequence).Default("").
			Description("In mode `explicit`: the message's number, from 0. It is the same whenever the message is delivered again, and ascends, though not without gaps.").
			Example(`${! metadata("lakestream_offset") }`),
	).Advanced().LintRule(lintIdempotency).
		Description("Appends each message of a source once, however often it is delivered.")
}

func idempotencyModes() []string {
	return []string{string(IdempotencyOff), string(IdempotencyKafka), string(IdempotencyExplicit)}
}

func (v *values) idempotency() Idempotency {
	id := Idempotency{
		Mode:     IdempotencyMode(v.choice(idempotencyModes(), fieldIdempotency, fieldMode)),
		Source:   v.text(fieldIdempotency, fieldSource),
		Producer: v.interpolated(fieldIdempotency, fieldProducer),
		Sequence: v.interpolated(fieldIdempotency, fieldSequence),
	}
	named := 0
	for _, text := range []*service.InterpolatedString{id.Producer, id.Sequence} {
		if text == nil {
			continue
		}
		if static, ok := text.Static(); !ok || static != "" {
			named++
		}
	}
	switch {
	case id.Mode == IdempotencyExplicit && named < 2:
		v.fail(errors.New(wantExplicit), fieldIdempotency)
	case id.Mode != IdempotencyExplicit && named > 0:
		v.fail(errors.New(wantModeExplicit), fieldIdempotency)
	case id.Mode != IdempotencyKafka && id.Source != "":
		v.fail(errors.New(wantModeKafka), fieldIdempotency, fieldSource)
	}
	return id
}
