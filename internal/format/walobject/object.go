package walobject

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Object is a verified object.
type Object struct {
	Header Header
	// Blocks is the index, in the order of the blocks.
	Blocks []Block
	// Padding is the number of zeros between the blocks and the index.
	Padding int

	data []byte
}

// Parse verifies every byte of an object and returns it; data is kept, not
// copied. It does not parse records: each block is a block of package
// recordbatch, whose Reader does. Damage is base.ErrCorrupt, a newer version
// base.ErrNewerFormat. It allocates in proportion to the index at most.
func Parse(data []byte) (*Object, error) {
	header, err := parseHeader(data)
	if err != nil {
		return nil, fmt.Errorf("reading WAL object: %w", err)
	}
	o := &Object{Header: header, data: data}
	index, err := o.findIndex()
	if err == nil {
		err = o.readIndex(index)
	}
	if err != nil {
		return nil, fmt.Errorf("reading WAL object: %w", err)
	}
	return o, nil
}

// Expect checks whose object it is: base.ErrForeign for another cluster's,
// base.ErrCorrupt for another object of this cluster, which stands under a key
// that is not its own.
func (o *Object) Expect(want Header) error {
	if o.Header.Cluster != want.Cluster {
		return fmt.Errorf("reading WAL object: it is of cluster %s, want %s: %w", o.Header.Cluster, want.Cluster, base.ErrForeign)
	}
	if o.Header != want {
		return fmt.Errorf("reading WAL object: it is %s/%d/%d, want %s/%d/%d: %w",
			o.Header.Shard, o.Header.Writer, o.Header.Seq, want.Shard, want.Writer, want.Seq, base.ErrCorrupt)
	}
	return nil
}

// Block returns the bytes of the i-th block, valid as long as the data of Parse.
func (o *Object) Block(i int) []byte {
	b := &o.Blocks[i]
	return o.data[b.Pos : b.Pos+b.Len : b.Pos+b.Len]
}

// findIndex checks the trailer and returns the index, which lies before it.
func (o *Object) findIndex() ([]byte, error) {
	if len(o.data) < headerBytes+trailerBytes {
		return nil, corruptf("%d bytes are too few", len(o.data))
	}
	trailer := o.data[len(o.data)-trailerBytes:]
	if string(trailer[20:]) != endMagic {
		return nil, corruptf("it does not end as a WAL object does")
	}
	if length := binary.BigEndian.Uint64(trailer); length != uint64(len(o.data)) {
		return nil, corruptf("it has %d bytes and declares %d", len(o.data), length)
	}
	size := int64(binary.BigEndian.Uint32(trailer[8:])) * entryBytes
	if size > int64(len(o.data)-headerBytes-trailerBytes) {
		return nil, corruptf("its index does not fit")
	}
	start := len(o.data) - trailerBytes - int(size)
	sealed := o.data[start : len(o.data)-8]
	if crc32.Checksum(sealed, castagnoli) != binary.BigEndian.Uint32(trailer[16:]) {
		return nil, corruptf("index checksum does not match")
	}
	return o.data[start : start+int(size)], nil
}

// readIndex checks the blocks and the padding behind them.
func (o *Object) readIndex(index []byte) error {
	end := len(o.data) - trailerBytes - len(index)
	next := headerBytes
	o.Blocks = make([]Block, 0, len(index)/entryBytes)
	for ; len(index) > 0; index = index[entryBytes:] {
		b := parseEntry(index)
		if b.Pos != next || b.Len < 1 || b.Len > end-next || b.Records < 1 || b.MinTime > b.MaxTime {
			return corruptf("block %d of log %s contradicts the index", len(o.Blocks), b.Log)
		}
		next += b.Len
		if crc32.Checksum(o.data[b.Pos:next], castagnoli) != b.CRC {
			return corruptf("checksum of block %d of log %s does not match", len(o.Blocks), b.Log)
		}
		o.Blocks = append(o.Blocks, b)
	}
	o.Padding = end - next
	if o.Padding >= MaxAlignment {
		return corruptf("%d bytes of padding", o.Padding)
	}
	for _, b := range o.data[next:end] {
		if b != 0 {
			return corruptf("the padding is not zero")
		}
	}
	return nil
}
