package walobject

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"math"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

// Bound returns a number of bytes that an object does not exceed whose blocks are
// bounded by blockBytes together: the buffer to give to Reset.
func Bound(blocks, blockBytes, alignment int) int {
	return headerBytes + blockBytes + blocks*entryBytes + trailerBytes + alignment
}

// Builder makes one object after the other. The zero value is ready for Reset.
// It is not safe for concurrent use.
type Builder struct {
	buffer    []byte
	alignment int
	blocks    []Block
}

// Reset starts an object in buffer, from its first byte, which the object keeps.
// The object's length will be a multiple of alignment, 1 to MaxAlignment. As long
// as the object fits the buffer's capacity it is never moved.
func (b *Builder) Reset(buffer []byte, header Header, alignment int) {
	b.buffer = append(buffer[:0], make([]byte, headerBytes)...)
	b.alignment = alignment
	b.blocks = b.blocks[:0]
	putHeader(b.buffer, header)
}

// Add appends a block of one log, which may have several.
func (b *Builder) Add(log base.LogID, runs iter.Seq[recordbatch.Run], compression recordbatch.Compression) {
	block := Block{Log: log, Pos: len(b.buffer), MinTime: math.MaxInt64, MaxTime: math.MinInt64}
	for run := range runs {
		block.Records += run.Records
		block.MinTime = min(block.MinTime, run.MinTime)
		block.MaxTime = max(block.MaxTime, run.MaxTime)
	}
	b.buffer = recordbatch.AppendBlock(b.buffer, runs, compression)
	block.Len = len(b.buffer) - block.Pos
	block.CRC = crc32.Checksum(b.buffer[block.Pos:], castagnoli)
	b.blocks = append(b.blocks, block)
}

// Finish completes the object and returns it with its index, which is valid until
// the next Reset. An object over 4 GiB is base.ErrInvalid.
func (b *Builder) Finish() ([]byte, []Block, error) {
	tail := len(b.blocks)*entryBytes + trailerBytes
	if over := (len(b.buffer) + tail) % b.alignment; over != 0 {
		b.pad(b.alignment - over)
	}
	length := len(b.buffer) + tail
	if length > math.MaxUint32 {
		return nil, nil, fmt.Errorf("building WAL object of %d bytes: %w", length, base.ErrInvalid)
	}
	index := len(b.buffer)
	for i := range b.blocks {
		b.buffer = appendEntry(b.buffer, &b.blocks[i])
	}
	be := binary.BigEndian
	b.buffer = be.AppendUint64(b.buffer, uint64(length))
	b.buffer = be.AppendUint32(b.buffer, uint32(len(b.blocks))) //nolint:gosec // bounded by the length
	b.buffer = be.AppendUint32(b.buffer, 0)
	b.buffer = be.AppendUint32(b.buffer, crc32.Checksum(b.buffer[index:], castagnoli))
	b.buffer = append(b.buffer, endMagic...)
	return b.buffer, b.blocks, nil
}

// pad appends n zeros, also where the buffer was used before.
func (b *Builder) pad(n int) {
	start := len(b.buffer)
	b.buffer = slices.Grow(b.buffer, n)[:start+n]
	clear(b.buffer[start:])
}

// Restamp gives a finished object to another writer, in place.
func Restamp(object []byte, header Header) {
	putHeader(object, header)
}
