package verify

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// counter counts the rows of one pass.
type counter struct {
	report  *Report
	windows []window
	// outside is true in the first pass, which alone counts what lies outside
	// all windows.
	outside bool
	logs    map[base.Partition]int // index in the report
	byLog   map[base.Partition][]*window
}

func newCounter(report *Report, windows []window, outside bool) *counter {
	c := &counter{
		report: report, windows: windows, outside: outside,
		logs: map[base.Partition]int{}, byLog: map[base.Partition][]*window{},
	}
	for i, log := range report.Logs {
		c.logs[log.Partition] = i
	}
	for i := range c.windows {
		w := &c.windows[i]
		w.allocate()
		c.byLog[w.partition] = append(c.byLog[w.partition], w)
	}
	return c
}

// read counts all rows of a table.
func (c *counter) read(ctx context.Context, scanner materialization.Scanner, from source) error {
	columns := []string{partitionColumn, offsetColumn}
	for batch, err := range scanner.Scan(ctx, from.table, columns, 0) {
		if err != nil {
			return err
		}
		partitions, offsets, err := positions(batch)
		if err != nil {
			return fmt.Errorf("verifying table %s: %w", from.table.Ident, err)
		}
		for i := range int(batch.NumRows()) {
			if partitions.IsNull(i) || offsets.IsNull(i) {
				c.stray(from, 0, 0)
				continue
			}
			c.row(from, base.Partition(partitions.Value(i)), base.Offset(offsets.Value(i)))
		}
	}
	return nil
}

func positions(batch arrow.RecordBatch) (*array.Int32, *array.Int64, error) {
	var partitions *array.Int32
	var offsets *array.Int64
	for i, column := range batch.Columns() {
		switch batch.ColumnName(i) {
		case partitionColumn:
			partitions, _ = column.(*array.Int32)
		case offsetColumn:
			offsets, _ = column.(*array.Int64)
		}
	}
	if partitions == nil || offsets == nil {
		return nil, nil, base.WithClass(base.ErrInvalid, errColumns)
	}
	return partitions, offsets, nil
}

// row counts one row by where its offset lies.
func (c *counter) row(from source, partition base.Partition, offset base.Offset) {
	i, known := c.logs[partition]
	if !known {
		c.stray(from, partition, offset)
		return
	}
	log, counts := c.report.Logs[i], &c.report.Partitions[i]
	switch {
	case log.Start <= offset && offset < log.Materialized:
		c.inside(from, counts, offset)
	case !c.outside:
	case log.Materialized <= offset && offset < from.ends[partition]:
		counts.Committed++
	default:
		counts.Unexpected++
		c.example(FindingUnexpected, from, partition, offset)
	}
}

// inside marks a row of the proven range, if its window is of this pass.
func (c *counter) inside(from source, counts *PartitionReport, offset base.Offset) {
	for _, w := range c.byLog[counts.Partition] {
		if !w.offsets.Contains(offset) {
			continue
		}
		if from.deadLetter {
			counts.DeadLetters++
		} else {
			counts.Rows++
		}
		if !w.mark(offset) {
			counts.Duplicated++
			c.example(FindingDuplicated, from, counts.Partition, offset)
		}
		return
	}
}

func (c *counter) stray(from source, partition base.Partition, offset base.Offset) {
	if c.outside {
		c.report.Stray++
		c.example(FindingStray, from, partition, offset)
	}
}

func (c *counter) example(kind FindingKind, from source, partition base.Partition, offset base.Offset) {
	c.report.example(Finding{
		Kind: kind, Table: from.table.Ident.String(), Partition: partition, Start: offset, End: offset + 1,
	})
}

// finish counts what no row had.
func (c *counter) finish() {
	for i := range c.windows {
		w := &c.windows[i]
		missing := w.offsets.Len() - w.marked()
		c.report.Partitions[c.logs[w.partition]].Missing += missing
		if missing == 0 {
			continue
		}
		examples := 0
		for gap := range w.gaps {
			if examples++; examples > maxExamples {
				break
			}
			c.report.example(Finding{Kind: FindingMissing, Partition: w.partition, Start: gap.Start, End: gap.End})
		}
	}
}
