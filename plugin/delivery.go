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
	partition *partition
	messages  service.MessageBatch // nil once handed out
	// offsets of the records, ascending.
	offsets []engine.Offset
	// batch is what becomes consumed when these records are accepted: of a second
	// delivery, all that the first one had.
	batch engine.OffsetRange
	// attempt counts deliveries of these records before this one.
	attempt int
}

func newDelivery(p *partition, records []engine.Positioned, head engine.Offset, attempt int) *delivery {
	d := &delivery{
		partition: p, attempt: attempt,
		messages: make(service.MessageBatch, len(records)), offsets: make([]engine.Offset, len(records)),
	}
	for i := range records {
		d.messages[i] = p.builder.message(&records[i], head)
		d.offsets[i] = records[i].Offset
	}
	return d
}

// accept notes that a batch was accepted. When the partition was let go meanwhile,
// it is delivered again by its next owner.
func (p *partition) accept(batch engine.OffsetRange) {
	if err := p.claim.Cursor().Ack(batch); err != nil && !errors.Is(err, engine.ErrClosed) {
		p.session.logger.Error("an accepted batch could not be noted and is delivered again after a restart", label(p.place), "error", err)
	}
	p.window.leave()
}

// acknowledge is the batch's service.AckFunc. Rejected records are read from the
// log and delivered again, or dropped.
func (d *delivery) acknowledge(_ context.Context, err error) error {
	d.messages = nil
	p, s := d.partition, d.partition.session
	if err == nil {
		p.accept(d.batch)
		return nil
	}
	rejected := d.rejected(err)
	if !s.replay {
		s.logger.Warn("dropping rejected records", label(p.place), "records", len(rejected),
			"first_offset", int64(rejected[0]), "error", err)
		p.accept(d.batch)
		return nil
	}
	s.logger.Debug("delivering rejected records again", label(p.place), "records", len(rejected),
		"first_offset", int64(rejected[0]), "error", err)
	again := replay{partition: p, batch: d.batch, offsets: rejected, attempt: d.attempt + 1}
	if !s.start(again.run) {
		p.window.leave()
	}
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
	if stream, _ := m.MetaGetMut(metaStream); stream != d.partition.claim.Stream.Name() {
		return 0, false
	}
	if number, _ := m.MetaGetMut(metaPartition); number != int(d.partition.claim.Partition) {
		return 0, false
	}
	_, ok = slices.BinarySearch(d.offsets, engine.Offset(offset))
	return engine.Offset(offset), ok
}
