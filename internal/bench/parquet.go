package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// pieceRows is how many rows are passed at a time.
const pieceRows = 4096

// columnPiece is a few rows of a column of a row group. Its slices are valid until
// the next piece.
type columnPiece struct {
	group, column int
	longs         []int64
	blobs         []parquet.ByteArray
	defs, reps    []int16
}

// decodeColumns decodes every column of a Parquet file whose columns are of 64-bit
// integers and bytes.
func decodeColumns(data parquet.ReaderAtSeeker, yield func(columnPiece)) error {
	r, err := file.NewParquetReader(data)
	if err != nil {
		return fmt.Errorf("opening Parquet file: %w", err)
	}
	defer func() { _ = r.Close() }() // nothing was written
	piece := columnPiece{
		longs: make([]int64, pieceRows), blobs: make([]parquet.ByteArray, pieceRows),
		defs: make([]int16, pieceRows), reps: make([]int16, pieceRows),
	}
	for g := range r.NumRowGroups() {
		group := r.RowGroup(g)
		for c := range group.NumColumns() {
			column, err := group.Column(c)
			if err != nil {
				return fmt.Errorf("opening column %d: %w", c, err)
			}
			piece.group, piece.column = g, c
			if err := piece.decode(column, yield); err != nil {
				return fmt.Errorf("decoding column %d: %w", c, err)
			}
		}
	}
	return nil
}

func (p *columnPiece) decode(column file.ColumnChunkReader, yield func(columnPiece)) error {
	for column.HasNext() {
		var levels int64
		var values int
		var err error
		filled := columnPiece{group: p.group, column: p.column}
		switch column := column.(type) {
		case *file.Int64ColumnChunkReader:
			_, values, err = column.ReadBatch(pieceRows, p.longs, nil, nil)
			filled.longs = p.longs[:values]
		case *file.ByteArrayColumnChunkReader:
			levels, values, err = column.ReadBatchInPage(pieceRows, p.blobs, p.defs, p.reps)
			filled.blobs, filled.defs, filled.reps = p.blobs[:values], p.defs[:levels], p.reps[:levels]
		default:
			return fmt.Errorf("columns of type %T are not known", column)
		}
		if err != nil {
			return err
		}
		yield(filled)
	}
	return nil
}

// columns are the contents of a Parquet file.
type columns struct {
	root   *schema.GroupNode
	props  *parquet.WriterProperties
	groups [][]columnPiece
}

// loadColumns reads a file into memory.
func loadColumns(data []byte) (columns, error) {
	r, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		return columns{}, fmt.Errorf("opening Parquet file: %w", err)
	}
	c := columns{root: r.MetaData().Schema.Root(), groups: make([][]columnPiece, r.NumRowGroups())}
	c.props = likeCompacted(r.MetaData().Schema)
	for i := range c.groups {
		c.groups[i] = make([]columnPiece, r.MetaData().Schema.NumColumns())
	}
	if err := r.Close(); err != nil {
		return columns{}, fmt.Errorf("closing Parquet file: %w", err)
	}
	err = decodeColumns(bytes.NewReader(data), func(p columnPiece) {
		to := &c.groups[p.group][p.column]
		to.longs = append(to.longs, p.longs...)
		to.defs, to.reps = append(to.defs, p.defs...), append(to.reps, p.reps...)
		for _, blob := range p.blobs {
			to.blobs = append(to.blobs, bytes.Clone(blob))
		}
	})
	return c, err
}

// likeCompacted returns the encodings of compacted objects.
func likeCompacted(s *schema.Schema) *parquet.WriterProperties {
	props := []parquet.WriterProperty{
		parquet.WithVersion(parquet.V2_LATEST), parquet.WithDictionaryDefault(false), parquet.WithPageIndexEnabled(true),
		parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCompressionLevel(1),
		parquet.WithDataPageSize(128 << 10), parquet.WithBatchSize(pieceRows), parquet.WithStats(false),
	}
	for i := range s.NumColumns() {
		path := s.Column(i).ColumnPath().String()
		if s.Column(i).PhysicalType() != parquet.Types.Int64 {
			props = append(props, parquet.WithEncodingFor(path, parquet.Encodings.DeltaLengthByteArray))
			continue
		}
		props = append(props, parquet.WithEncodingFor(path, parquet.Encodings.DeltaBinaryPacked), parquet.WithStatsFor(path, true))
	}
	return parquet.NewWriterProperties(props...)
}

// encode writes the file again, to nowhere.
func (c *columns) encode() error {
	w, err := file.NewParquetWriterWithError(io.Discard, c.root, file.WithWriterProps(c.props))
	if err != nil {
		return fmt.Errorf("starting Parquet file: %w", err)
	}
	for _, group := range c.groups {
		g, err := w.AppendRowGroupChecked()
		if err != nil {
			return fmt.Errorf("starting row group: %w", err)
		}
		for i := range group {
			if err := group[i].encode(g); err != nil {
				return fmt.Errorf("encoding column %d: %w", i, err)
			}
		}
	}
	return w.Close()
}

func (p *columnPiece) encode(g file.SerialRowGroupWriter) error {
	column, err := g.NextColumn()
	if err != nil {
		return err
	}
	switch column := column.(type) {
	case *file.Int64ColumnChunkWriter:
		_, err = column.WriteBatch(p.longs, nil, nil)
	case *file.ByteArrayColumnChunkWriter:
		_, err = column.WriteBatch(p.blobs, p.defs, p.reps)
	default:
		err = fmt.Errorf("columns of type %T are not known", column)
	}
	if err != nil {
		return err
	}
	return column.Close()
}
