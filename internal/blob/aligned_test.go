package blob

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAlignedBufferIsAligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 10*BlockSize).Draw(t, "size")
		buffer := AlignedBuffer(size)
		require.Len(t, buffer, size)
		require.Zero(t, misalignment(buffer))
		require.Zero(t, cap(buffer)%BlockSize)
		require.Less(t, cap(buffer)-size, BlockSize)
		require.Equal(t, size > 0 && size%BlockSize == 0, isAligned(buffer))
	})
}

func TestDataBehindABlockStartIsNotAligned(t *testing.T) {
	buffer := AlignedBuffer(3 * BlockSize)
	require.True(t, isAligned(buffer[BlockSize:]))
	require.True(t, isAligned(buffer[:BlockSize]))
	require.False(t, isAligned(buffer[1:BlockSize+1]), "address")
	require.False(t, isAligned(buffer[:BlockSize+1]), "length")
	require.False(t, isAligned(nil), "nothing to write")
}
