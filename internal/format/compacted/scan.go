package compacted

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

const (
	// maxBatchRows and batchBytes bound what one call of Next decodes.
	maxBatchRows = 4096
	batchBytes   = 256 << 10
	// columnBuffer is what the library reads ahead in one column.
	columnBuffer = 16 << 10
	// maxPageBytes bounds the page that a reader decodes: the largest record
	// in a page that was about to be full.
	maxPageBytes = 2 * MaxRecordBytes
)

// Scanner reads the records of an object from one offset on. It is not safe for
// concurrent use.
type Scanner struct {
	reader  *Reader
	source  *verifiedReader
	file    *file.Reader
	group   int // the row group that is open, or -1
	row     int64
	columns columns
	names   map[string]string
	err     error
}

// ReadFrom starts a scan at an offset of the object's range. The page index
// leads to the pages that hold it. An offset outside of the range is
// base.ErrInvalid.
func (r *Reader) ReadFrom(offset base.Offset) (s *Scanner, err error) {
	if offset != r.meta.Range.End && !r.meta.Range.Contains(offset) {
		return nil, fmt.Errorf("%w: offset %d is not in %s", base.ErrInvalid, offset, r.meta.Range)
	}
	defer corruptOnPanic(&err)
	source := &verifiedReader{r: r.r, sums: r.sums}
	props := parquet.NewReaderProperties(memory.NewGoAllocator())
	props.BufferedStreamEnabled = true
	props.BufferSize = columnBuffer
	props.MaxCompressedPageSize = maxPageBytes
	props.MaxUncompressedPageSize = maxPageBytes
	parquetReader, err := file.NewParquetReader(source, file.WithMetadata(r.footer), file.WithReadProps(props))
	if err != nil {
		return nil, corruptf("starting to read: %w", err)
	}
	return &Scanner{
		reader: r, source: source, file: parquetReader, group: -1,
		row: int64(offset - r.meta.Range.Start), names: make(map[string]string),
	}, nil
}

// Next appends the next records to dst, at least one and at most maxRows, and
// returns it; at the end of the range it returns io.EOF. The records own their
// keys, values and headers, which later calls do not touch.
//
// Errors match base.ErrCorrupt and say where; those of the object's io.ReaderAt
// are passed on. After an error each further call fails alike.
func (s *Scanner) Next(dst []recordbatch.Positioned, maxRows int) ([]recordbatch.Positioned, error) {
	if s.err != nil {
		return dst, s.err
	}
	if s.row >= s.reader.meta.Range.Len() {
		return dst, io.EOF
	}
	out, err := s.next(dst, max(1, min(maxRows, maxBatchRows)))
	if err != nil {
		s.err = s.explain(err)
		return dst, s.err
	}
	s.row += int64(len(out) - len(dst))
	return out, nil
}

// explain prefers the error of the source to what the library made of it.
func (s *Scanner) explain(err error) error {
	if s.source.err != nil {
		err = s.source.err
	} else if !errors.Is(err, base.ErrCorrupt) {
		err = corruptf("%w", err)
	}
	return fmt.Errorf("row group %d, offset %d: %w", s.group, s.reader.meta.Range.Start+base.Offset(s.row), err)
}

func (s *Scanner) next(dst []recordbatch.Positioned, rows int) (out []recordbatch.Positioned, err error) {
	defer corruptOnPanic(&err)
	group := s.reader.groupOf(s.row)
	if group != s.group {
		if err := s.openGroup(group); err != nil {
			return dst, err
		}
	}
	rows = int(min(int64(rows), s.reader.starts[group+1]-s.row))
	rows, err = s.columns.load(rows)
	if err != nil {
		return dst, err
	}
	return s.assemble(dst, rows)
}

// openGroup opens the columns of a row group at the current row.
func (s *Scanner) openGroup(group int) error {
	s.columns.close()
	s.group = group
	if err := s.columns.open(s.file.RowGroup(group)); err != nil {
		return err
	}
	skip := s.row - s.reader.starts[group]
	if skip == 0 {
		return nil
	}
	index, err := s.file.GetPageIndexReader().RowGroup(group)
	if err != nil {
		return fmt.Errorf("reading the page index: %w", err)
	}
	return s.columns.seek(skip, index)
}

// assemble makes records of the loaded rows.
func (s *Scanner) assemble(dst []recordbatch.Positioned, rows int) ([]recordbatch.Positioned, error) {
	c := &s.columns
	offset := s.reader.meta.Range.Start + base.Offset(s.row)
	for i := range rows {
		if base.Offset(c.offsets.values[i]) != offset {
			return dst, corruptf("row of offset %d, want %d", c.offsets.values[i], offset)
		}
		headers, err := c.headers.next(s.names)
		if err != nil {
			return dst, err
		}
		dst = append(dst, recordbatch.Positioned{
			Record: recordbatch.Record{
				Timestamp: base.Millis(c.timestamps.values[i]),
				Key:       c.keys.blobs[i],
				Value:     c.values.blobs[i],
				Headers:   headers,
			},
			Offset:     offset,
			Revision:   base.Revision(c.revisions.values[i]), //nolint:gosec // the bits that were written
			AppendTime: base.Millis(c.appendTimes.values[i]),
		})
		offset++
	}
	return dst, nil
}

// Close frees what the scan holds. Records that it returned stay valid.
func (s *Scanner) Close() {
	s.columns.close()
	if s.err == nil {
		s.err = fmt.Errorf("scan of a compacted object: %w", base.ErrClosed)
	}
}
