package prepare

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/document"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

// Prepare makes the files of each source and returns what became of each, in
// order; a range without rows has no files. Every file is durable then.
//
// It errors with base.ErrForeign when a table belongs to someone else, with
// base.ErrInvalid when a table's columns cannot be filled, with base.ErrCorrupt
// when a source does not yield the offsets of its range, and with the errors of
// tables and sources. Nothing happened then, except that a table may have been
// created or have new columns. Concurrent calls for one table are safe.
func Prepare(ctx context.Context, tables materialization.Tables, request Request) ([]materialization.Prepared, error) {
	if err := request.validate(); err != nil {
		return nil, err
	}
	p := &preparer{tables: tables, request: request}
	inferred := schema.NewInference(request.Limits)
	table, err := p.load(ctx, request.Main, roleMain)
	switch {
	case errors.Is(err, base.ErrNotFound):
		return p.inferAndWrite(ctx, nil, inferred, request.Sources)
	case err != nil:
		return nil, err
	}
	if table, err = p.land(ctx, table, inferred); err != nil {
		return nil, err
	}
	pass := p.newPass(table, true)
	prepared, err := pass.run(ctx)
	if errors.Is(err, errNovel) {
		// What earlier sources hold has its columns.
		return p.inferAndWrite(ctx, table, inferred, request.Sources[pass.source:])
	}
	return prepared, err
}

// preparer is one call of Prepare.
type preparer struct {
	tables  materialization.Tables
	request Request
	// files counts the files that were started, so that no name comes twice.
	files int
	dead  *materialization.Table
}

// inferAndWrite infers from some sources, lands what they need on the table,
// which is nil when there is none, and writes all sources.
func (p *preparer) inferAndWrite(ctx context.Context, table *materialization.Table, inferred *schema.Inference, from []Source) ([]materialization.Prepared, error) {
	for _, source := range from {
		if err := infer(ctx, inferred, source.Records); err != nil {
			return nil, fmt.Errorf("inferring from log %s: %w", source.Log, err)
		}
	}
	landed, err := p.land(ctx, table, inferred)
	if err != nil {
		return nil, err
	}
	return p.newPass(landed, false).run(ctx)
}

func infer(ctx context.Context, inferred *schema.Inference, records recordbatch.Source) error {
	var doc document.Document
	return records.Each(func(record *recordbatch.Positioned) error {
		if record.Value != nil && doc.Parse(record.Value) == nil {
			inferred.Add(&doc)
		}
		return checkNow(ctx, record.Offset)
	})
}

// checkNow returns the context's error, now and then: the check costs a lock.
func checkNow(ctx context.Context, offset base.Offset) error {
	const every = 256
	if offset%every != 0 {
		return nil
	}
	return ctx.Err()
}
