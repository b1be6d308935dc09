package compacted

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/lakestream-go/lakestream/internal/base"
)

// The checksum block stands between the page index and the Parquet footer, where
// Parquet readers do not look. FORMAT.md has the offset table.
const (
	chunkBytes   = 64 << 10
	trailerBytes = 32
	crcBytes     = 4
	// tailBytes are the footer length and the magic that end a Parquet file.
	tailBytes = 8
	// blockVersion is the version of the checksum block's layout.
	blockVersion = 1
)

const (
	parquetMagic = "PAR1"
	blockMagic   = "LSCK"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksums cover one object: each chunk of the bytes before the block, and the
// footer with its tail.
type checksums struct {
	// covered counts the bytes before the block.
	covered int64
	chunks  []uint32
	footer  uint32
}

func (c *checksums) encode() []byte {
	out := make([]byte, 0, len(c.chunks)*crcBytes+trailerBytes)
	for _, sum := range c.chunks {
		out = binary.LittleEndian.AppendUint32(out, sum)
	}
	out = binary.LittleEndian.AppendUint64(out, uint64(c.covered)) //nolint:gosec // a size
	out = binary.LittleEndian.AppendUint32(out, chunkBytes)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(c.chunks))) //nolint:gosec // bounded by the object size
	out = binary.LittleEndian.AppendUint32(out, c.footer)
	out = binary.LittleEndian.AppendUint16(out, blockVersion)
	out = binary.LittleEndian.AppendUint16(out, 0)
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli))
	return append(out, blockMagic...)
}

// trailer is the fixed end of a checksum block, enough to find its beginning.
type trailer struct {
	covered, chunkSize, chunkCount int64
	footer, block                  uint32
	version                        uint16
}

func decodeTrailer(b []byte) (trailer, error) {
	if string(b[trailerBytes-len(blockMagic):]) != blockMagic {
		return trailer{}, corruptf("checksum block: magic %q, want %q", b[trailerBytes-len(blockMagic):], blockMagic)
	}
	return trailer{
		covered:    int64(binary.LittleEndian.Uint64(b[0:])), //nolint:gosec // a negative one is refused by blockRange
		chunkSize:  int64(binary.LittleEndian.Uint32(b[8:])),
		chunkCount: int64(binary.LittleEndian.Uint32(b[12:])),
		footer:     binary.LittleEndian.Uint32(b[16:]),
		version:    binary.LittleEndian.Uint16(b[20:]),
		block:      binary.LittleEndian.Uint32(b[24:]),
	}, nil
}

// check refuses a trailer that contradicts itself or the position at which its
// block ends.
func (t trailer) check(blockEnd int64) error {
	start := blockEnd - trailerBytes - t.chunkCount*crcBytes
	if t.covered != start || start < 0 {
		return corruptf("checksum block of %d chunks covers %d bytes and starts at %d", t.chunkCount, t.covered, start)
	}
	return nil
}

// decodeChecksums reads a whole block, whose trailer was checked. Its own
// checksum goes before its version: a flipped version is corrupt, not newer.
func decodeChecksums(block []byte, t trailer) (*checksums, error) {
	sumAt := len(block) - len(blockMagic) - crcBytes
	if sum := crc32.Checksum(block[:sumAt], castagnoli); sum != t.block {
		return nil, corruptf("checksum block: checksum %08x, want %08x", sum, t.block)
	}
	if t.version > blockVersion {
		return nil, fmt.Errorf("compacted object with checksum block version %d, this version reads up to %d: %w",
			t.version, blockVersion, base.ErrNewerFormat)
	}
	if t.chunkSize != chunkBytes || t.chunkCount != (t.covered+chunkBytes-1)/chunkBytes {
		return nil, corruptf("checksum block: %d chunks of %d bytes for %d bytes", t.chunkCount, t.chunkSize, t.covered)
	}
	c := &checksums{covered: t.covered, chunks: make([]uint32, t.chunkCount), footer: t.footer}
	for i := range c.chunks {
		c.chunks[i] = binary.LittleEndian.Uint32(block[i*crcBytes:])
	}
	return c, nil
}

// chunkRange returns where chunk i lies.
func (c *checksums) chunkRange(i int64) (start, length int64) {
	start = i * chunkBytes
	return start, min(chunkBytes, c.covered-start)
}

// checksumWriter passes bytes on in whole chunks and keeps their checksums.
// After hold it collects the rest of the file, in which the Parquet writer puts
// the page index and the footer, so that finish can insert the block.
type checksumWriter struct {
	w       io.Writer
	chunk   []byte
	sums    checksums
	held    []byte
	holding bool
	written int64
}

func newChecksumWriter(w io.Writer) *checksumWriter {
	return &checksumWriter{w: w, chunk: make([]byte, 0, chunkBytes)}
}

// Write implements io.Writer.
func (c *checksumWriter) Write(p []byte) (int, error) {
	if c.holding {
		c.held = append(c.held, p...)
		return len(p), nil
	}
	return len(p), c.cover(p)
}

// cover adds bytes that come before the block.
func (c *checksumWriter) cover(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), chunkBytes-len(c.chunk))
		c.chunk = append(c.chunk, p[:n]...)
		p = p[n:]
		if len(c.chunk) == chunkBytes {
			if err := c.flushChunk(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *checksumWriter) flushChunk() error {
	if len(c.chunk) == 0 {
		return nil
	}
	c.sums.chunks = append(c.sums.chunks, crc32.Checksum(c.chunk, castagnoli))
	c.sums.covered += int64(len(c.chunk))
	err := c.emit(c.chunk)
	c.chunk = c.chunk[:0]
	return err
}

func (c *checksumWriter) emit(p []byte) error {
	n, err := c.w.Write(p)
	c.written += int64(n)
	if err == nil && n < len(p) {
		return io.ErrShortWrite
	}
	return err
}

// hold starts to collect instead of writing.
func (c *checksumWriter) hold() { c.holding = true }

// finish writes what hold collected, with the block before the footer.
func (c *checksumWriter) finish() error {
	footerBytes, err := footerLength(c.held[max(0, len(c.held)-tailBytes):])
	if err != nil || footerBytes+tailBytes > int64(len(c.held)) {
		return fmt.Errorf("finding the footer of %d bytes just written: %w", len(c.held), err)
	}
	footerAt := int64(len(c.held)) - tailBytes - footerBytes
	index, footer := c.held[:footerAt], c.held[footerAt:]
	if err := c.cover(index); err != nil {
		return err
	}
	if err := c.flushChunk(); err != nil {
		return err
	}
	c.sums.footer = crc32.Checksum(footer, castagnoli)
	if err := c.emit(c.sums.encode()); err != nil {
		return err
	}
	return c.emit(footer)
}

// footerLength reads the last bytes of a Parquet file.
func footerLength(tail []byte) (int64, error) {
	if len(tail) != tailBytes || string(tail[crcBytes:]) != parquetMagic {
		return 0, corruptf("the object does not end as a Parquet file: %x", tail)
	}
	return int64(binary.LittleEndian.Uint32(tail)), nil
}
