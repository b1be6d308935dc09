package prepare

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/decode"
	"github.com/lakestream-go/lakestream/internal/materialization/write"
)

// pass decodes and writes all sources once under one landed schema.
type pass struct {
	*preparer
	table *materialization.Table
	// stopAtNovel ends the pass with errNovel when the schema can grow.
	stopAtNovel bool
	// source is the index of the source under way.
	source int

	decoder *decode.Decoder
	dead    *decode.DeadLetters
	// writers are all that made files, for removal when the pass fails.
	writers []*write.Writer
}

func (p *preparer) newPass(table *materialization.Table, stopAtNovel bool) *pass {
	return &pass{preparer: p, table: table, stopAtNovel: stopAtNovel}
}

// run returns one Prepared a source, or removes what it wrote.
func (p *pass) run(ctx context.Context) (_ []materialization.Prepared, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, p.abort(ctx))
		}
	}()
	p.decoder, err = decode.New(p.table.Schema, p.request.System, p.request.Limits)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", p.table.Ident, err)
	}
	prepared := make([]materialization.Prepared, 0, len(p.request.Sources))
	for i, source := range p.request.Sources {
		p.source = i
		one, err := p.prepare(ctx, source)
		if err != nil {
			return nil, fmt.Errorf("preparing %s of log %s: %w", source.Records.Range(), source.Log, err)
		}
		prepared = append(prepared, one)
	}
	return prepared, nil
}

func (p *pass) abort(ctx context.Context) error {
	var errs []error
	for _, w := range p.writers {
		errs = append(errs, w.Abort(ctx))
	}
	return errors.Join(errs...)
}

// output is where the rows of one source go, each writer nil until needed.
type output struct {
	source     Source
	main, dead *write.Writer
	deadTable  *materialization.Table
}

func (p *pass) prepare(ctx context.Context, source Source) (materialization.Prepared, error) {
	out := &output{source: source}
	wanted := source.Records.Range()
	next := wanted.Start
	err := source.Records.Each(func(record *recordbatch.Positioned) error {
		if record.Offset != next || next >= wanted.End {
			return fmt.Errorf("%w: the source yields offset %d where %d should be", base.ErrCorrupt, record.Offset, next)
		}
		next++
		if err := checkNow(ctx, record.Offset); err != nil {
			return err
		}
		return p.record(ctx, out, record)
	})
	if err == nil && next != wanted.End {
		err = fmt.Errorf("%w: the source ends at offset %d", base.ErrCorrupt, next)
	}
	if err != nil {
		return materialization.Prepared{}, err
	}
	return p.finish(ctx, out)
}

// record makes a row of a record in one of the tables.
func (p *pass) record(ctx context.Context, out *output, record *recordbatch.Positioned) error {
	verdict := p.decoder.Append(out.source.Log.Partition, record)
	if p.stopAtNovel && p.decoder.Novel() {
		return errNovel
	}
	if !verdict.Landed() {
		return p.deadRecord(ctx, out, record, verdict)
	}
	if p.decoder.Bytes() < p.request.batchBytes() && p.decoder.Rows() < maxBatchRows {
		return nil
	}
	return p.flush(ctx, out)
}

func (p *pass) deadRecord(ctx context.Context, out *output, record *recordbatch.Positioned, verdict decode.Verdict) error {
	if out.deadTable == nil {
		if err := p.openDeadLetter(ctx, out); err != nil {
			return err
		}
	}
	p.dead.Append(out.source.Log.Partition, record, verdict, base.MillisOf(p.request.Clock.Now()))
	if p.dead.Bytes() < p.request.batchBytes() && p.dead.Rows() < maxBatchRows {
		return nil
	}
	return p.flushDead(ctx, out)
}

func (p *pass) openDeadLetter(ctx context.Context, out *output) error {
	table, err := p.deadLetter(ctx)
	if err != nil {
		return err
	}
	if p.dead == nil {
		if p.dead, err = decode.NewDeadLetters(table.Schema); err != nil {
			return fmt.Errorf("table %s: %w", table.Ident, err)
		}
	}
	out.deadTable = table
	return nil
}

// newWriter makes a writer of files for one range under a table's location.
func (p *pass) newWriter(table *materialization.Table, source Source) *write.Writer {
	offsets := source.Records.Range()
	w := write.New(p.tables, func() string {
		p.files++
		return fmt.Sprintf("%s/data/%s-%s-%d-%d-%d.parquet", strings.TrimRight(table.Location, "/"),
			p.request.FilePrefix, source.Log, offsets.Start, offsets.End, p.files)
	}, write.Options{TargetFileBytes: p.request.TargetFileBytes})
	p.writers = append(p.writers, w)
	return w
}

func (p *pass) flush(ctx context.Context, out *output) error {
	if p.decoder.Rows() == 0 {
		return nil
	}
	if out.main == nil {
		out.main = p.newWriter(p.table, out.source)
	}
	return writeBatch(ctx, out.main, p.decoder.Batch())
}

func (p *pass) flushDead(ctx context.Context, out *output) error {
	if p.dead == nil || p.dead.Rows() == 0 {
		return nil
	}
	if out.dead == nil {
		out.dead = p.newWriter(out.deadTable, out.source)
	}
	return writeBatch(ctx, out.dead, p.dead.Batch())
}

func writeBatch(ctx context.Context, to *write.Writer, batch arrow.RecordBatch) error {
	defer batch.Release()
	return to.Write(ctx, batch)
}

// finish makes the files of a source durable and binds them to its range.
func (p *pass) finish(ctx context.Context, out *output) (materialization.Prepared, error) {
	prepared := materialization.Prepared{
		Log: out.source.Log, Range: out.source.Records.Range(),
		TableUUID: p.table.UUID, SchemaID: p.table.Schema.ID, SpecID: p.table.SpecID,
	}
	if err := p.flush(ctx, out); err != nil {
		return prepared, err
	}
	if err := p.flushDead(ctx, out); err != nil {
		return prepared, err
	}
	p.request.crash(CrashBeforeFiles)
	var err error
	if out.main != nil {
		if prepared.Main, err = out.main.Close(); err != nil {
			return prepared, err
		}
	}
	if out.dead != nil {
		prepared.DeadLetterUUID = out.deadTable.UUID
		if prepared.DeadLetter, err = out.dead.Close(); err != nil {
			return prepared, err
		}
	}
	p.request.crash(CrashAfterFiles)
	return prepared, nil
}
