package checkpoint

import (
	"encoding/binary"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/frame"
)

// Read returns the rows of a section that must have these columns. One column
// more was written by a newer version.
func (s *Section) Read(kinds ...Kind) (*Rows, error) {
	if len(s.columns) > len(kinds) {
		return nil, fmt.Errorf("reading checkpoint: section %d has %d columns, this binary knows %d: upgrade it: %w",
			s.ID, len(s.columns), len(kinds), base.ErrNewerFormat)
	}
	if len(s.columns) < len(kinds) {
		return nil, fmt.Errorf("reading checkpoint: section %d: %w", s.ID, corruptf("%d columns, want %d", len(s.columns), len(kinds)))
	}
	r := &Rows{section: s.ID, columns: make([]columnReader, len(kinds))}
	for i, kind := range kinds {
		if s.columns[i].kind != kind {
			return nil, fmt.Errorf("reading checkpoint: section %d: %w", s.ID, corruptf("column %d is of another kind", i))
		}
		r.columns[i] = columnReader{kind: kind, chunks: s.columns[i].chunks}
	}
	return r, nil
}

// Rows reads the values of a section in the order in which they were written. It
// is not safe for concurrent use.
type Rows struct {
	section SectionID
	columns []columnReader
	next    int
	err     error
}

type columnReader struct {
	kind   Kind
	last   uint64
	chunks []byte // not decompressed yet
	buffer []byte
	values []byte // the rest of the open chunk, a part of buffer
}

// Number returns the next value, of a column of numbers. After damage, or when the
// next column is of another kind, it returns 0 and Close the error.
func (r *Rows) Number() uint64 {
	c := r.column(Numbers)
	if c == nil {
		return 0
	}
	delta, n := binary.Varint(c.values)
	if n <= 0 {
		r.fail("a number is cut")
		return 0
	}
	c.values = c.values[n:]
	c.last += uint64(delta) //nolint:gosec // differences wrap around on purpose
	return c.last
}

// Text returns the next value, of a column of texts, likewise.
func (r *Rows) Text() string {
	c := r.column(Texts)
	if c == nil {
		return ""
	}
	length, n := binary.Uvarint(c.values)
	if n <= 0 || length > uint64(len(c.values)-n) { //nolint:gosec // n bytes were read
		r.fail("a text is cut")
		return ""
	}
	value := string(c.values[n : n+int(length)]) //nolint:gosec // bounded by the chunk
	c.values = c.values[n+int(length):]          //nolint:gosec // likewise
	return value
}

// Failed reports whether anything was wrong so far: a loop over the rows ends then.
func (r *Rows) Failed() bool { return r.err != nil }

// column returns the column of the next value, which has one.
func (r *Rows) column(kind Kind) *columnReader {
	if r.err != nil {
		return nil
	}
	c := &r.columns[r.next]
	if c.kind != kind {
		r.fail("column %d is of another kind", r.next)
		return nil
	}
	if r.next++; r.next == len(r.columns) {
		r.next = 0
	}
	if len(c.values) == 0 {
		if err := c.open(); err != nil {
			r.err = err
			return nil
		}
	}
	return c
}

// open decompresses the next chunk.
func (c *columnReader) open() error {
	raw, stored, ok := parseChunk(c.chunks)
	if !ok {
		return corruptf("a column ends early")
	}
	data := c.chunks[chunkHeaderBytes : chunkHeaderBytes+stored]
	c.chunks = c.chunks[chunkHeaderBytes+stored:]
	var err error
	if c.buffer, err = frame.Decode(c.buffer, data, raw); err != nil {
		return err
	}
	c.values = c.buffer
	return nil
}

// Close returns what was wrong, or base.ErrCorrupt when values are left.
func (r *Rows) Close() error {
	for i := range r.columns {
		if c := &r.columns[i]; r.err == nil && len(c.values)+len(c.chunks) > 0 {
			r.fail("column %d holds more values than rows", i)
		}
	}
	if r.err != nil {
		return fmt.Errorf("reading checkpoint: section %d: %w", r.section, r.err)
	}
	return nil
}

func (r *Rows) fail(format string, args ...any) {
	if r.err == nil {
		r.err = corruptf(format, args...)
	}
}
