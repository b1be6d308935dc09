package checkpoint

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/frame"
)

// Encoder makes one checkpoint. Fill it section by section: Section, then every
// value of every row, in the order of the columns. It is not safe for concurrent
// use.
type Encoder struct {
	data     []byte
	sections uint32

	id      SectionID
	columns []columnEncoder
	next    int // the column of the next value
	rows    uint64
	err     error
}

// columnEncoder collects one column of the open section.
type columnEncoder struct {
	kind   Kind
	last   uint64
	chunk  []byte
	chunks uint32
	stored []byte
}

// NewEncoder begins a checkpoint.
func NewEncoder(h Header) *Encoder {
	return &Encoder{data: h.append(nil)}
}

// Section ends the section before and begins another, with these columns.
func (e *Encoder) Section(id SectionID, kinds ...Kind) {
	e.endSection()
	e.id = id
	for _, kind := range kinds {
		e.columns = append(e.columns, columnEncoder{kind: kind})
	}
	if len(kinds) == 0 || len(kinds) > MaxColumns {
		e.fail("section %d has %d columns", id, len(kinds))
	}
}

// Number adds a value to the next column, which must be one of numbers. Signed
// numbers go in two's complement.
func (e *Encoder) Number(v uint64) {
	c := e.column(Numbers)
	if c == nil {
		return
	}
	delta := int64(v - c.last) //nolint:gosec // differences wrap around on purpose
	c.last = v
	c.chunk = binary.AppendVarint(c.chunk, delta)
	c.closeFull()
}

// Text adds a value to the next column, which must be one of texts. A
// value over MaxValueBytes fails the checkpoint.
func (e *Encoder) Text(v string) {
	c := e.column(Texts)
	if c == nil {
		return
	}
	if len(v) > MaxValueBytes {
		e.fail("a value of section %d has %d bytes, the limit is %d", e.id, len(v), MaxValueBytes)
		return
	}
	c.chunk = binary.AppendUvarint(c.chunk, uint64(len(v)))
	c.chunk = append(c.chunk, v...)
	c.closeFull()
}

// column returns the column of the next value.
func (e *Encoder) column(kind Kind) *columnEncoder {
	if e.err != nil || len(e.columns) == 0 {
		e.fail("a value outside of a section")
		return nil
	}
	c := &e.columns[e.next]
	if c.kind != kind {
		e.fail("a value of another kind in column %d of section %d", e.next, e.id)
		return nil
	}
	if e.next++; e.next == len(e.columns) {
		e.next = 0
		e.rows++
	}
	return c
}

func (c *columnEncoder) closeFull() {
	if len(c.chunk) >= chunkBytes {
		c.close()
	}
}

// close compresses the open chunk.
func (c *columnEncoder) close() {
	if len(c.chunk) == 0 {
		return
	}
	at := len(c.stored)
	c.stored = binary.BigEndian.AppendUint32(c.stored, uint32(len(c.chunk))) //nolint:gosec // at most maxChunkBytes
	c.stored = append(c.stored, 0, 0, 0, 0)
	c.stored = frame.Append(c.stored, c.chunk)
	size := len(c.stored) - at - chunkHeaderBytes
	binary.BigEndian.PutUint32(c.stored[at+4:], uint32(size)) //nolint:gosec // a frame is little longer than what it holds
	c.chunk = c.chunk[:0]
	c.chunks++
}

func (e *Encoder) endSection() {
	if len(e.columns) == 0 {
		return
	}
	if e.next != 0 {
		e.fail("section %d ends within a row", e.id)
	}
	be := binary.BigEndian
	e.data = be.AppendUint16(e.data, uint16(e.id))
	e.data = be.AppendUint16(e.data, uint16(len(e.columns))) //nolint:gosec // at most MaxColumns
	e.data = be.AppendUint32(e.data, 0)
	e.data = be.AppendUint64(e.data, e.rows)
	for i := range e.columns {
		c := &e.columns[i]
		c.close()
		e.data = be.AppendUint32(e.data, uint32(c.kind))
		e.data = be.AppendUint32(e.data, c.chunks)
		e.data = append(e.data, c.stored...)
	}
	e.sections++
	e.columns, e.next, e.rows = nil, 0, 0
}

// Finish returns the object. A value that was out of bounds or of another kind
// than its column is base.ErrInvalid, and so is an object over MaxBytes.
func (e *Encoder) Finish() ([]byte, error) {
	e.endSection()
	length := len(e.data) + trailerBytes
	if length > MaxBytes || e.sections > MaxSections {
		e.fail("%d sections of %d bytes in all", e.sections, length)
	}
	if e.err != nil {
		return nil, fmt.Errorf("encoding checkpoint: %w", e.err)
	}
	binary.BigEndian.PutUint64(e.data[lengthOffset:], uint64(length))
	binary.BigEndian.PutUint32(e.data[sectionsOffset:], e.sections)
	return binary.BigEndian.AppendUint32(e.data, crc32.Checksum(e.data, castagnoli)), nil
}

// fail keeps the first thing that was wrong.
func (e *Encoder) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("%w: "+format, append([]any{base.ErrInvalid}, args...)...)
	}
}
