package recordbatch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/lakestream-go/lakestream/internal/base"
)

// HeaderBytes is the length of a batch before its records.
const HeaderBytes = 61

// TargetBytes is the size, before compression, at which a batch is closed: large
// enough to compress well, small enough to be read alone.
const TargetBytes = 64 << 10

// MaxBatchBytes bounds the records of one batch before compression, and with
// them a single record.
const MaxBatchBytes = 256 << 20

// Offsets of the fields, as FORMAT.md lists them.
const (
	atLength        = 8
	atLeaderEpoch   = 12
	atMagic         = 16
	atCRC           = 17
	atAttributes    = 21
	atLastDelta     = 23
	atBaseTime      = 27
	atMaxTime       = 35
	atProducer      = 43
	atProducerEpoch = 51
	atSequence      = 53
	atCount         = 57

	lengthEnd = atLength + 4
	magicV2   = 2
	// minRecordBytes is a record without key, value and headers.
	minRecordBytes = 7
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Compression is how the records of a batch are stored. Its values are those of
// Kafka's attributes.
type Compression uint8

// The compressions that this package writes and reads.
const (
	None Compression = 0
	Zstd Compression = 4
)

// String returns none or zstd.
func (c Compression) String() string {
	if c == Zstd {
		return "zstd"
	}
	return "none"
}

// ParseCompression reads what String writes, else ErrInvalid.
func ParseCompression(text string) (Compression, error) {
	switch text {
	case "none":
		return None, nil
	case "zstd":
		return Zstd, nil
	default:
		return None, fmt.Errorf("compression %q: want none or zstd: %w", text, base.ErrInvalid)
	}
}

// BatchInfo is the header of one batch.
type BatchInfo struct {
	// Base is the base offset: relative to the block in a stored batch.
	Base base.Offset
	// Bytes is the length of the whole batch.
	Bytes       int
	Compression Compression
	Records     int
	// BaseTime is the record time of the first record, MaxTime the largest.
	BaseTime, MaxTime base.Millis
}

// InspectBatch checks the first batch of data against its CRC and the canonical
// form, and returns its header. It reads no record. Damage is base.ErrCorrupt.
func InspectBatch(data []byte) (BatchInfo, error) {
	if len(data) < HeaderBytes {
		return BatchInfo{}, corruptf("batch header cut off after %d bytes", len(data))
	}
	length := int64(binary.BigEndian.Uint32(data[atLength:]))
	if length < HeaderBytes-lengthEnd || length > int64(len(data)-lengthEnd) {
		return BatchInfo{}, corruptf("batch length %d of %d bytes", length, len(data))
	}
	batch := data[:lengthEnd+length]
	if magic := batch[atMagic]; magic != magicV2 {
		return BatchInfo{}, corruptf("batch magic %d", magic)
	}
	if epoch := binary.BigEndian.Uint32(batch[atLeaderEpoch:]); epoch != 0 {
		return BatchInfo{}, corruptf("batch leader epoch %d", epoch)
	}
	if crc32.Checksum(batch[atAttributes:], castagnoli) != binary.BigEndian.Uint32(batch[atCRC:]) {
		return BatchInfo{}, corruptf("batch checksum does not match")
	}
	return parseHeader(batch)
}

// parseHeader reads the fields that the CRC covers and has vouched for.
func parseHeader(batch []byte) (BatchInfo, error) {
	count := int64(binary.BigEndian.Uint32(batch[atCount:]))
	last := int64(binary.BigEndian.Uint32(batch[atLastDelta:]))
	if count < 1 || count > math.MaxInt32 || last != count-1 {
		return BatchInfo{}, corruptf("batch of %d records with last offset delta %d", count, last)
	}
	attributes := binary.BigEndian.Uint16(batch[atAttributes:])
	if attributes != uint16(None) && attributes != uint16(Zstd) {
		return BatchInfo{}, corruptf("batch attributes %#x", attributes)
	}
	info := BatchInfo{
		Base:        base.Offset(binary.BigEndian.Uint64(batch)), //nolint:gosec // a negative one fails the comparison with the expected offset
		Bytes:       len(batch),
		Compression: Compression(attributes),
		Records:     int(count),
		BaseTime:    base.Millis(binary.BigEndian.Uint64(batch[atBaseTime:])), //nolint:gosec // two's complement, as written
		MaxTime:     base.Millis(binary.BigEndian.Uint64(batch[atMaxTime:])),  //nolint:gosec // two's complement, as written
	}
	if info.Compression == None && info.Records > (len(batch)-HeaderBytes)/minRecordBytes {
		return BatchInfo{}, corruptf("batch of %d records in %d bytes", info.Records, len(batch))
	}
	return info, nil
}

// putHeader writes the header of the batch that fills batch, its records in
// place, and its CRC last.
func putHeader(batch []byte, info BatchInfo) {
	be := binary.BigEndian
	be.PutUint64(batch, uint64(info.Base))                       //nolint:gosec // offsets are not negative
	be.PutUint32(batch[atLength:], uint32(len(batch)-lengthEnd)) //nolint:gosec // below MaxBatchBytes and a margin
	be.PutUint32(batch[atLeaderEpoch:], 0)                       // no epochs: nobody leads
	batch[atMagic] = magicV2                                     //
	be.PutUint16(batch[atAttributes:], uint16(info.Compression)) //
	be.PutUint32(batch[atLastDelta:], uint32(info.Records-1))    //nolint:gosec // bounded by MaxBatchBytes
	be.PutUint64(batch[atBaseTime:], uint64(info.BaseTime))      //nolint:gosec // two's complement
	be.PutUint64(batch[atMaxTime:], uint64(info.MaxTime))        //nolint:gosec // two's complement
	be.PutUint64(batch[atProducer:], math.MaxUint64)             // −1: no idempotent producer
	be.PutUint16(batch[atProducerEpoch:], math.MaxUint16)        // −1
	be.PutUint32(batch[atSequence:], math.MaxUint32)             // −1
	be.PutUint32(batch[atCount:], uint32(info.Records))          //nolint:gosec // bounded by MaxBatchBytes
	be.PutUint32(batch[atCRC:], crc32.Checksum(batch[atAttributes:], castagnoli))
}

// PatchBase sets the base offset of the batch that starts data. The CRC does not
// cover it and stays valid; a Reader accepts such a batch only where it expects
// that offset.
func PatchBase(data []byte, offset base.Offset) {
	binary.BigEndian.PutUint64(data, uint64(offset)) //nolint:gosec // offsets are not negative
}

func corruptf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{base.ErrCorrupt}, args...)...)
}
