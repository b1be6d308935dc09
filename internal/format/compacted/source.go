package compacted

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// maxHeldChunks is how many verified chunks a verifiedReader keeps: each column
// reads on in its own chunk, and the page index needs one.
const maxHeldChunks = numColumns + 2

// verifiedReader reads the part of an object before its checksum block, in whole
// chunks, and returns no byte of a chunk whose checksum does not match. It
// keeps the first error, because the Parquet library does not pass each one on.
// It is not safe for concurrent use.
type verifiedReader struct {
	r    io.ReaderAt
	sums *checksums
	pos  int64 // for Read and Seek
	held []heldChunk
	tick int64
	err  error
}

type heldChunk struct {
	index int64
	used  int64
	data  []byte
}

// ReadAt implements io.ReaderAt.
func (v *verifiedReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, v.fail(corruptf("read at %d", off))
	}
	n := 0
	for n < len(p) {
		if off >= v.sums.covered {
			return n, io.EOF
		}
		index := off / chunkBytes
		chunk, err := v.chunk(index)
		if err != nil {
			return n, v.fail(err)
		}
		copied := copy(p[n:], chunk[off-index*chunkBytes:])
		n += copied
		off += int64(copied)
	}
	return n, nil
}

func (v *verifiedReader) fail(err error) error {
	if v.err == nil {
		v.err = err
	}
	return err
}

// chunk returns a verified chunk, which is valid until the next call.
func (v *verifiedReader) chunk(index int64) ([]byte, error) {
	v.tick++
	for i := range v.held {
		if v.held[i].index == index {
			v.held[i].used = v.tick
			return v.held[i].data, nil
		}
	}
	slot := v.slot()
	start, length := v.sums.chunkRange(index)
	slot.data = slot.data[:length]
	slot.index = -1
	if err := readFull(v.r, slot.data, start); err != nil {
		return nil, err
	}
	if sum := crc32.Checksum(slot.data, castagnoli); sum != v.sums.chunks[index] {
		return nil, corruptf("bytes [%d, %d): checksum %08x, want %08x", start, start+length, sum, v.sums.chunks[index])
	}
	slot.index, slot.used = index, v.tick
	return slot.data, nil
}

// slot returns a free place, or the one that was not used for the longest time.
func (v *verifiedReader) slot() *heldChunk {
	if len(v.held) < maxHeldChunks {
		v.held = append(v.held, heldChunk{data: make([]byte, 0, chunkBytes)})
		return &v.held[len(v.held)-1]
	}
	oldest := 0
	for i := range v.held {
		if v.held[i].used < v.held[oldest].used {
			oldest = i
		}
	}
	return &v.held[oldest]
}

// Read implements io.Reader, which the Parquet library asks for.
func (v *verifiedReader) Read(p []byte) (int, error) {
	n, err := v.ReadAt(p, v.pos)
	v.pos += int64(n)
	return n, err
}

// Seek implements io.Seeker, which the Parquet library asks for.
func (v *verifiedReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += v.pos
	case io.SeekEnd:
		offset += v.sums.covered
	}
	if offset < 0 {
		return v.pos, v.fail(corruptf("seek to %d", offset))
	}
	v.pos = offset
	return offset, nil
}

// readFull fills p from off. An object that ends before is corrupt.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return corruptf("the object ends inside bytes [%d, %d)", off, off+int64(len(p)))
	default:
		return fmt.Errorf("reading bytes [%d, %d): %w", off, off+int64(len(p)), err)
	}
}
