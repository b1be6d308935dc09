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
	// accepted is the offset before what was not accepted, committed the one that
	// the group is known to have committed.
	accepted, committed int64
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

// limits bound one batch: its messages, but for a single record its bytes, and how
// far its offsets are apart.
type limits struct {
	messages    int
	bytes, span int64
}

// split cuts records of one partition into batches.
func split(p *partition, records []*kgo.Record, head int64, most limits) []*batch {
	var batches []*batch
	var open *batch
	for _, r := range records {
		e := entry{record: r, lag: max(0, head-r.Offset-1)}
		size := e.size()
		if open == nil || len(open.entries) >= most.messages || open.bytes+size > most.bytes ||
			r.Offset-open.entries[0].record.Offset >= most.span {
			open = &batch{partition: p}
			batches = append(batches, open)
		}
		open.entries = append(open.entries, e)
		open.bytes += size
	}
	return batches
}

// deliverable reports whether the first batch of the queue may be handed out: at most
// limit messages are in flight then, and none is further beyond what is committed than
// window, so that whatever a restart delivers again lies within one. Without a group
// window is 0, and does not count.
func (p *partition) deliverable(limit int, window int64) bool {
	switch {
	case len(p.queue) == 0:
		return false
	case p.inFlight == 0 && p.accepted <= p.committed:
		return true // offsets may have gaps wider than the window
	case window > 0 && p.queue[0].next().Offset-p.committed > window:
		return false
	default:
		return p.inFlight == 0 || p.inFlight+len(p.queue[0].entries) <= limit
	}
}
