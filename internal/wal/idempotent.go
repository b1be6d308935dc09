package wal

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// foldVersionOfProducers is the fold version from which on streams know producers.
const foldVersionOfProducers = 2

// Idempotent is a batch of producers' records on its way: what of it is still to be
// appended, and what became of the rest. Attempt and Settle take turns until there
// is no attempt; Results are then final. It does no I/O and is not safe for
// concurrent use.
type Idempotent struct {
	batch   *Batch
	results []LogResult
	// pending are the places in batch.Logs that are not settled.
	pending []int
	// attempt is what is being appended, rows the index in the batch of each of
	// its records; nil rows are all of them.
	attempt Batch
	rows    [][]int
	// tried is set after the first attempt.
	tried bool
}

// NewIdempotent returns a batch that is to be appended. Records that can never be
// appended, and those that share their sequence, are listed as invalid at once.
func NewIdempotent(batch *Batch, maxRecordBytes int) (*Idempotent, error) {
	p := &Idempotent{batch: batch, results: make([]LogResult, len(batch.Logs))}
	for i := range batch.Logs {
		l := &batch.Logs[i]
		if l.Producer == "" {
			p.pending = append(p.pending, i)
			continue
		}
		if len(l.Sequences) != len(l.Records) {
			return nil, fmt.Errorf("appending %d records with %d sequences, each needs one: %w", len(l.Records), len(l.Sequences), base.ErrInvalid)
		}
		if err := checkProducer(l.Producer); err != nil {
			p.results[i].Err = err
			continue
		}
		p.pending = append(p.pending, i)
	}
	p.checkWidth()
	p.checkRecords(maxRecordBytes)
	return p, nil
}

func checkProducer(producer string) error {
	if len(producer) > shard.MaxProducerBytes || !utf8.ValidString(producer) {
		return fmt.Errorf("producer %.64q: want UTF-8 of at most %d bytes: %w", producer, shard.MaxProducerBytes, base.ErrInvalid)
	}
	return nil
}

// sender is one producer of one stream.
type sender struct {
	stream   base.StreamID
	producer string
}

func senderOf(l *LogRecords) sender { return sender{stream: l.Log.Stream, producer: l.Producer} }

// checkWidth refuses what of one producer does not fit into its window: the stream
// could not tell all of it from what is there already.
func (p *Idempotent) checkWidth() {
	type width struct{ low, high base.ProducerSeq }
	widths := make(map[sender]width)
	for i := range p.batch.Logs {
		l := &p.batch.Logs[i]
		if l.Producer == "" || len(l.Sequences) == 0 {
			continue
		}
		w, ok := widths[senderOf(l)]
		low, high := slices.Min(l.Sequences), slices.Max(l.Sequences)
		if ok {
			low, high = min(w.low, low), max(w.high, high)
		}
		widths[senderOf(l)] = width{low: low, high: high}
	}
	p.pending = slices.DeleteFunc(p.pending, func(i int) bool {
		w, ok := widths[senderOf(&p.batch.Logs[i])]
		if !ok || w.high-w.low < shard.ProducerWindow {
			return false
		}
		p.results[i].Err = fmt.Errorf("appending sequences %d to %d of producer %q at once, a window holds %d: send smaller batches: %w",
			w.low, w.high, p.batch.Logs[i].Producer, shard.ProducerWindow, base.ErrInvalid)
		return true
	})
}

// checkRecords finds records that can never be appended. What shares a sequence with
// one stays out too: it would claim the sequence.
func (p *Idempotent) checkRecords(maxRecordBytes int) {
	type claim struct {
		sender
		seq base.ProducerSeq
	}
	bad := make(map[claim]error)
	for _, i := range p.pending {
		l := &p.batch.Logs[i]
		for j, seq := range l.Sequences {
			switch {
			case tooLarge(&l.Records[j], maxRecordBytes):
				bad[claim{senderOf(l), seq}] = oversize(&l.Records[j], maxRecordBytes)
			case seq > math.MaxInt64:
				bad[claim{senderOf(l), seq}] = fmt.Errorf("sequence %d: want at most %d: %w", seq, int64(math.MaxInt64), base.ErrInvalid)
			}
		}
	}
	if len(bad) == 0 {
		return
	}
	for _, i := range p.pending {
		l := &p.batch.Logs[i]
		for j, seq := range l.Sequences {
			if err, ok := bad[claim{senderOf(l), seq}]; ok {
				p.results[i].Invalid = append(p.results[i].Invalid, InvalidRecord{Index: j, Err: err})
			}
		}
	}
}

// Results returns what became of each of the batch's logs.
func (p *Idempotent) Results() []LogResult { return p.results }

// Attempt returns what is to be appended now that the shard is in this state, or
// nil when everything is settled. What the stream has already is left out.
func (p *Idempotent) Attempt(s *shard.State) *Batch {
	p.attempt = Batch{Urgent: p.batch.Urgent}
	p.rows = p.rows[:0]
	left := p.pending[:0]
	for _, i := range p.pending {
		l := &p.batch.Logs[i]
		if l.Producer == "" {
			left = append(left, i)
			p.attempt.Logs = append(p.attempt.Logs, *l)
			p.rows = append(p.rows, nil)
			continue
		}
		if s.FoldVersion() < foldVersionOfProducers {
			p.results[i].Err = fmt.Errorf("appending for producer %q: the cluster has fold version %d and needs %d: upgrade every instance: %w",
				l.Producer, s.FoldVersion(), foldVersionOfProducers, base.ErrInvalid)
			continue
		}
		rows := p.filter(s, i)
		if len(rows) == 0 {
			p.results[i].Err = nil
			continue
		}
		left = append(left, i)
		p.attempt.Logs = append(p.attempt.Logs, pick(l, rows))
		p.rows = append(p.rows, rows)
	}
	p.pending = left
	if len(left) == 0 {
		return nil
	}
	return &p.attempt
}

// filter returns which records of a log the stream does not have, and lists the
// others in the result.
func (p *Idempotent) filter(s *shard.State, i int) []int {
	l, result := &p.batch.Logs[i], &p.results[i]
	decided := make(map[int]bool, len(result.Invalid)+len(result.Duplicates))
	for _, invalid := range result.Invalid {
		decided[invalid.Index] = true
	}
	for _, j := range result.Duplicates {
		decided[j] = true
	}
	rows := make([]int, 0, len(l.Records))
	for j, seq := range l.Sequences {
		if decided[j] {
			continue
		}
		switch s.Sequence(l.Log.Stream, l.Producer, uint64(seq)) {
		case shard.SequenceKnown:
			result.Duplicates = append(result.Duplicates, j)
		case shard.SequenceTooOld:
			result.Invalid = append(result.Invalid, InvalidRecord{Index: j, Err: belowWindow(l.Producer, seq)})
		case shard.SequenceNew:
			rows = append(rows, j)
		}
	}
	slices.Sort(result.Duplicates)
	slices.SortFunc(result.Invalid, func(a, b InvalidRecord) int { return cmp.Compare(a.Index, b.Index) })
	return rows
}

func belowWindow(producer string, seq base.ProducerSeq) error {
	return fmt.Errorf("sequence %d of producer %q is older than the %d newest ones that a stream remembers, "+
		"so that nobody can tell whether it is there: let the source commit more often: %w", seq, producer, shard.ProducerWindow, base.ErrInvalid)
}

// pick returns those records of a log that rows list.
func pick(l *LogRecords, rows []int) LogRecords {
	if len(rows) == len(l.Records) {
		return *l
	}
	some := LogRecords{
		Log: l.Log, Producer: l.Producer,
		Records: make([]recordbatch.Record, len(rows)), Sequences: make([]base.ProducerSeq, len(rows)),
	}
	for k, j := range rows {
		some.Records[k], some.Sequences[k] = l.Records[j], l.Sequences[j]
	}
	return some
}

// Settle takes the results of an attempt. Records of which the stream turned out to
// have some stay pending.
func (p *Idempotent) Settle(results []LogResult) {
	left := p.pending[:0]
	for k, i := range p.pending {
		now := results[k]
		if now.again {
			left = append(left, i)
		}
		was := &p.results[i]
		for _, invalid := range now.Invalid { // of records without a producer
			was.Invalid = append(was.Invalid, InvalidRecord{Index: p.row(k, invalid.Index), Err: invalid.Err})
		}
		was.Base, was.Records, was.Revision, was.Time, was.Err = now.Base, now.Records, now.Revision, now.Time, now.Err
	}
	p.pending, p.tried = left, true
}

func (p *Idempotent) row(k, index int) int {
	if p.rows[k] == nil {
		return index
	}
	return p.rows[k][index]
}

// fail gives what is pending an error. It reports whether the error is that of the
// whole batch, nothing of which was appended before.
func (p *Idempotent) fail(err error) bool {
	for _, i := range p.pending {
		p.results[i].Err = err
	}
	return !p.tried
}

// isIdempotent reports whether a batch names a producer.
func (b *Batch) isIdempotent() bool {
	return slices.ContainsFunc(b.Logs, func(l LogRecords) bool { return l.Producer != "" })
}

// appendOnce appends what of a batch its streams do not have yet. Another writer may
// append the same meanwhile: then the rest is tried again, which ends because what a
// stream has only grows.
func (w *Writer) appendOnce(ctx context.Context, batch *Batch) error {
	p, err := NewIdempotent(batch, w.opts.MaxRecordBytes)
	if err != nil {
		return err
	}
	for {
		var attempt *Batch
		w.opts.Log.Inspect(func(s *shard.State) { attempt = p.Attempt(s) })
		if attempt == nil {
			break
		}
		if err := w.append(ctx, attempt); err != nil {
			if p.fail(err) {
				return err
			}
			break
		}
		p.Settle(attempt.Results)
	}
	batch.Results = append(batch.Results[:0], p.Results()...)
	return nil
}
