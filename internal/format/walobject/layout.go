package walobject

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Version is the version that this package writes and the newest it reads.
const Version = 1

// MaxAlignment is the most that an object's length may be rounded up to.
const MaxAlignment = 1 << 20

const (
	headerBytes  = 44
	entryBytes   = 44
	trailerBytes = 24

	magic    = "LSWO"
	endMagic = "OWSL"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header says whose object it is.
type Header struct {
	Cluster base.ClusterID
	Shard   base.Shard
	Writer  base.WriterID
	Seq     base.Seq
}

// Block is one log's part of an object, as its index lists it.
type Block struct {
	Log     base.LogID
	Records int
	// Pos and Len are the block's place in the object, in bytes.
	Pos, Len int
	// MinTime and MaxTime are the extremes of the record times.
	MinTime, MaxTime base.Millis
	CRC              uint32
}

func putHeader(dst []byte, h Header) {
	copy(dst, magic)
	binary.BigEndian.PutUint16(dst[4:], Version)
	binary.BigEndian.PutUint16(dst[6:], uint16(h.Shard))
	copy(dst[8:], h.Cluster[:])
	binary.BigEndian.PutUint64(dst[24:], uint64(h.Writer))
	binary.BigEndian.PutUint64(dst[32:], uint64(h.Seq))
	binary.BigEndian.PutUint32(dst[40:], crc32.Checksum(dst[:40], castagnoli))
}

func parseHeader(data []byte) (Header, error) {
	if len(data) < headerBytes || string(data[:4]) != magic {
		return Header{}, corruptf("no WAL object")
	}
	if crc32.Checksum(data[:40], castagnoli) != binary.BigEndian.Uint32(data[40:]) {
		return Header{}, corruptf("header checksum does not match")
	}
	if version := binary.BigEndian.Uint16(data[4:]); version != Version {
		return Header{}, fmt.Errorf("WAL object version %d, this binary knows %d: %w", version, Version, base.ErrNewerFormat)
	}
	h := Header{
		Shard:  base.Shard(binary.BigEndian.Uint16(data[6:])),
		Writer: base.WriterID(binary.BigEndian.Uint64(data[24:])),
		Seq:    base.Seq(binary.BigEndian.Uint64(data[32:])),
	}
	copy(h.Cluster[:], data[8:])
	return h, nil
}

func appendEntry(dst []byte, b *Block) []byte {
	be := binary.BigEndian
	dst = be.AppendUint64(dst, uint64(b.Log.Stream))
	dst = be.AppendUint32(dst, uint32(b.Log.Partition)) //nolint:gosec // two's complement
	dst = be.AppendUint32(dst, uint32(b.Records))       //nolint:gosec // bounded by the object's length
	dst = be.AppendUint32(dst, uint32(b.Pos))           //nolint:gosec // bounded by the object's length
	dst = be.AppendUint32(dst, uint32(b.Len))           //nolint:gosec // bounded by the object's length
	dst = be.AppendUint64(dst, uint64(b.MinTime))       //nolint:gosec // two's complement
	dst = be.AppendUint64(dst, uint64(b.MaxTime))       //nolint:gosec // two's complement
	return be.AppendUint32(dst, b.CRC)
}

func parseEntry(data []byte) Block {
	be := binary.BigEndian
	return Block{
		Log: base.LogID{
			Stream:    base.StreamID(be.Uint64(data)),
			Partition: base.Partition(be.Uint32(data[8:])), //nolint:gosec // two's complement
		},
		Records: int(be.Uint32(data[12:])),
		Pos:     int(be.Uint32(data[16:])),
		Len:     int(be.Uint32(data[20:])),
		MinTime: base.Millis(be.Uint64(data[24:])), //nolint:gosec // two's complement
		MaxTime: base.Millis(be.Uint64(data[32:])), //nolint:gosec // two's complement
		CRC:     be.Uint32(data[40:]),
	}
}

func corruptf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{base.ErrCorrupt}, args...)...)
}
