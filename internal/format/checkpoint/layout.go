package checkpoint

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Version is the version that this package writes and the newest it reads.
const Version = 1

// Bounds of a checkpoint.
const (
	// MaxBytes is the most that an object may have.
	MaxBytes = 1 << 30
	// MaxSections and MaxColumns bound what an object and a section hold.
	MaxSections = 256
	MaxColumns  = 64
	// MaxValueBytes is the longest byte string of a column.
	MaxValueBytes = 1 << 20

	// chunkBytes closes a chunk of a column; one value may lie beyond it.
	chunkBytes    = 64 << 10
	maxChunkBytes = chunkBytes + MaxValueBytes + binary.MaxVarintLen64
)

const (
	headerBytes       = 160
	sectionBytes      = 16
	columnBytes       = 8
	chunkHeaderBytes  = 8
	trailerBytes      = 4
	lengthOffset      = 136
	sectionsOffset    = 144
	prefixBytes       = 6
	magic             = "LSCP"
	maxColumnChunks   = 1 << 20
	maxRowsPerSection = 1 << 32
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Kind is what the values of a column are.
type Kind uint8

// The kinds of columns.
const (
	Numbers Kind = iota + 1
	Texts
)

// SectionID says what a section holds. Package shard assigns them.
type SectionID uint16

// Header says of which state the checkpoint is.
type Header struct {
	Cluster base.ClusterID
	Shard   base.Shard
	// Revision is the newest record that is folded into the state, Time its
	// append time.
	Revision base.Revision
	Time     base.Millis
	// Chain is the hash over the history up to Revision, State that over the
	// state.
	Chain, State base.Hash
	// Record is the SHA-256 of the record at Revision, by which a reader of the
	// log sees that it goes on where the checkpoint ends. Zeros where there is
	// no such record.
	Record base.Hash
}

func (h *Header) append(dst []byte) []byte {
	be := binary.BigEndian
	dst = append(dst, magic...)
	dst = be.AppendUint16(dst, Version)
	dst = be.AppendUint16(dst, uint16(h.Shard))
	dst = append(dst, h.Cluster[:]...)
	dst = be.AppendUint64(dst, uint64(h.Revision))
	dst = be.AppendUint64(dst, uint64(h.Time)) //nolint:gosec // two's complement
	dst = append(dst, h.Chain[:]...)
	dst = append(dst, h.State[:]...)
	dst = append(dst, h.Record[:]...)
	return append(dst, make([]byte, headerBytes-lengthOffset)...)
}

// parseHeader expects an object whose checksum was verified.
func parseHeader(data []byte) (h Header, sections int, err error) {
	be := binary.BigEndian
	if length := be.Uint64(data[lengthOffset:]); length != uint64(len(data)) {
		return h, 0, corruptf("it has %d bytes and declares %d", len(data), length)
	}
	h.Shard = base.Shard(be.Uint16(data[6:]))
	copy(h.Cluster[:], data[8:])
	h.Revision = base.Revision(be.Uint64(data[24:]))
	h.Time = base.Millis(be.Uint64(data[32:])) //nolint:gosec // two's complement
	copy(h.Chain[:], data[40:])
	copy(h.State[:], data[72:])
	copy(h.Record[:], data[104:])
	count := be.Uint32(data[sectionsOffset:])
	if count > MaxSections {
		return h, 0, corruptf("%d sections", count)
	}
	for _, b := range data[sectionsOffset+4 : headerBytes] {
		if b != 0 {
			return h, 0, corruptf("its reserved bytes are not zero")
		}
	}
	return h, int(count), nil
}

func corruptf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{base.ErrCorrupt}, args...)...)
}
