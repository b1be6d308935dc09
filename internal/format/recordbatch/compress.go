package recordbatch

import (
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// zstdWindowBytes bounds the history that a coder keeps: a batch is rarely
// longer, and a larger window only costs memory.
const zstdWindowBytes = 128 << 10

// frame is a compressed batch in a pooled buffer with the coder that made it.
type frame struct {
	data    []byte
	encoder *zstd.Encoder
}

var frames = sync.Pool{New: func() any {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindowBytes), zstd.WithEncoderCRC(false),
		zstd.WithSingleSegment(true)) // declares the size of small frames too
	if err != nil {
		panic(fmt.Sprintf("zstd encoder options: %v", err)) // constants: cannot happen
	}
	return &frame{encoder: encoder}
}}

// compressZstd returns data as one frame. Call release when done with it.
func compressZstd(data []byte) *frame {
	f := frames.Get().(*frame) // the pool holds nothing else
	f.data = f.encoder.EncodeAll(data, f.data[:0])
	return f
}

func (f *frame) release() {
	if cap(f.data) <= 4*TargetBytes { // a rare giant is not worth keeping
		frames.Put(f)
	}
}

var decoders = sync.Pool{New: func() any {
	// DecodeAll never starts goroutines, so a dropped decoder is plain garbage.
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(MaxBatchBytes), zstd.WithDecoderMaxWindow(MaxBatchBytes))
	if err != nil {
		panic(fmt.Sprintf("zstd decoder options: %v", err)) // constants: cannot happen
	}
	return decoder
}}

// zstdMaxRatio is how many bytes a byte of a frame can become: a block of four
// bytes repeats one byte 128 KiB times.
const zstdMaxRatio = (128 << 10) / 4

// decompressZstd decodes one frame into dst[:0], growing it to the size that the
// frame declares. A frame that declares none, more than limit bytes, or more than a
// frame of its length can hold, is refused before anything is allocated.
func decompressZstd(dst, data []byte, limit int) ([]byte, error) {
	var header zstd.Header
	if err := header.Decode(data); err != nil {
		return dst, corruptf("zstd frame: %v", err)
	}
	most := min(limit, len(data)*zstdMaxRatio)
	if !header.HasFCS || header.FrameContentSize > uint64(most) { //nolint:gosec // most is positive
		return dst, corruptf("zstd frame declares %d bytes, at most %d are read", header.FrameContentSize, most)
	}
	size := int(header.FrameContentSize) //nolint:gosec // bounded by most
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
