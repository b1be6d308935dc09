package wal

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

const (
	// groupRecordBytes is the most that a group adds to the commit record beside
	// its producer and its intervals: tags, lengths and one block.
	groupRecordBytes = 24
	// intervalRecordBytes is the most that an interval of sequences adds.
	intervalRecordBytes = 12
	// blockIndexBytes is the most that a further block adds to its group.
	blockIndexBytes = 3
)

// producerGroup is the records of one producer in one append, which a stream takes
// whole or not at all.
type producerGroup struct {
	producer string
	// intervals hold the sequences: ascending and apart.
	intervals []interval
}

// interval is the half-open range [first, end) of sequences.
type interval struct{ first, end base.ProducerSeq }

// measureGroups gathers the sequences of each producer. Those of records that are
// invalid are not claimed.
func (a *Append) measureGroups(batch *Batch) error {
	a.groups = resize(a.groups, len(batch.Logs))
	if !batch.isIdempotent() {
		return nil
	}
	bySender := make(map[sender]*producerGroup)
	for i := range batch.Logs {
		l := &batch.Logs[i]
		if l.Producer == "" || len(l.Records) == len(a.results[i].Invalid) {
			continue
		}
		g := bySender[senderOf(l)]
		if g == nil {
			g = &producerGroup{producer: l.Producer}
			bySender[senderOf(l)] = g
			a.groupBytes += groupRecordBytes + len(g.producer)
		}
		a.groups[i] = g
		a.groupBytes += blockIndexBytes
		g.claim(l.Sequences, a.results[i].Invalid)
	}
	for _, g := range bySender {
		g.merge()
		a.groupBytes += len(g.intervals) * intervalRecordBytes
	}
	if a.groupBytes > maxGroupBytes {
		return fmt.Errorf("appending sequences of %d producers that are scattered too widely for one commit record: send smaller batches: %w",
			len(bySender), base.ErrInvalid)
	}
	return nil
}

// claim takes the sequences of valid records in. Mostly one follows on the other.
func (g *producerGroup) claim(sequences []base.ProducerSeq, invalid []InvalidRecord) {
	for j, seq := range sequences {
		if len(invalid) > 0 && invalid[0].Index == j {
			invalid = invalid[1:]
			continue
		}
		if n := len(g.intervals); n > 0 && g.intervals[n-1].end == seq {
			g.intervals[n-1].end++
			continue
		}
		g.intervals = append(g.intervals, interval{first: seq, end: seq + 1})
	}
}

// merge puts the intervals in order and joins those that touch.
func (g *producerGroup) merge() {
	slices.SortFunc(g.intervals, func(a, b interval) int { return cmp.Compare(a.first, b.first) })
	merged := g.intervals[:0]
	for _, q := range g.intervals {
		if n := len(merged); n > 0 && merged[n-1].end >= q.first {
			merged[n-1].end = max(merged[n-1].end, q.end)
			continue
		}
		merged = append(merged, q)
	}
	g.intervals = merged
}

// groups returns what the commit record says of the object's producers.
func (o *Object) groups() []*commitpb.ProducerGroup {
	var all []*commitpb.ProducerGroup
	places := make(map[*producerGroup]*commitpb.ProducerGroup)
	for i := range o.blocks {
		g := o.blocks[i].group
		if g == nil {
			continue
		}
		record, ok := places[g]
		if !ok {
			record = &commitpb.ProducerGroup{Producer: g.producer}
			for _, q := range g.intervals {
				record.First = append(record.First, uint64(q.first))
				record.Count = append(record.Count, uint64(q.end-q.first))
			}
			places[g] = record
			all = append(all, record)
		}
		record.Block = append(record.Block, uint32(i))
	}
	return all
}
