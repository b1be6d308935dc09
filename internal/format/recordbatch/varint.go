package recordbatch

import (
	"encoding/binary"
	"math/bits"
)

// maxVarintBytes is the longest zigzag varint of 64 bits.
const maxVarintBytes = 10

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) } //nolint:gosec // the bits are what counts
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
func varintBytes(v int64) int { return (bits.Len64(zigzag(v)|1) + 6) / 7 }

// putVarint writes v at the start of dst, which has room, and returns its length.
func putVarint(dst []byte, v int64) int {
	u := zigzag(v)
	n := 0
	for u >= 0x80 {
		dst[n] = byte(u) | 0x80
		u >>= 7
		n++
	}
	dst[n] = byte(u)
	return n + 1
}

// scanner takes varints and byte strings off the front of data. The first
// trouble sets bad, and from then on everything it returns is zero, so that a
// caller checks once per record and not once per field.
type scanner struct {
	data []byte
	pos  int
	bad  bool
}

// varint is small enough to be inlined; most fields take one byte.
func (s *scanner) varint() int64 {
	if s.pos < len(s.data) && s.data[s.pos] < 0x80 {
		s.pos++
		return unzigzag(uint64(s.data[s.pos-1]))
	}
	return s.longVarint()
}

//go:noinline
func (s *scanner) longVarint() int64 {
	data := s.data[min(s.pos, len(s.data)):]
	if len(data) >= 2 && data[1] < 0x80 { // lengths, mostly
		s.pos += 2
		return unzigzag(uint64(data[0]&0x7f) | uint64(data[1])<<7)
	}
	u, n := binary.Uvarint(data)
	if n <= 0 {
		s.bad = true
		return 0
	}
	s.pos += n
	return unzigzag(u)
}

// octets takes a varint length and that many bytes: nil for length −1.
func (s *scanner) octets() []byte {
	n := s.varint()
	if n == -1 {
		return nil
	}
	if n < 0 || n > int64(len(s.data)-s.pos) {
		s.bad = true
		return nil
	}
	end := s.pos + int(n)
	b := s.data[s.pos:end:end]
	s.pos = end
	return b
}
