package kafka

import (
	"context"
	"errors"

	"github.com/redpanda-data/benthos/v4/public/service"
)

// messages makes the messages of a batch. A batch that is delivered again gets new
// ones, whatever a pipeline did to the first.
func (b *batch) messages() service.MessageBatch {
	all := make(service.MessageBatch, len(b.entries))
	for i := range b.entries {
		all[i] = b.entries[i].message()
	}
	return all
}

// acknowledge returns the batch's service.AckFunc.
func (c *consumer) acknowledge(b *batch) service.AckFunc {
	return func(_ context.Context, err error) error {
		if err == nil {
			c.accept(b)
			return nil
		}
		rejected := b.rejected(err)
		if !c.conf.AutoReplayNacks {
			c.logger.With("topic", b.partition.topic, "partition", b.partition.partition, "messages", len(rejected),
				"first_offset", rejected[0].record.Offset).Warnf("dropping rejected messages: %v", err)
			c.accept(b)
			return nil
		}
		c.reject(b, rejected)
		return nil
	}
}

// rejected returns the entries that were not accepted. Where the error tells of
// single messages, those are it, provided that it tells of all: a pipeline may have
// joined messages into one, which then stands for others too.
func (b *batch) rejected(err error) []entry {
	var of *service.BatchError
	if !errors.As(err, &of) || of.IndexedErrors() == 0 {
		return b.entries
	}
	failed := make(map[int64]bool, len(b.entries))
	// Messages are told apart by where they are from, not by their indexes.
	of.WalkMessages(func(_ int, m *service.Message, err error) bool { //nolint:staticcheck // harmful where indexes are believed
		if offset, ok := b.offsetOf(m); ok {
			failed[offset] = failed[offset] || err != nil
		}
		return true
	})
	var rejected []entry
	for _, e := range b.entries {
		hasFailed, told := failed[e.record.Offset]
		if !told {
			return b.entries
		}
		if hasFailed {
			rejected = append(rejected, e)
		}
	}
	if len(rejected) == 0 {
		return b.entries
	}
	return rejected
}

// offsetOf returns which record a message came from, as its metadata tells.
func (b *batch) offsetOf(m *service.Message) (int64, bool) {
	value, _ := m.MetaGetMut(metaOffset)
	offset, ok := value.(int64)
	if !ok {
		return 0, false
	}
	topic, _ := m.MetaGetMut(metaTopic)
	number, _ := m.MetaGetMut(metaPartition)
	return offset, topic == b.partition.topic && number == int(b.partition.partition)
}
