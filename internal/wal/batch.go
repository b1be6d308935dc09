package wal

import (
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

// LogRecords is what an append brings for one log. The records are read only
// until Append returns.
type LogRecords struct {
	Log     base.LogID
	Records []recordbatch.Record
	// Producer, when set, makes the append idempotent: a stream takes each
	// Sequences[i] of the producer, that of Records[i], once. Records of a batch
	// with one sequence belong together and land together. A batch may bring one
	// producer's records for several logs of a stream; all that are not there
	// yet land at once, or none do.
	Producer  string
	Sequences []base.ProducerSeq
}

// LogResult is what became of one LogRecords.
type LogResult struct {
	// Base is the offset of the first record that was appended. The others
	// follow in order, without those that Invalid and Duplicates list.
	Base base.Offset
	// Records is how many were appended.
	Records int
	// Revision and Time are the commit and its append time.
	Revision base.Revision
	Time     base.Millis
	// Invalid lists records that can never be appended, by index. Nil when
	// there are none.
	Invalid []InvalidRecord
	// Duplicates lists, by ascending index, records whose sequences the stream
	// had already. Nothing was added for them, and their offsets are not told.
	Duplicates []int
	// Err is set when none is known to have been appended: base.ErrNotFound for
	// a log that does not exist, base.ErrFenced for one that takes no appends,
	// base.ErrUnknown when they may have been. An error of no class is definite.
	Err error
	// again says that the stream had some of the sequences: the others are to be
	// appended without them.
	again bool
}

// InvalidRecord is a record that was left out of an append.
type InvalidRecord struct {
	// Index is its place in LogRecords.Records.
	Index int
	// Err matches base.ErrInvalid.
	Err error
}

// Batch is one call's records. Using one again saves its allocations.
type Batch struct {
	Logs []LogRecords
	// Urgent says that nothing will be appended beside this batch, so that
	// waiting for more would save nothing.
	Urgent bool
	// Results is set by Append: one for each of Logs, in the same order.
	Results []LogResult
}

// Append is a batch on its way through a Core.
type Append struct {
	parts []part
	// groups has for each of the batch's logs its producer's group, or nil.
	groups  []*producerGroup
	runs    []recordbatch.Run
	staging *buffer
	results []LogResult
	bytes   int
	records int
	urgent  bool
	// groupBytes is what the groups add to a commit record at most.
	groupBytes int
	// weight is what the append holds of the buffer.
	weight int64
	// done gets one value when results are final.
	done chan struct{}
	// reusable is set when no goroutine but the caller's refers to it.
	reusable bool
}

// part is an append's records for one log, linked to the next part of that log
// in the same object.
type part struct {
	owner   *Append
	result  int // index in owner.results
	log     base.LogID
	runs    []recordbatch.Run
	records int
	first   int // position of the first record in the block
	next    *part
	// group is set for records of an idempotent producer, which stand in a block
	// of their own.
	group *producerGroup
}

// Encode measures and encodes a batch. Records over maxRecordBytes (key, value
// and headers together) are left out and listed in the results. A batch of no
// log, of more logs than an object may hold, of more than MaxAppendBytes, or with
// sequences that no commit record can hold is base.ErrInvalid.
func Encode(batch *Batch, maxRecordBytes int) (*Append, error) {
	a := newAppend()
	if err := a.measure(batch, maxRecordBytes); err != nil {
		a.recycle()
		return nil, err
	}
	a.encode(batch)
	return a, nil
}

// Results returns what became of the append, once it was resolved.
func (a *Append) Results() []LogResult { return a.results }

// measure sets bytes, an upper bound, and finds the invalid records.
func (a *Append) measure(batch *Batch, maxRecordBytes int) error {
	if len(batch.Logs) == 0 || len(batch.Logs) > MaxBlocks {
		return fmt.Errorf("appending to %d logs at once, 1 to %d can be: %w", len(batch.Logs), MaxBlocks, base.ErrInvalid)
	}
	a.urgent = batch.Urgent
	a.results = resize(a.results, len(batch.Logs))
	for i := range batch.Logs {
		records := batch.Logs[i].Records
		for j := range records {
			n := recordbatch.EncodedBound(&records[j])
			if n > maxRecordBytes && tooLarge(&records[j], maxRecordBytes) {
				a.results[i].Invalid = append(a.results[i].Invalid, InvalidRecord{Index: j, Err: oversize(&records[j], maxRecordBytes)})
				continue
			}
			a.bytes += n
			a.records++
		}
	}
	if a.bytes > MaxAppendBytes {
		return fmt.Errorf("appending %d bytes at once, at most %d can be: %w", a.bytes, MaxAppendBytes, base.ErrInvalid)
	}
	return a.measureGroups(batch)
}

func tooLarge(r *recordbatch.Record, limit int) bool { return recordBytes(r) > limit }

func oversize(r *recordbatch.Record, limit int) error {
	return fmt.Errorf("record of %d bytes, at most %d are taken: %w", recordBytes(r), limit, base.ErrInvalid)
}

func recordBytes(r *recordbatch.Record) int {
	n := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}

// encode turns the valid records into runs in a staging buffer.
func (a *Append) encode(batch *Batch) {
	a.staging = stagingPool.get(a.bytes)
	for i := range batch.Logs {
		p := part{owner: a, result: i, log: batch.Logs[i].Log, group: a.groups[i]}
		start := len(a.runs)
		records, skipped := batch.Logs[i].Records, 0
		for _, invalid := range a.results[i].Invalid {
			a.encodeRuns(records[skipped:invalid.Index])
			skipped = invalid.Index + 1
		}
		a.encodeRuns(records[skipped:])
		for _, run := range a.runs[start:] {
			p.records += run.Records
		}
		if p.records > 0 {
			p.first = start // for assignRuns
			a.parts = append(a.parts, p)
		}
	}
	a.assignRuns()
}

// assignRuns gives each part its runs, which follow on each other, now that
// a.runs no longer moves.
func (a *Append) assignRuns() {
	end := len(a.runs)
	for i := len(a.parts) - 1; i >= 0; i-- {
		p := &a.parts[i]
		p.runs, end = a.runs[p.first:end], p.first
		p.first = 0
	}
}

func (a *Append) encodeRuns(records []recordbatch.Record) {
	for len(records) > 0 {
		var run recordbatch.Run
		a.staging.data, run = recordbatch.AppendRun(a.staging.data, records)
		a.runs = append(a.runs, run)
		records = records[run.Records:]
	}
}

// fail makes err the result of every part.
func (a *Append) fail(err error) {
	for i := range a.parts {
		a.results[a.parts[i].result].Err = err
	}
}
