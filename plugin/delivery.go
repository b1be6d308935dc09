package plugin

import (
	"context"
	"errors"
	"slices"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// delivery is one batch on its way through the pipeline.
type delivery struct {
	session   *session
	partition *partition
	messages  service.MessageBatch // nil once handed out
	// offsets of the records, ascending.
	offsets []engine.Offset
	// attempt counts deliveries of these records before this one.
	attempt int
}

func newDelivery(s *session, p *partition, b builder, records []engine.Positioned, head engine.Offset, attempt int) *delivery {
	d := &delivery{
		session: s, partition: p, attempt: attempt,
		messages: make(service.MessageBatch, len(records)), offsets: make([]engine.Offset, len(records)),
	}
	for i := range records {
		d.messages[i] = b.message(&records[i], head)
		d.offsets[i] = records[i].Offset
	}
	return d
}

// acknowledge is the batch's service.AckFunc. Rejected records are read from the
// log and delivered again, or dropped.
func (d *delivery) acknowledge(_ context.Context, err error) error {
	d.messages = nil
	if err == nil {
		d.session.settle()
		return nil
	}
	rejected := d.rejected(err)
	if !d.session.replay {
		d.session.logger.Warn("dropping rejected records", d.partition.label(), "records", len(rejected),
			"first_offset", int64(rejected[0]), "error", err)
		d.session.settle()
		return nil
	}
	d.session.logger.Debug("delivering rejected records again", d.partition.label(), "records", len(rejected),
		"first_offset", int64(rejected[0]), "error", err)
	again := replay{session: d.session, partition: d.partition, offsets: rejected, attempt: d.attempt + 1}
	d.session.start(again.run)
	return nil
}

// rejected returns the offsets of the records that were not accepted. Where the
// error tells of single messages, those are it, provided that it tells of all: a
// pipeline may have joined messages into one, which then stands for others too.
func (d *delivery) rejected(err error) []engine.Offset {
	var batch *service.BatchError
	if !errors.As(err, &batch) || batch.IndexedErrors() == 0 {
		return d.offsets
	}
	failed := make(map[engine.Offset]bool, len(d.offsets))
	// Messages are told apart by where they are from, not by their indexes.
	batch.WalkMessages(func(_ int, m *service.Message, err error) bool { //nolint:staticcheck // harmful where indexes are believed
		if offset, ok := d.offsetOf(m); ok {
			failed[offset] = failed[offset] || err != nil
		}
		return true
	})
	var rejected []engine.Offset
	for _, offset := range d.offsets {
		hasFailed, told := failed[offset]
		if !told {
			return d.offsets
		}
		if hasFailed {
			rejected = append(rejected, offset)
		}
	}
	if len(rejected) == 0 {
		return d.offsets
	}
	return rejected
}

// offsetOf returns which of the delivery's records a message came from, as its
// metadata tells.
func (d *delivery) offsetOf(m *service.Message) (engine.Offset, bool) {
	value, _ := m.MetaGetMut(metaOffset)
	offset, ok := value.(int64)
	if !ok {
		return 0, false
	}
	if stream, _ := m.MetaGetMut(metaStream); stream != d.partition.stream.Name() {
		return 0, false
	}
	if number, _ := m.MetaGetMut(metaPartition); number != int(d.partition.number) {
		return 0, false
	}
	_, ok = slices.BinarySearch(d.offsets, engine.Offset(offset))
	return engine.Offset(offset), ok
}
