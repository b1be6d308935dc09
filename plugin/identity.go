package plugin

import (
	"fmt"
	"strconv"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

// Names of the metadata that identifies a message of Kafka.
const (
	metaKafkaTopic     = "kafka_topic"
	metaKafkaPartition = "kafka_partition"
	metaKafkaOffset    = "kafka_offset"
)

// identity tells who sent a message and as which of theirs. It is safe for
// concurrent use.
type identity struct {
	mode               config.IdempotencyMode
	source             string
	producer, sequence field
}

func newIdentity(conf *config.Idempotency) identity {
	return identity{mode: conf.Mode, source: conf.Source, producer: newField(conf.Producer), sequence: newField(conf.Sequence)}
}

// isOn reports whether messages have an identity.
func (d *identity) isOn() bool { return d.mode != config.IdempotencyOff }

// claim is the identity of a message. The zero claim is none.
type claim struct {
	producer string
	sequence engine.ProducerSeq
}

// of returns the identity of a message. Mostly it is of the producer of the one
// before, whose text is used again.
func (d *identity) of(m *service.Message, before claim) (claim, error) {
	switch d.mode {
	case config.IdempotencyKafka:
		return d.ofKafka(m, before)
	case config.IdempotencyExplicit:
		return d.explicit(m, before)
	case config.IdempotencyOff:
	}
	return claim{}, nil
}

func (d *identity) ofKafka(m *service.Message, before claim) (claim, error) {
	topic, err := kafkaMeta(m, metaKafkaTopic)
	if err != nil {
		return claim{}, err
	}
	partition, err := kafkaMeta(m, metaKafkaPartition)
	if err != nil {
		return claim{}, err
	}
	offset, err := kafkaMeta(m, metaKafkaOffset)
	if err != nil {
		return claim{}, err
	}
	sequence, err := parseSequence(offset)
	if err != nil {
		return claim{}, fmt.Errorf("metadata %s: %w", metaKafkaOffset, err)
	}
	text := make([]byte, 0, len(d.source)+len(topic)+len(partition)+2) // two slashes
	text = append(append(append(append(append(text, d.source...), '/'), topic...), '/'), partition...)
	return claimOf(text, sequence, before), nil
}

// kafkaMeta returns one of the three names, as text.
func kafkaMeta(m *service.Message, key string) (string, error) {
	value, ok := m.MetaGetMut(key)
	if !ok {
		return "", fmt.Errorf("idempotency.mode kafka needs the metadata %s, which the message does not have: read it from an input that sets it, "+
			"keep it in the pipeline, or use another mode: %w", key, engine.ErrInvalid)
	}
	return bloblang.ValueToString(value), nil
}

func (d *identity) explicit(m *service.Message, before claim) (claim, error) {
	producer, err := d.producer.of(m)
	if err != nil {
		return claim{}, fmt.Errorf("resolving idempotency.producer: %w", err)
	}
	if len(producer) == 0 {
		return claim{}, fmt.Errorf("idempotency.producer resolves to nothing: give every message a producer: %w", engine.ErrInvalid)
	}
	text, err := d.sequence.of(m)
	if err != nil {
		return claim{}, fmt.Errorf("resolving idempotency.sequence: %w", err)
	}
	sequence, err := parseSequence(string(text))
	if err != nil {
		return claim{}, fmt.Errorf("idempotency.sequence: %w", err)
	}
	return claimOf(producer, sequence, before), nil
}

func claimOf(producer []byte, sequence engine.ProducerSeq, before claim) claim {
	if before.producer == string(producer) { // compares without making a string
		return claim{producer: before.producer, sequence: sequence}
	}
	return claim{producer: string(producer), sequence: sequence}
}

func parseSequence(text string) (engine.ProducerSeq, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q: want a number from 0 to 2^63-1: %w", text, engine.ErrInvalid)
	}
	return engine.ProducerSeq(n), nil
}
