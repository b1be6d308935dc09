package materialization_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

func TestEndOffsetsArePackedByPartition(t *testing.T) {
	require.Equal(t, "0:120,3:7", materialization.EndOffsets{3: 7, 0: 120}.String())
	require.Empty(t, materialization.EndOffsets{}.String())
	ends, err := materialization.ParseEndOffsets("0:120,3:7")
	require.NoError(t, err)
	require.Equal(t, materialization.EndOffsets{3: 7, 0: 120}, ends)
}

func TestEndOffsetsSurviveARoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ends := materialization.EndOffsets(rapid.MapOf(
			rapid.Custom(func(rt *rapid.T) base.Partition { return base.Partition(rapid.Int32Min(0).Draw(rt, "partition")) }),
			rapid.Custom(func(rt *rapid.T) base.Offset { return base.Offset(rapid.Int64Min(0).Draw(rt, "offset")) }),
		).Draw(rt, "ends"))
		read, err := materialization.ParseEndOffsets(ends.String())
		require.NoError(rt, err)
		require.Equal(rt, ends, read)
	})
}

func TestEndOffsetsThatSomeoneEditedAreRefused(t *testing.T) {
	for _, text := range []string{
		"0", ":", "0:", ":1", "a:1", "0:b", "-1:3", "0:-3", "0:1,", ",0:1", "0:1,0:2", "3:1,0:1", "00:1", "0:01", "0:1 ,1:1",
		"+0:1", "4294967296:1", "0:9223372036854775808",
	} {
		_, err := materialization.ParseEndOffsets(text)
		require.ErrorIs(t, err, base.ErrCorrupt, text)
	}
}

// FuzzParseEndOffsets: what is accepted has exactly one text.
func FuzzParseEndOffsets(f *testing.F) {
	for _, seed := range []string{"", "0:120,3:7", "0:1,0:2", "9:x", "2147483647:9223372036854775807"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ends, err := materialization.ParseEndOffsets(text)
		if err != nil {
			require.ErrorIs(t, err, base.ErrCorrupt)
			return
		}
		require.Equal(t, text, ends.String())
	})
}
