package memtables

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// scanBatchRows is how many rows a batch of a scan holds.
const scanBatchRows = 4096

// Scan implements materialization.Scanner over Parquet files. A column that a
// file does not have is left out of its batches.
func (t *Tables) Scan(ctx context.Context, shown *materialization.Table, columns []string, limit int64) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		loaded, err := loadedVersion(shown)
		if err == nil {
			err = checkColumns(shown, columns)
		}
		s := &scan{tables: t, columns: columns, left: limit, yield: yield}
		t.mu.Lock()
		files := loaded.files()
		t.mu.Unlock()
		for _, data := range files {
			if err == nil {
				err = s.file(ctx, data.Path)
			}
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, fmt.Errorf("scanning table %s: %w", shown.Ident, err))
		}
	}
}

func checkColumns(shown *materialization.Table, columns []string) error {
	for _, column := range columns {
		if _, found := shown.Schema.FindFieldByName(column); !found {
			return fmt.Errorf("%w: no column %q", base.ErrInvalid, column)
		}
	}
	return nil
}

// errEnough ends a scan at its limit or when its consumer stops.
var errEnough = errors.New("enough rows")

// scan reads files in turn for one consumer.
type scan struct {
	tables  *Tables
	columns []string
	left    int64 // 0 is no limit
	yield   func(arrow.RecordBatch, error) bool
}

func (s *scan) file(ctx context.Context, path string) error {
	opened, err := s.tables.OpenFile(ctx, path)
	if err != nil {
		return err
	}
	parquetFile, err := file.NewParquetReader(opened)
	if err != nil {
		return base.WithClass(base.ErrCorrupt, err)
	}
	reader, err := pqarrow.NewFileReader(parquetFile, pqarrow.ArrowReadProperties{BatchSize: scanBatchRows}, memory.DefaultAllocator)
	if err != nil {
		return base.WithClass(base.ErrCorrupt, err)
	}
	records, err := reader.GetRecordReader(ctx, s.leaves(parquetFile), nil)
	if err != nil {
		return base.WithClass(base.ErrCorrupt, err)
	}
	defer records.Release()
	return s.batches(records)
}

// leaves returns the indexes of the Parquet leaf columns under the chosen
// columns, or nil for all.
func (s *scan) leaves(f *file.Reader) []int {
	if len(s.columns) == 0 {
		return nil
	}
	leaves := []int{}
	schema := f.MetaData().Schema
	for i := range schema.NumColumns() {
		top := parquet.ColumnPath(schema.Column(i).ColumnPath())[0]
		for _, column := range s.columns {
			if column == top {
				leaves = append(leaves, i)
			}
		}
	}
	return leaves
}

func (s *scan) batches(records array.RecordReader) error {
	for records.Next() {
		if err := s.batch(records.RecordBatch()); err != nil {
			return err
		}
	}
	if err := records.Err(); err != nil && !errors.Is(err, io.EOF) {
		return base.WithClass(base.ErrCorrupt, err)
	}
	return nil
}

func (s *scan) batch(batch arrow.RecordBatch) error {
	rows := batch.NumRows()
	if s.left > 0 && rows > s.left {
		rows = s.left
	}
	cut := batch.NewSlice(0, rows)
	defer cut.Release()
	if !s.yield(cut, nil) {
		return errEnough
	}
	if s.left > 0 {
		if s.left -= rows; s.left == 0 {
			return errEnough
		}
	}
	return nil
}
