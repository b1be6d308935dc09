package icebergtables

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go/table"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// Scan implements materialization.Scanner. It reads one file at a time: a
// parallel scan would hold the decoded rows of whole files while they wait for
// their turn.
func (t *Tables) Scan(ctx context.Context, shown *materialization.Table, columns []string, limit int64) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		batches, err := t.batches(ctx, shown, columns, limit)
		if err != nil {
			yield(nil, fmt.Errorf("scanning table %s: %w", shown.Ident, err))
			return
		}
		for batch, err := range batches {
			if err != nil {
				yield(nil, fmt.Errorf("scanning table %s: %w", shown.Ident, classifyRead(err)))
				return
			}
			more := yield(batch, nil)
			batch.Release()
			if !more {
				return
			}
		}
	}
}

func (t *Tables) batches(ctx context.Context, shown *materialization.Table, columns []string, limit int64) (iter.Seq2[arrow.RecordBatch, error], error) {
	loaded, err := handle(shown)
	if err != nil {
		return nil, err
	}
	for _, column := range columns {
		if _, found := loaded.Schema().FindFieldByName(column); !found {
			return nil, fmt.Errorf("%w: no column %q", base.ErrInvalid, column)
		}
	}
	options := []table.ScanOption{
		table.WithSelectedFields(columns...),
		table.WithMaxConcurrency(1),
	}
	if limit > 0 {
		options = append(options, table.WithLimit(limit))
	}
	if shown.Head == 0 {
		return func(func(arrow.RecordBatch, error) bool) {}, nil
	}
	_, batches, err := loaded.Scan(options...).ToArrowRecords(ctx)
	if err != nil {
		return nil, classifyRead(err)
	}
	return batches, nil
}
