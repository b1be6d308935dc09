package blob

import "unsafe"

// BlockSize is the alignment, in bytes, that direct writes need: both the address
// and the length of the data are multiples of it. It is a multiple of the logical
// block size of every disk in use.
const BlockSize = 4096

// AlignedBuffer returns a zeroed buffer of size bytes whose address and capacity
// are multiples of BlockSize. Put from such a buffer, at a length that is a
// multiple of BlockSize, bypasses the page cache where the file system allows it
// and so costs a fraction of the CPU. size must not be negative.
func AlignedBuffer(size int) []byte {
	capacity := (size + BlockSize - 1) / BlockSize * BlockSize
	raw := make([]byte, capacity+BlockSize)
	start := 0
	if over := misalignment(raw); over != 0 {
		start = BlockSize - over
	}
	return raw[start : start+size : start+capacity]
}

// isAligned reports whether data can be written directly.
func isAligned(data []byte) bool {
	return len(data) > 0 && len(data)%BlockSize == 0 && misalignment(data) == 0
}

// misalignment returns how far the address of data lies behind a multiple of
// BlockSize.
func misalignment(data []byte) int {
	address := uintptr(unsafe.Pointer(unsafe.SliceData(data))) //nolint:gosec // only the address is looked at
	return int(address % BlockSize)
}
