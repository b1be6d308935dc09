// Package frame compresses pieces of stored objects as zstd frames and reads them
// back within bounds: what a frame claims to hold is compared with a limit, and
// with what a frame of its length can hold, before anything is allocated.
//
// The same bytes always give the same frame, so that two instances that write the
// same object write it alike. To give another codec a compressed part, store the
// frame with its length beside it and cover both by the object's checksum.
package frame

import (
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/lakestream-go/lakestream/internal/base"
)

// MaxBytes is the most that one frame may hold.
const MaxBytes = 64 << 20

// windowBytes bounds the history that a coder keeps.
const windowBytes = 1 << 20

// maxRatio is how many bytes a byte of a frame can become: a block of four bytes
// repeats one byte 128 KiB times.
const maxRatio = (128 << 10) / 4

var encoders = sync.Pool{New: func() any {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(windowBytes), zstd.WithEncoderCRC(false),
		zstd.WithSingleSegment(true)) // declares the size of small frames too
	if err != nil {
		panic(fmt.Sprintf("zstd encoder options: %v", err)) // constants: cannot happen
	}
	return encoder
}}

// Append appends data to dst as one frame and returns dst. data has at most
// MaxBytes.
func Append(dst, data []byte) []byte {
	encoder := encoders.Get().(*zstd.Encoder) // the pool holds nothing else
	defer encoders.Put(encoder)
	return encoder.EncodeAll(data, dst)
}

var decoders = sync.Pool{New: func() any {
	// DecodeAll never starts goroutines, so a dropped decoder is plain garbage.
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(MaxBytes), zstd.WithDecoderMaxWindow(MaxBytes))
	if err != nil {
		panic(fmt.Sprintf("zstd decoder options: %v", err)) // constants: cannot happen
	}
	return decoder
}}

// Decode decodes a frame that must hold exactly size bytes, into dst[:0] where its
// capacity suffices. Anything else is base.ErrCorrupt, and so is a size that a
// frame of this length cannot hold.
func Decode(dst, data []byte, size int) ([]byte, error) {
	var header zstd.Header
	if err := header.Decode(data); err != nil {
		return dst, corruptf("zstd frame: %v", err)
	}
	if size < 0 || size > min(MaxBytes, len(data)*maxRatio) {
		return dst, corruptf("a zstd frame of %d bytes cannot hold %d", len(data), size)
	}
	if !header.HasFCS || header.FrameContentSize != uint64(size) {
		return dst, corruptf("zstd frame declares %d bytes, want %d", header.FrameContentSize, size)
	}
	dst = slices.Grow(dst[:0], size)
	decoder := decoders.Get().(*zstd.Decoder) // the pool holds nothing else
	defer decoders.Put(decoder)
	out, err := decoder.DecodeAll(data, dst[:0:size])
	if err != nil {
		return dst, corruptf("zstd frame: %v", err)
	}
	if len(out) != size {
		return dst, corruptf("zstd frame holds %d bytes and declares %d", len(out), size)
	}
	return dst[:size], nil // not out, whose capacity is cut
}

func corruptf(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{base.ErrCorrupt}, args...)...)
}
