package wal

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPooledBuffersAreLargeEnough(t *testing.T) {
	var pool classPool
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 1<<25).Draw(t, "size")
		b := pool.get(size)
		require.GreaterOrEqual(t, cap(b.data), size)
		require.Empty(t, b.data)
		b.data = append(b.data, 1)
		if rapid.Bool().Draw(t, "grown") {
			b.data = make([]byte, 3*size+1) // as a caller may that appends too much
		}
		pool.put(b)
	})
}

func TestSegmentsAreReusedAndBounded(t *testing.T) {
	list := segmentList{keep: 4 << 20}
	small, large := list.take(1000), list.take(2<<20+1)
	require.Equal(t, minSegmentBytes, cap(small))
	require.Equal(t, 3<<20, cap(large))
	list.give(large)
	list.give(small)
	list.give(list.take(1 << 22)) // no room for that beside them
	require.Len(t, list.free, 2)

	require.Equal(t, cap(small), cap(list.take(10)), "the smallest that fits")
	require.Equal(t, cap(large), cap(list.take(10)))
	require.Empty(t, list.free)
	require.Zero(t, list.held)
}
