package frame_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/frame"
)

func TestWhatWasFramedComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		prefix := []byte("before")
		framed := frame.Append(prefix, data)
		require.Equal(t, prefix, framed[:len(prefix)])
		require.Equal(t, framed, frame.Append(prefix, data), "the same bytes give the same frame")
		got, err := frame.Decode(nil, framed[len(prefix):], len(data))
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, got))
	})
}

func TestAFrameIsDecodedIntoTheRoomThatIsGiven(t *testing.T) {
	data := bytes.Repeat([]byte("records "), 1000)
	room := make([]byte, 0, len(data))
	got, err := frame.Decode(room, frame.Append(nil, data), len(data))
	require.NoError(t, err)
	require.Equal(t, data, got)
	require.Same(t, &room[:1][0], &got[0])
}

func TestAFrameThatLiesIsRefused(t *testing.T) {
	data := bytes.Repeat([]byte{7}, 4096)
	framed := frame.Append(nil, data)
	for name, try := range map[string]struct {
		framed []byte
		size   int
	}{
		"no frame":            {[]byte("hello, world"), 12},
		"nothing":             {nil, 0},
		"cut":                 {framed[:len(framed)-1], len(data)},
		"fewer than declared": {framed, len(data) - 1},
		"more than declared":  {framed, len(data) + 1},
		"negative":            {framed, -1},
		"more than any frame": {framed, frame.MaxBytes + 1},
	} {
		_, err := frame.Decode(nil, try.framed, try.size)
		require.ErrorIs(t, err, base.ErrCorrupt, name)
	}
}

// What is allocated follows from the bytes that are there, not from what they say.
func FuzzDecode(f *testing.F) {
	f.Add(frame.Append(nil, []byte("a record and another")), 20)
	f.Add(frame.Append(nil, make([]byte, 1<<20)), 1<<20)
	f.Add([]byte{}, 0)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		got, err := frame.Decode(nil, data, size)
		if err != nil {
			require.ErrorIs(t, err, base.ErrCorrupt)
			return
		}
		require.Len(t, got, size)
	})
}
