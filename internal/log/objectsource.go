package log

import (
	"context"
	"io"
)

const (
	// blockBytes is the unit in which compacted objects are fetched and cached:
	// a request costs a bucket about as much as this many bytes.
	blockBytes = 1 << 20
	// blocksAhead is how many blocks a sequential reader has fetched ahead.
	blocksAhead = 4
)

// objectSource reads a compacted object in cached blocks. Its owner sets ctx
// before each use, because io.ReaderAt has no place for one. It is not safe for
// concurrent use.
type objectSource struct {
	fetcher *Fetcher
	key     string
	size    int64
	ctx     context.Context // io.ReaderAt takes none
	// sequential says that the next blocks will be wanted too.
	sequential bool
}

// ReadAt implements io.ReaderAt.
func (s *objectSource) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		if off >= s.size {
			return n, io.EOF
		}
		block := off / blockBytes
		s.lookAhead(block)
		data, err := s.fetcher.read(s.ctx, s.block(block))
		if err != nil {
			return n, err
		}
		copied := copy(p[n:], data[off-block*blockBytes:])
		n += copied
		off += int64(copied)
	}
	return n, nil
}

func (s *objectSource) block(i int64) cacheKey {
	pos := i * blockBytes
	return cacheKey{object: s.key, pos: pos, len: min(blockBytes, s.size-pos)}
}

// lookAhead starts to fetch what follows a block.
func (s *objectSource) lookAhead(block int64) {
	if !s.sequential {
		return
	}
	for i := block + 1; i <= block+blocksAhead && i*blockBytes < s.size; i++ {
		s.fetcher.prefetch(s.block(i))
	}
}
