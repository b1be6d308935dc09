package kafka

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

// Whatever order extents are done in, what may be committed is the end of the
// longest prefix that is done.
func TestACheckpointIsTheEndOfThePrefixThatIsDone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c checkpoint
		var ends []int64
		done := make(map[int]bool)
		var open []int
		committed, end := int64(-1), int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(open) == 0 || rapid.Bool().Draw(t, "add") {
				end += rapid.Int64Range(1, 9).Draw(t, "records")
				number := c.add(kgo.EpochOffset{Offset: end})
				require.Len(t, ends, number, "numbers count up")
				ends, open = append(ends, end), append(open, number)
				continue
			}
			i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
			number := open[i]
			open = slices.Delete(open, i, i+1)
			done[number] = true
			next, moved := c.finish(number)
			prefix := 0
			for done[prefix] {
				prefix++
			}
			want := int64(-1)
			if prefix > 0 {
				want = ends[prefix-1]
			}
			require.Equal(t, want != committed, moved)
			if moved {
				committed = next.Offset
			}
			require.Equal(t, want, committed)
		}
	})
}

func TestRecordsAreSplitByCountAndBytes(t *testing.T) {
	records := make([]*kgo.Record, 10)
	for i := range records {
		records[i] = &kgo.Record{Offset: int64(i), Value: make([]byte, 10)}
	}
	records[4].Value = make([]byte, 100) // larger than a batch may be

	var sizes []int
	for _, b := range split(&partition{}, records, 12, limits{messages: 3, bytes: 40, span: 100}) {
		sizes = append(sizes, len(b.entries))
	}
	require.Equal(t, []int{3, 1, 1, 3, 2}, sizes, "a record that is too large comes alone")
	last := split(&partition{}, records, 12, limits{messages: 100, bytes: 1000, span: 100})[0]
	require.Len(t, split(&partition{}, records, 12, limits{messages: 100, bytes: 1000, span: 9}), 2, "nor are offsets too far apart")
	require.Equal(t, int64(2), last.entries[9].lag)
	require.Equal(t, int64(10), last.next().Offset)
	require.Empty(t, split(&partition{}, nil, 0, limits{}))
}

func TestPausesGrowToABound(t *testing.T) {
	require.Equal(t, minPause, pause(1))
	require.Equal(t, 2*minPause, pause(2))
	require.Equal(t, maxPause, pause(20))
	require.Equal(t, maxPause, pause(1_000_000))
}
