package compacted

import (
	"sort"

	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/lakestream-go/lakestream/internal/base"
)

// OffsetOfTime returns the first offset whose append time is at or after t, or
// the end of the range when there is none. Append times never decrease, so the
// bounds of the row groups in the footer lead to one row group, of which only
// this column is read. Errors are those of Scanner.Next.
func (r *Reader) OffsetOfTime(t base.Millis) (offset base.Offset, err error) {
	defer corruptOnPanic(&err)
	groups := len(r.starts) - 1
	var failed error
	group := sort.Search(groups, func(i int) bool {
		last, err := r.lastAppendTime(i)
		if err != nil {
			failed = err
		}
		return last >= t
	})
	if failed != nil {
		return 0, failed
	}
	if group == groups {
		return r.meta.Range.End, nil
	}
	s, err := r.ReadFrom(r.meta.Range.Start + base.Offset(r.starts[group]))
	if err != nil {
		return 0, err
	}
	defer s.Close()
	row, err := s.rowOfTime(group, t)
	if err != nil {
		return 0, s.explain(err)
	}
	return r.meta.Range.Start + base.Offset(row), nil
}

func (r *Reader) lastAppendTime(group int) (base.Millis, error) {
	chunk, err := r.footer.RowGroup(group).ColumnChunk(colAppendTime)
	if err != nil {
		return 0, corruptf("row group %d: %w", group, err)
	}
	stats, err := chunk.Statistics()
	if err != nil {
		return 0, corruptf("row group %d: bounds of append_time: %w", group, err)
	}
	bounds, ok := stats.(*metadata.Int64Statistics)
	if !ok || !bounds.HasMinMax() {
		return 0, corruptf("row group %d has no bounds of append_time", group)
	}
	return base.Millis(bounds.Max()), nil
}

// rowOfTime searches the append times of one row group.
func (s *Scanner) rowOfTime(group int, t base.Millis) (int64, error) {
	if err := s.openGroup(group); err != nil {
		return 0, err
	}
	times := &s.columns.appendTimes
	row, end := s.reader.starts[group], s.reader.starts[group+1]
	for row < end {
		n, err := times.load(int(min(maxBatchRows, end-row)))
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return 0, corruptf("column %s ends at row %d of %d", columnPaths[colAppendTime], row, end)
		}
		at := sort.Search(n, func(i int) bool { return base.Millis(times.values[i]) >= t })
		row += int64(at)
		if at < n {
			break
		}
	}
	return row, nil
}
