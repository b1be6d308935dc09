package recordbatch

import "math/bits"

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

func (s *scanner) varint() int64 {
	if s.pos < len(s.data) {
		if b := s.data[s.pos]; b < 0x80 {
			s.pos++
			return unzigzag(uint64(b))
		}
	}
	return s.longVarint()
}

func (s *scanner) longVarint() int64 {
	var u uint64
	for i := range maxVarintBytes {
		if s.pos+i >= len(s.data) {
			break
		}
		b := s.data[s.pos+i]
		u |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			s.pos += i + 1
			return unzigzag(u)
		}
	}
	s.bad = true
	return 0
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
