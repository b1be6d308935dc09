package blob

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkPut puts objects of 1 MiB into a file store: aligned data is written
// directly, other data through the page cache.
func BenchmarkPut(b *testing.B) {
	const size = 1 << 20
	aligned := AlignedBuffer(size)
	for name, data := range map[string][]byte{
		"aligned":   aligned,
		"unaligned": append(aligned[:0:0], make([]byte, size+1)...)[1:],
	} {
		b.Run(name, func(b *testing.B) {
			s, err := Open(b.Context(), b.TempDir(), Options{})
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, s.Close()) })
			b.SetBytes(size)
			n := 0
			for b.Loop() {
				n++
				if err := s.Put(b.Context(), fmt.Sprintf("wal/s00/1/%020d", n), data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
