package compacted

import (
	"fmt"
	"hash/crc32"
	"io"
	"sort"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

// openBytes is the first read of an object: enough for the footer of most.
const openBytes = 64 << 10

// maxFooterBytes bounds the footer that a reader accepts.
const maxFooterBytes = 64 << 20

// Reader is an open compacted object: its verified footer, and where the bytes
// come from. It does not change and is safe for concurrent use when its
// io.ReaderAt is.
type Reader struct {
	r      io.ReaderAt
	size   int64
	meta   Meta
	sums   *checksums
	footer *metadata.FileMetaData
	// starts has the first row of each row group, and the number of rows.
	starts      []int64
	footerBytes int64
}

// Reader can be read any number of times.
var _ recordbatch.Source = (*Reader)(nil)

// Open reads and verifies the footer of an object of size bytes and checks that
// it holds exactly what want says. Errors match base.ErrForeign,
// base.ErrNewerFormat and base.ErrCorrupt; those of r are passed on.
func Open(r io.ReaderAt, size int64, want Meta) (*Reader, error) {
	reader, err := open(r, size)
	if err != nil {
		return nil, err
	}
	if err := reader.meta.check(want); err != nil {
		return nil, err
	}
	return reader, nil
}

func open(r io.ReaderAt, size int64) (reader *Reader, err error) {
	sums, footer, err := readTail(r, size)
	if err != nil {
		return nil, err
	}
	defer corruptOnPanic(&err)
	parsed, err := metadata.NewFileMetaData(footer, nil)
	if err != nil {
		return nil, corruptf("reading the footer: %w", err)
	}
	parsed.SetSourceFileSize(size)
	meta, err := decodeMeta(parsed.KeyValueMetadata())
	if err != nil {
		return nil, err
	}
	reader = &Reader{r: r, size: size, meta: meta, sums: sums, footer: parsed, footerBytes: int64(len(footer))}
	if err := reader.check(); err != nil {
		return nil, err
	}
	return reader, nil
}

// readTail reads and verifies the checksum block and the footer.
func readTail(r io.ReaderAt, size int64) (*checksums, []byte, error) {
	if size < int64(len(parquetMagic))+trailerBytes+tailBytes {
		return nil, nil, corruptf("%d bytes are too few", size)
	}
	t := tail{r: r, size: size}
	last, err := t.read(size-tailBytes, tailBytes)
	if err != nil {
		return nil, nil, err
	}
	footerBytes, err := footerLength(last)
	if err != nil {
		return nil, nil, err
	}
	blockEnd := size - tailBytes - footerBytes
	if blockEnd < trailerBytes || footerBytes > maxFooterBytes {
		return nil, nil, corruptf("footer of %d bytes in an object of %d", footerBytes, size)
	}
	encoded, err := t.read(blockEnd-trailerBytes, trailerBytes)
	if err != nil {
		return nil, nil, err
	}
	trailer, err := decodeTrailer(encoded)
	if err != nil {
		return nil, nil, err
	}
	if err := trailer.check(blockEnd); err != nil {
		return nil, nil, err
	}
	// One read from the block's start makes the rest come from memory.
	rest, err := t.read(trailer.covered, size-trailer.covered)
	if err != nil {
		return nil, nil, err
	}
	block, footer := rest[:blockEnd-trailer.covered], rest[blockEnd-trailer.covered:]
	sums, err := decodeChecksums(block, trailer)
	if err != nil {
		return nil, nil, err
	}
	if sum := crc32.Checksum(footer, castagnoli); sum != sums.footer {
		return nil, nil, corruptf("footer: checksum %08x, want %08x", sum, sums.footer)
	}
	return sums, footer[:footerBytes], nil
}

// tail reads from the end of an object, at least openBytes at a time, and keeps
// what it has read.
type tail struct {
	r     io.ReaderAt
	size  int64
	start int64
	data  []byte
}

func (t *tail) read(off, length int64) ([]byte, error) {
	if t.data == nil || off < t.start {
		start := max(0, min(off, t.size-openBytes))
		data := make([]byte, t.size-start)
		if err := readFull(t.r, data, start); err != nil {
			return nil, err
		}
		t.start, t.data = start, data
	}
	return t.data[off-t.start:][:length], nil
}

// check refuses a footer that does not describe a file of this package. The
// Parquet library trusts sizes in a footer and allocates by them.
func (r *Reader) check() error {
	if !r.footer.Schema.Equals(schema.NewSchema(fileSchema)) {
		return corruptf("the schema is not that of a compacted object:\n%s", r.footer.Schema)
	}
	groups := r.footer.NumRowGroups()
	r.starts = make([]int64, 1, groups+1)
	rows := int64(0)
	for i := range groups {
		group := r.footer.RowGroup(i)
		if group.NumRows() <= 0 || group.NumRows() > r.meta.Range.Len()-rows {
			return corruptf("row group %d has %d rows of %d", i, group.NumRows(), r.meta.Range.Len())
		}
		if err := r.checkColumns(group, i); err != nil {
			return err
		}
		rows += group.NumRows()
		r.starts = append(r.starts, rows)
	}
	if rows != r.meta.Range.Len() {
		return corruptf("%d rows for range %s", rows, r.meta.Range)
	}
	return nil
}

func (r *Reader) checkColumns(group *metadata.RowGroupMetaData, index int) error {
	if group.NumColumns() != numColumns {
		return corruptf("row group %d has %d columns, want %d", index, group.NumColumns(), numColumns)
	}
	for col := range numColumns {
		chunk, err := group.ColumnChunk(col)
		if err != nil {
			return corruptf("row group %d, column %s: %w", index, columnPaths[col], err)
		}
		if chunk.NumValues() < group.NumRows() || chunk.HasDictionaryPage() || chunk.CryptoMetadata() != nil {
			return corruptf("row group %d, column %s: %d values for %d rows, dictionary or encryption",
				index, columnPaths[col], chunk.NumValues(), group.NumRows())
		}
		if err := r.checkSpan(chunk.DataPageOffset(), chunk.TotalCompressedSize()); err != nil {
			return fmt.Errorf("row group %d, column %s: data: %w", index, columnPaths[col], err)
		}
		location := chunk.GetOffsetIndexLocation()
		if location == nil {
			return corruptf("row group %d, column %s has no offset index", index, columnPaths[col])
		}
		if err := r.checkSpan(location.Offset, int64(location.Length)); err != nil {
			return fmt.Errorf("row group %d, column %s: offset index: %w", index, columnPaths[col], err)
		}
		if location := chunk.GetColumnIndexLocation(); location != nil {
			if err := r.checkSpan(location.Offset, int64(location.Length)); err != nil {
				return fmt.Errorf("row group %d, column %s: column index: %w", index, columnPaths[col], err)
			}
		}
	}
	return nil
}

func (r *Reader) checkSpan(offset, length int64) error {
	if offset < 0 || length <= 0 || offset > r.sums.covered || length > r.sums.covered-offset {
		return corruptf("%d bytes at %d of %d", length, offset, r.sums.covered)
	}
	return nil
}

// Meta returns what the object holds.
func (r *Reader) Meta() Meta { return r.meta }

// Range implements recordbatch.Source.
func (r *Reader) Range() base.OffsetRange { return r.meta.Range }

// FooterBytes returns the size of the footer and the checksums, by which a cache
// can weigh a Reader.
func (r *Reader) FooterBytes() int64 {
	return r.footerBytes + int64(len(r.sums.chunks)*crcBytes)
}

// With returns the same object read through another source of its bytes, for
// one that carries a caller's context.
func (r *Reader) With(source io.ReaderAt) *Reader {
	other := *r
	other.r = source
	return &other
}

// Each implements recordbatch.Source. Errors are those of Scanner.Next, or
// what yield returned.
func (r *Reader) Each(yield func(*recordbatch.Positioned) error) error {
	scanner, err := r.ReadFrom(r.meta.Range.Start)
	if err != nil {
		return err
	}
	defer scanner.Close()
	var batch []recordbatch.Positioned
	for {
		batch, err = scanner.Next(batch[:0], maxBatchRows)
		if err == io.EOF { //nolint:errorlint // io.EOF itself ends a scan
			return nil
		}
		if err != nil {
			return err
		}
		for i := range batch {
			if err := yield(&batch[i]); err != nil {
				return err
			}
		}
	}
}

// groupOf returns the row group that holds a row.
func (r *Reader) groupOf(row int64) int {
	return sort.Search(len(r.starts)-1, func(i int) bool { return r.starts[i+1] > row })
}

// corruptOnPanic turns a panic of the Parquet library over what it read into
// base.ErrCorrupt.
func corruptOnPanic(err *error) {
	if r := recover(); r != nil {
		*err = corruptf("the Parquet library panicked: %v", r)
	}
}
