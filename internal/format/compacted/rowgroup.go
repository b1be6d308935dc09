package compacted

import (
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

const (
	// pieceRows and pieceBytes bound what is encoded between two looks at the
	// page size, so that large values cannot make a huge page.
	pieceRows  = 1024
	pieceBytes = 32 << 10
	// pageRows ends a page whatever its size: numbers pack so tightly that a
	// reader would otherwise decode a whole row group to find one row.
	pageRows = 16 << 10
)

// rowGroup collects the rows of one row group, column by column.
type rowGroup struct {
	rows                                        int
	bytes                                       int64
	offsets, timestamps, appendTimes, revisions []int64
	keys, values                                blobColumn
	headerKeys, headerValues                    blobColumn
	arena                                       arena
}

// blobColumn holds the byte strings of one column. defs has one level per entry,
// present or not; blobs has one byte string per present entry.
type blobColumn struct {
	blobs      []parquet.ByteArray
	defs, reps []int16
}

func (c *blobColumn) append(blob []byte, def int16) {
	c.blobs = append(c.blobs, blob)
	c.defs = append(c.defs, def)
}

func (c *blobColumn) reset() {
	clear(c.blobs)
	c.blobs, c.defs, c.reps = c.blobs[:0], c.defs[:0], c.reps[:0]
}

// arena holds copies of byte strings in blocks, which are used again after reset.
// Growing one buffer instead would copy each byte twice more.
type arena struct {
	full, free [][]byte
	block      []byte
}

const arenaBlockBytes = 256 << 10

func (a *arena) copy(blob []byte) []byte {
	if len(blob) > arenaBlockBytes/4 {
		return append(make([]byte, 0, len(blob)), blob...)
	}
	if cap(a.block)-len(a.block) < len(blob) || a.block == nil {
		a.nextBlock()
	}
	start := len(a.block)
	a.block = append(a.block, blob...)
	return a.block[start:len(a.block):len(a.block)]
}

func (a *arena) copyString(text string) []byte {
	return a.copy(unsafe.Slice(unsafe.StringData(text), len(text))) //nolint:gosec // only read, within the call
}

func (a *arena) nextBlock() {
	if a.block != nil {
		a.full = append(a.full, a.block)
	}
	if n := len(a.free); n > 0 {
		a.block, a.free = a.free[n-1], a.free[:n-1]
		return
	}
	a.block = make([]byte, 0, arenaBlockBytes)
}

func (a *arena) reset() {
	for _, block := range a.full {
		a.free = append(a.free, block[:0])
	}
	a.full, a.block = a.full[:0], a.block[:0]
}

func (g *rowGroup) append(r *recordbatch.Positioned, bytes int64) {
	g.rows++
	g.bytes += bytes
	g.offsets = append(g.offsets, int64(r.Offset))
	g.timestamps = append(g.timestamps, int64(r.Timestamp))
	g.appendTimes = append(g.appendTimes, int64(r.AppendTime))
	g.revisions = append(g.revisions, int64(r.Revision)) //nolint:gosec // Parquet's int64 keeps the bits
	g.appendOptional(&g.keys, r.Key)
	g.appendOptional(&g.values, r.Value)
	g.appendHeaders(r.Headers)
}

func (g *rowGroup) appendOptional(c *blobColumn, blob []byte) {
	if blob == nil {
		c.defs = append(c.defs, 0)
		return
	}
	c.append(g.arena.copy(blob), levelPresent)
}

func (g *rowGroup) appendHeaders(headers []recordbatch.Header) {
	if len(headers) == 0 {
		g.headerKeys.defs = append(g.headerKeys.defs, 0)
		g.headerKeys.reps = append(g.headerKeys.reps, 0)
		g.headerValues.defs = append(g.headerValues.defs, 0)
		g.headerValues.reps = append(g.headerValues.reps, 0)
		return
	}
	var rep int16
	for _, h := range headers {
		g.headerKeys.append(g.arena.copyString(h.Key), levelHeaderPresent)
		g.headerKeys.reps = append(g.headerKeys.reps, rep)
		if h.Value == nil {
			g.headerValues.defs = append(g.headerValues.defs, levelHeaderPresent)
		} else {
			g.headerValues.append(g.arena.copy(h.Value), levelHeaderValue)
		}
		g.headerValues.reps = append(g.headerValues.reps, rep)
		rep = 1
	}
}

func (g *rowGroup) reset() {
	g.rows, g.bytes = 0, 0
	g.offsets, g.timestamps = g.offsets[:0], g.timestamps[:0]
	g.appendTimes, g.revisions = g.appendTimes[:0], g.revisions[:0]
	for _, c := range []*blobColumn{&g.keys, &g.values, &g.headerKeys, &g.headerValues} {
		c.reset()
	}
	g.arena.reset()
}

// writeTo writes the columns in file order.
func (g *rowGroup) writeTo(w file.SerialRowGroupWriter) error {
	for _, column := range [][]int64{g.offsets, g.timestamps, g.appendTimes, g.revisions} {
		next, err := nextColumn[*file.Int64ColumnChunkWriter](w)
		if err != nil {
			return err
		}
		if err := writeLongs(next, column); err != nil {
			return err
		}
	}
	for _, column := range []struct {
		blobs *blobColumn
		full  int16
	}{{&g.keys, levelPresent}, {&g.values, levelPresent}, {&g.headerKeys, levelHeaderPresent}, {&g.headerValues, levelHeaderValue}} {
		next, err := nextColumn[*file.ByteArrayColumnChunkWriter](w)
		if err != nil {
			return err
		}
		if err := column.blobs.writeTo(next, column.full); err != nil {
			return err
		}
	}
	return w.Close()
}

func nextColumn[W file.ColumnChunkWriter](w file.SerialRowGroupWriter) (W, error) {
	var typed W
	column, err := w.NextColumn()
	if err != nil {
		return typed, fmt.Errorf("starting a column: %w", err)
	}
	typed, ok := column.(W)
	if !ok {
		return typed, fmt.Errorf("starting column %s: it has writer %T, want %T", column.Descr().Path(), column, typed)
	}
	return typed, nil
}

func writeLongs(w *file.Int64ColumnChunkWriter, values []int64) error {
	page := pageLimit{w: w}
	for len(values) > 0 {
		n := min(len(values), pieceRows)
		if _, err := w.WriteBatch(values[:n], nil, nil); err != nil {
			return fmt.Errorf("encoding %s: %w", w.Descr().Path(), err)
		}
		values = values[n:]
		if err := page.added(n, len(values) > 0); err != nil {
			return err
		}
	}
	return nil
}

// writeTo encodes the column piece by piece. full is the definition level of an
// entry that has bytes.
func (c *blobColumn) writeTo(w *file.ByteArrayColumnChunkWriter, full int16) error {
	rest := *c
	page := pageLimit{w: w}
	for len(rest.defs) > 0 {
		piece := rest.cut(full)
		if _, err := w.WriteBatch(piece.blobs, piece.defs, piece.reps); err != nil {
			return fmt.Errorf("encoding %s: %w", w.Descr().Path(), err)
		}
		if err := page.added(len(piece.defs), len(rest.defs) > 0); err != nil {
			return err
		}
	}
	return nil
}

// pageLimit ends a page after pageRows entries, unless the library has just
// ended it because of its size.
type pageLimit struct {
	w interface {
		file.ColumnChunkWriter
		FlushCurrentPage() error
	}
	levels int
	bytes  int64
}

// added counts entries just written; more says whether others follow.
func (p *pageLimit) added(levels int, more bool) error {
	if written := p.w.TotalCompressedBytes(); written != p.bytes {
		p.bytes, p.levels = written, 0
		return nil
	}
	p.levels += levels
	if p.levels < pageRows || !more {
		return nil
	}
	if err := p.w.FlushCurrentPage(); err != nil {
		return fmt.Errorf("ending a page of %s: %w", p.w.Descr().Path(), err)
	}
	p.bytes, p.levels = p.w.TotalCompressedBytes(), 0
	return nil
}

// cut takes the next piece of whole rows off the front of c.
func (c *blobColumn) cut(full int16) blobColumn {
	levels, blobs, size := 0, 0, 0
	for ; levels < len(c.defs); levels++ {
		rowStart := len(c.reps) == 0 || c.reps[levels] == 0
		if rowStart && (levels >= pieceRows || size >= pieceBytes) {
			break
		}
		if c.defs[levels] == full {
			size += len(c.blobs[blobs])
			blobs++
		}
	}
	piece := blobColumn{defs: c.defs[:levels], blobs: c.blobs[:blobs]}
	c.defs, c.blobs = c.defs[levels:], c.blobs[blobs:]
	if len(c.reps) > 0 {
		piece.reps, c.reps = c.reps[:levels], c.reps[levels:]
	}
	return piece
}
