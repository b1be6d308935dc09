package kafka

import "github.com/twmb/franz-go/pkg/kgo"

// place names a partition.
type place struct {
	topic     string
	partition int32
}

// byTopic is a place in the form that the client takes.
func (p place) byTopic() map[string][]int32 { return map[string][]int32{p.topic: {p.partition}} }

// state says what becomes of a partition's batches.
type state int

const (
	// owned: batches are delivered, and what is accepted is committed.
	owned state = iota
	// leaving: nothing more is delivered; what is accepted is committed still.
	leaving
	// gone: the partition may be someone else's. Nothing is committed.
	gone
)

// partition is one partition while this member owns it. A partition that comes
// back is a new one, so that batches of the old one change nothing. All of it is
// guarded by consumer.mu.
type partition struct {
	place
	state      state
	checkpoint checkpoint
	// queue holds batches that were not handed out, queued their records.
	queue  []*batch
	queued int
	// inFlight counts records that were handed out and not accepted.
	inFlight int
	paused   bool
}

// batch is records of one partition on their way through the pipeline.
type batch struct {
	partition *partition
	entries   []entry
	bytes     int64
	// extent is its number in the partition's checkpoint.
	extent int
	// attempt counts deliveries before this one.
	attempt int
}

// next is the offset after the batch's last record.
func (b *batch) next() kgo.EpochOffset {
	last := b.entries[len(b.entries)-1].record
	return kgo.EpochOffset{Epoch: last.LeaderEpoch, Offset: last.Offset + 1}
}

// split cuts records of one partition into batches of at most so many messages
// and, but for single records, bytes.
func split(p *partition, records []*kgo.Record, head int64, maxMessages int, maxBytes int64) []*batch {
	var batches []*batch
	var open *batch
	for _, r := range records {
		e := entry{record: r, lag: max(0, head-r.Offset-1)}
		size := e.size()
		if open == nil || len(open.entries) >= maxMessages || open.bytes+size > maxBytes {
			open = &batch{partition: p}
			batches = append(batches, open)
		}
		open.entries = append(open.entries, e)
		open.bytes += size
	}
	return batches
}

// deliverable reports whether the first batch of the queue may be handed out.
func (p *partition) deliverable(limit int) bool {
	return len(p.queue) > 0 && (p.inFlight == 0 || p.inFlight+len(p.queue[0].entries) <= limit)
}
