package verify_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/memtables"
	"github.com/lakestream-go/lakestream/internal/materialization/tablestest"
	"github.com/lakestream-go/lakestream/internal/materialization/verify"
)

var (
	events  = materialization.Ident{Namespace: "web", Name: "events"}
	letters = materialization.Ident{Namespace: "web", Name: "events_dlt"}
)

func span(start, end base.Offset) base.OffsetRange { return base.OffsetRange{Start: start, End: end} }

// table makes a table of rows in one file, that says of itself where it ends.
func table(t *testing.T, tables *memtables.Tables, ident materialization.Ident, ends string, rows ...[]tablestest.Row) *materialization.Table {
	t.Helper()
	return tableOf(t, t, tables, ident, ends, slices.Concat(rows...))
}

func tableOf(t *testing.T, tt tablestest.TestingT, tables *memtables.Tables, ident materialization.Ident, ends string, rows []tablestest.Row) *materialization.Table {
	shown, err := tables.Create(t.Context(), ident, tablestest.Schema(), nil)
	require.NoError(tt, err)
	file := tablestest.Write(t.Context(), tt, tables, shown, "data", rows)
	shown, err = tables.Commit(t.Context(), shown, materialization.Update{
		Files:      []materialization.DataFile{file},
		Properties: map[string]string{materialization.PropertyEndOffsets: ends},
	})
	require.NoError(tt, err)
	return shown
}

func TestEachOffsetOnceIsProven(t *testing.T) {
	tables := memtables.New()
	report, err := verify.Run(t.Context(), tables, verify.Input{
		Table:      table(t, tables, events, "0:10,1:4", tablestest.RangeRows(0, span(0, 7)), tablestest.RangeRows(1, span(2, 4))),
		DeadLetter: table(t, tables, letters, "0:10", tablestest.RangeRows(0, span(7, 10))),
		Logs: []verify.Log{
			{Partition: 1, Start: 2, Materialized: 4, Head: 4},
			{Partition: 0, Materialized: 10, Head: 10},
			{Partition: 2},
		},
	})
	require.NoError(t, err)
	require.NoError(t, report.Proven())
	require.NoError(t, report.Complete())
	require.Empty(t, report.Findings)
	require.Equal(t, verify.PartitionReport{Partition: 0, Materialized: 10, Rows: 7, DeadLetters: 3}, report.Partitions[0])
	text, err := json.Marshal(report)
	require.NoError(t, err)
	require.Contains(t, string(text), `"ok":true`)
	require.NotContains(t, string(text), "null")
}

func TestARestIsReportedAndNotComplete(t *testing.T) {
	tables := memtables.New()
	report, err := verify.Run(t.Context(), tables, verify.Input{
		Table: table(t, tables, events, "0:6", tablestest.RangeRows(0, span(0, 6))),
		Logs:  []verify.Log{{Partition: 0, Materialized: 4, Head: 9}},
	})
	require.NoError(t, err)
	require.NoError(t, report.Proven())
	require.ErrorIs(t, report.Complete(), verify.ErrIncomplete)
	require.EqualValues(t, 5, report.Rest)
	require.EqualValues(t, 2, report.Partitions[0].Committed, "rows whose commit is not published yet are no fault")
}

func TestFaultsAreFound(t *testing.T) {
	whole := tablestest.RangeRows(0, span(0, 10))
	log := verify.Log{Partition: 0, Start: 0, Materialized: 10, Head: 10}
	for name, story := range map[string]struct {
		main, dead []tablestest.Row
		leftOut    int64
		want       verify.Finding
	}{
		"a row is missing":                     {main: slices.Delete(slices.Clone(whole), 4, 6), want: verify.Finding{Kind: verify.FindingMissing, Start: 4, End: 6}},
		"more is missing than was left out":    {main: slices.Delete(slices.Clone(whole), 4, 6), leftOut: 1, want: verify.Finding{Kind: verify.FindingMissing, Start: 4, End: 6}},
		"a row is twice in the table":          {main: append(slices.Clone(whole), whole[3]), want: verify.Finding{Kind: verify.FindingDuplicated, Table: "web.events", Start: 3, End: 4}},
		"a row is in both tables":              {main: whole, dead: whole[9:], want: verify.Finding{Kind: verify.FindingDuplicated, Table: "web.events_dlt", Start: 9, End: 10}},
		"a row lies beyond the table's end":    {main: tablestest.RangeRows(0, span(0, 11)), want: verify.Finding{Kind: verify.FindingUnexpected, Table: "web.events", Start: 10, End: 11}},
		"a row has no partition of the stream": {main: append(slices.Clone(whole), tablestest.Row{Partition: 5, Offset: 2}), want: verify.Finding{Kind: verify.FindingStray, Table: "web.events", Partition: 5, Start: 2, End: 3}},
		"a row has an offset below zero":       {main: append(slices.Clone(whole), tablestest.Row{Offset: -1}), want: verify.Finding{Kind: verify.FindingUnexpected, Table: "web.events", Start: -1, End: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			tables := memtables.New()
			log := log
			log.LeftOut = story.leftOut
			report, err := verify.Run(t.Context(), tables, verify.Input{
				Table:      table(t, tables, events, "0:10", story.main),
				DeadLetter: table(t, tables, letters, "0:10", story.dead),
				Logs:       []verify.Log{log},
			})
			require.NoError(t, err)
			require.False(t, report.OK)
			require.ErrorIs(t, report.Proven(), verify.ErrNotProven)
			require.ErrorIs(t, report.Complete(), verify.ErrNotProven)
			require.Equal(t, []verify.Finding{story.want}, report.Findings)
		})
	}
}

func TestWhatWasLeftOutIsAccountedFor(t *testing.T) {
	tables := memtables.New()
	rows := slices.Delete(tablestest.RangeRows(0, span(0, 10)), 2, 5)
	shown := table(t, tables, events, "0:10", rows)
	for leftOut, proven := range map[int64]bool{2: false, 3: true, 4: false} {
		report, err := verify.Run(t.Context(), tables, verify.Input{
			Table: shown,
			Logs:  []verify.Log{{Materialized: 10, Head: 10, LeftOut: leftOut}},
		})
		require.NoError(t, err)
		require.Equal(t, proven, report.OK, leftOut)
	}
}

func TestExamplesAreBounded(t *testing.T) {
	tables := memtables.New()
	var rows []tablestest.Row
	for offset := base.Offset(0); offset < 100; offset += 2 {
		rows = append(rows, tablestest.RangeRows(0, span(offset, offset+1))...)
	}
	report, err := verify.Run(t.Context(), tables, verify.Input{
		Table: table(t, tables, events, "0:100", rows),
		Logs:  []verify.Log{{Materialized: 100, Head: 100}},
	})
	require.NoError(t, err)
	require.EqualValues(t, 50, report.Partitions[0].Missing)
	require.Len(t, report.Findings, 10)
}

func TestInputsThatContradictThemselvesAreRefused(t *testing.T) {
	tables := memtables.New()
	shown := table(t, tables, events, "", nil)
	for name, input := range map[string]verify.Input{
		"no table":           {},
		"a partition twice":  {Table: shown, Logs: []verify.Log{{}, {}}},
		"an end below start": {Table: shown, Logs: []verify.Log{{Start: 3, Materialized: 2, Head: 9}}},
		"a head below end":   {Table: shown, Logs: []verify.Log{{Materialized: 2, Head: 1}}},
		"no memory":          {Table: shown, MemoryBytes: 1},
	} {
		_, err := verify.Run(t.Context(), tables, input)
		require.ErrorIs(t, err, base.ErrInvalid, name)
	}
}

// TestCountsEqualANaiveCount compares with a count by map, under budgets that
// need many passes.
func TestCountsEqualANaiveCount(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		position := rapid.Custom(func(rt *rapid.T) tablestest.Row {
			return tablestest.Row{
				Partition: rapid.SampledFrom([]base.Partition{0, 1, 2}).Draw(rt, "partition"),
				Offset:    base.Offset(rapid.Int64Range(0, 20_000).Draw(rt, "offset")),
			}
		})
		rows := rapid.SliceOfN(position, 0, 200).Draw(rt, "rows")
		for p := range base.Partition(2) {
			whole := base.Offset(rapid.Int64Range(0, 15_000).Draw(rt, "whole"))
			rows = append(rows, tablestest.RangeRows(p, span(0, whole))...)
		}
		logs := []verify.Log{
			{Partition: 0, Start: 100, Materialized: 12_000, Head: 12_000},
			{Partition: 1, Start: 0, Materialized: base.Offset(rapid.Int64Range(0, 9_000).Draw(rt, "end")), Head: 10_000},
		}
		tables := memtables.New()
		report, err := verify.Run(t.Context(), tables, verify.Input{
			Table: tableOf(t, rt, tables, events, "0:14000,1:20001", rows), Logs: logs,
			MemoryBytes: rapid.SampledFrom([]int64{1 << 10, 2000, 1 << 20}).Draw(rt, "memory"),
		})
		require.NoError(rt, err)
		require.Equal(rt, naive(rows, logs, map[base.Partition]base.Offset{0: 14_000, 1: 20_001}), report.Partitions)
	})
}

func naive(rows []tablestest.Row, logs []verify.Log, ends map[base.Partition]base.Offset) []verify.PartitionReport {
	reports := make([]verify.PartitionReport, len(logs))
	for i, log := range logs {
		seen := map[base.Offset]int64{}
		p := verify.PartitionReport{
			Partition: log.Partition, Start: log.Start, Materialized: log.Materialized, Rest: int64(log.Head - log.Materialized),
		}
		for _, row := range rows {
			switch {
			case row.Partition != log.Partition:
			case row.Offset >= log.Start && row.Offset < log.Materialized:
				seen[row.Offset]++
				p.Rows++
			case row.Offset >= log.Materialized && row.Offset < ends[log.Partition]:
				p.Committed++
			default:
				p.Unexpected++
			}
		}
		p.Duplicated = p.Rows - int64(len(seen))
		p.Missing = int64(log.Materialized-log.Start) - int64(len(seen))
		reports[i] = p
	}
	return reports
}
