// Package verify proves that a table and its dead-letter table hold each record
// of a stream exactly once.
//
// The proof covers, per partition, the offsets from where the table's coverage
// begins to the materialized end that the fold published. It reads the position
// columns of every row of both tables and marks each offset in a bitmap: one
// that is marked already is a duplicate, one that stays unmarked is missing,
// unless it is among those counted as left out on purpose. What lies outside is
// counted apart: rows that nothing explains, and the rest of the log that is not
// materialized yet.
//
// Memory is bounded: where the bitmaps of all partitions exceed the budget, the
// tables are read several times, each for a window of the offsets.
package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// Columns that carry a row's position in its log.
const (
	partitionColumn = "__partition"
	offsetColumn    = "__offset"
)

// DefaultMemoryBytes is the budget of the bitmaps: 512 million offsets a pass.
const DefaultMemoryBytes = 64 << 20

// maxExamples bounds the examples of each kind of finding in a report.
const maxExamples = 10

// Log is what is to be proven of one partition.
type Log struct {
	Partition base.Partition
	// Start is where the table's coverage of the log begins.
	Start base.Offset
	// Materialized is the end of what was published as being in the tables.
	Materialized base.Offset
	// Head is the log's end.
	Head base.Offset
	// LeftOut counts the offsets of [Start, Materialized) that were left out
	// of the tables on purpose: filtered or skipped.
	LeftOut int64
}

// Input is what a proof is about. Read the logs before loading the tables, so
// that the tables hold at least what the logs say.
type Input struct {
	// Table is required; DeadLetter may be nil when there is no such table.
	Table, DeadLetter *materialization.Table
	Logs              []Log
	// MemoryBytes bounds the bitmaps, DefaultMemoryBytes when 0.
	MemoryBytes int64
}

// Run reads the tables and reports what they hold. Its error says that a table
// could not be read; whatever is wrong with the rows is in the report.
func Run(ctx context.Context, scanner materialization.Scanner, input Input) (*Report, error) {
	budget := input.MemoryBytes
	if budget == 0 {
		budget = DefaultMemoryBytes
	}
	if err := check(input, budget); err != nil {
		return nil, err
	}
	tables, err := input.sources()
	if err != nil {
		return nil, err
	}
	report := newReport(input)
	for pass, windows := range passes(input.Logs, budget) {
		counter := newCounter(report, windows, pass == 0)
		for _, table := range tables {
			if err := counter.read(ctx, scanner, table); err != nil {
				return nil, err
			}
		}
		counter.finish()
	}
	report.conclude()
	return report, nil
}

func check(input Input, budget int64) error {
	if input.Table == nil || budget < minMemoryBytes {
		return fmt.Errorf("%w: verifying needs a table and at least %d bytes", base.ErrInvalid, minMemoryBytes)
	}
	seen := map[base.Partition]bool{}
	for _, log := range input.Logs {
		if seen[log.Partition] || log.Start < 0 || log.Materialized < log.Start || log.Head < log.Materialized || log.LeftOut < 0 {
			return fmt.Errorf("%w: verifying partition %d: offsets contradict each other", base.ErrInvalid, log.Partition)
		}
		seen[log.Partition] = true
	}
	return nil
}

// source is a table to read.
type source struct {
	table *materialization.Table
	// ends is how far the table itself says that it goes, at least the
	// materialized end: a commit comes before the record that publishes it.
	ends       materialization.EndOffsets
	deadLetter bool
}

func (in Input) sources() ([]source, error) {
	main, err := newSource(in.Table, false)
	if err != nil || in.DeadLetter == nil {
		return []source{main}, err
	}
	dead, err := newSource(in.DeadLetter, true)
	return []source{main, dead}, err
}

func newSource(table *materialization.Table, deadLetter bool) (source, error) {
	ends, err := table.EndOffsets()
	if err != nil {
		err = fmt.Errorf("verifying table %s: %w", table.Ident, err)
	}
	return source{table: table, ends: ends, deadLetter: deadLetter}, err
}

// errColumns says that a table does not carry positions.
var errColumns = errors.New("its column __partition or __offset is missing or has another type")

// newReport starts a report with a line for each partition, in order.
func newReport(input Input) *Report {
	report := &Report{
		Table:      input.Table.Ident.String(),
		TableUUID:  input.Table.UUID,
		SnapshotID: input.Table.Head,
		Logs:       slices.Clone(input.Logs),
		Findings:   []Finding{},
	}
	if input.DeadLetter != nil {
		report.DeadLetterTable = input.DeadLetter.Ident.String()
		report.DeadLetterSnapshotID = input.DeadLetter.Head
	}
	slices.SortFunc(report.Logs, func(a, b Log) int { return int(a.Partition) - int(b.Partition) })
	for _, log := range report.Logs {
		report.Partitions = append(report.Partitions, PartitionReport{
			Partition: log.Partition, Start: log.Start, Materialized: log.Materialized,
			LeftOut: log.LeftOut, Rest: int64(log.Head - log.Materialized),
		})
	}
	return report
}
