package compacted

import (
	"fmt"
	"sort"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// columns are the open columns of one row group, at the same row.
type columns struct {
	opened                                      []file.ColumnChunkReader
	offsets, timestamps, appendTimes, revisions longReader
	keys, values                                blobReader
	headers                                     headerReader
}

func (c *columns) open(group *file.RowGroupReader) error {
	for i := range numColumns {
		column, err := group.Column(i)
		if err != nil {
			return fmt.Errorf("opening column %s: %w", columnPaths[i], err)
		}
		c.opened = append(c.opened, column)
	}
	for i, long := range []*longReader{
		colOffset: &c.offsets, colTimestamp: &c.timestamps, colAppendTime: &c.appendTimes, colRevision: &c.revisions,
	} {
		long.column = c.opened[i].(*file.Int64ColumnChunkReader) // the schema was checked
	}
	blobs := func(i int) *file.ByteArrayColumnChunkReader {
		return c.opened[i].(*file.ByteArrayColumnChunkReader) // the schema was checked
	}
	c.keys.column, c.values.column = blobs(colKey), blobs(colValue)
	c.headers.open(blobs(colHeaderKey), blobs(colHeaderValue))
	return nil
}

// seek goes to a row of the group. In repeated columns the library can only go
// to the start of a page, so the rows before are skipped here.
func (c *columns) seek(row int64, index *metadata.RowGroupPageIndexReader) error {
	for i, column := range c.opened {
		target, skip := row, int64(0)
		if column.Descriptor().MaxRepetitionLevel() > 0 {
			start, err := pageStart(index, i, row)
			if err != nil {
				return err
			}
			target, skip = start, row-start
		}
		if err := column.SeekToRow(target); err != nil {
			return fmt.Errorf("seeking to row %d of column %s: %w", target, columnPaths[i], err)
		}
		if skip > 0 {
			if err := c.headers.column(i).skip(skip); err != nil {
				return fmt.Errorf("skipping %d rows of column %s: %w", skip, columnPaths[i], err)
			}
		}
	}
	return nil
}

// pageStart returns the first row of the page that holds a row.
func pageStart(index *metadata.RowGroupPageIndexReader, column int, row int64) (int64, error) {
	offsets, err := index.GetOffsetIndex(column)
	if err != nil {
		return 0, fmt.Errorf("reading the offset index of column %s: %w", columnPaths[column], err)
	}
	pages := offsets.GetPageLocations()
	next := sort.Search(len(pages), func(i int) bool { return pages[i].FirstRowIndex > row })
	if next == 0 {
		return 0, corruptf("the offset index of column %s has no page with row %d", columnPaths[column], row)
	}
	return pages[next-1].FirstRowIndex, nil
}

// load decodes the next rows, at most the given number and fewer where values
// are large, and returns how many. Headers are decoded row by row later.
func (c *columns) load(rows int) (int, error) {
	rows, err := c.values.load(rows, batchBytes)
	if err != nil {
		return 0, err
	}
	if n, err := c.keys.load(rows, maxPageBytes); err != nil || n < rows {
		return 0, missing(colKey, rows, n, err)
	}
	for i, long := range []*longReader{&c.offsets, &c.timestamps, &c.appendTimes, &c.revisions} {
		if n, err := long.load(rows); err != nil || n < rows {
			return 0, missing(i, rows, n, err)
		}
	}
	return rows, nil
}

func missing(column, want, got int, err error) error {
	if err != nil {
		return fmt.Errorf("reading column %s: %w", columnPaths[column], err)
	}
	return corruptf("column %s has %d rows where others have %d", columnPaths[column], got, want)
}

func (c *columns) close() {
	for _, column := range c.opened {
		// The data was read and verified; closing only frees buffers.
		_ = column.Close()
	}
	c.opened = c.opened[:0]
}

// longReader reads a required column of numbers.
type longReader struct {
	column *file.Int64ColumnChunkReader
	values []int64
}

func (l *longReader) load(rows int) (int, error) {
	if cap(l.values) < rows {
		l.values = make([]int64, maxBatchRows)
	}
	l.values = l.values[:rows]
	_, n, err := l.column.ReadBatch(int64(rows), l.values, nil, nil)
	if err == nil {
		err = l.column.Err()
	}
	return n, err
}

// blobReader reads an optional column of byte strings.
type blobReader struct {
	column *file.ByteArrayColumnChunkReader
	// blobs has one entry a row; nil is null.
	blobs [][]byte
	raw   []parquet.ByteArray
	defs  []int16
}

// load reads up to the given rows and stops early when they reach maxBytes.
func (b *blobReader) load(rows int, maxBytes int64) (int, error) {
	if b.raw == nil {
		b.raw, b.defs = make([]parquet.ByteArray, maxBatchRows), make([]int16, maxBatchRows)
		b.blobs = make([][]byte, 0, maxBatchRows)
	}
	b.blobs = b.blobs[:0]
	total := int64(0)
	for len(b.blobs) < rows && total < maxBytes {
		levels, n, err := b.column.ReadBatchInPage(int64(rows-len(b.blobs)), b.raw, b.defs, nil)
		if err != nil {
			return 0, err
		}
		if levels == 0 {
			break
		}
		total += b.own(b.defs[:levels], b.raw[:n])
	}
	if err := b.column.Err(); err != nil {
		return 0, err
	}
	if len(b.blobs) == 0 {
		return 0, corruptf("column %s ends early", b.column.Descriptor().Path())
	}
	return len(b.blobs), nil
}

// own copies byte strings out of the library's page, which the next page will
// overwrite, into one new buffer. It returns their size.
func (b *blobReader) own(defs []int16, raw []parquet.ByteArray) int64 {
	size := 0
	for _, blob := range raw {
		size += len(blob)
	}
	buffer := make([]byte, 0, size)
	next := 0
	for _, def := range defs {
		if def != levelPresent || next == len(raw) {
			b.blobs = append(b.blobs, nil)
			continue
		}
		start := len(buffer)
		buffer = append(buffer, raw[next]...)
		b.blobs = append(b.blobs, buffer[start:len(buffer):len(buffer)])
		next++
	}
	return int64(size)
}
