package compaction

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// piece is an object of a log, as a plan sees it.
type piece struct{ records, size int64 }

func entriesOf(pieces []piece) []shard.Entry {
	var entries []shard.Entry
	var at base.Offset
	for i, p := range pieces {
		end := at + base.Offset(p.records)
		entries = append(entries, shard.Entry{
			Range: base.OffsetRange{Start: at, End: end}, Storage: shard.Compacted, Writer: 1, Seq: base.Seq(i), Size: p.size,
		})
		at = end
	}
	return entries
}

// repeat returns n pieces of the same kind.
func repeat(n int, p piece) []piece {
	all := make([]piece, n)
	for i := range all {
		all[i] = p
	}
	return all
}

func TestWhichObjectsAreMerged(t *testing.T) {
	small, middle, large := piece{10, 10}, piece{100, 100}, piece{9000, 600}
	for name, test := range map[string]struct {
		pieces []piece
		want   base.OffsetRange // empty: nothing
		count  int
	}{
		"nothing":                          {nil, base.OffsetRange{}, 0},
		"one is enough":                    {repeat(1, small), base.OffsetRange{}, 0},
		"too few":                          {repeat(7, small), base.OffsetRange{}, 0},
		"as many as the fan-in":            {repeat(8, small), base.OffsetRange{End: 80}, 8},
		"more than the fan-in":             {repeat(11, small), base.OffsetRange{End: 110}, 11},
		"large ones are left alone":        {repeat(20, large), base.OffsetRange{}, 0},
		"behind large ones":                {append(repeat(2, large), repeat(8, small)...), base.OffsetRange{Start: 18_000, End: 18_080}, 8},
		"between large ones":               {append(append(repeat(1, large), repeat(8, small)...), large), base.OffsetRange{Start: 9000, End: 9080}, 8},
		"never across a large one":         {append(append(repeat(7, small), large), repeat(7, small)...), base.OffsetRange{}, 0},
		"the smallest first":               {append(repeat(8, middle), repeat(8, small)...), base.OffsetRange{Start: 800, End: 880}, 8},
		"not with much larger ones":        {append(repeat(3, middle), repeat(7, small)...), base.OffsetRange{}, 0},
		"smaller ones in between come too": {append(append(repeat(4, middle), small), repeat(4, middle)...), base.OffsetRange{End: 810}, 9},
		"such as reach the target":         {repeat(4, piece{5000, 400}), base.OffsetRange{End: 15_000}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			m, ok := planMerge(entriesOf(test.pieces), MergeLimits{TargetBytes: 1000, FanIn: 8})
			require.Equal(t, test.count > 0, ok)
			require.Equal(t, test.want, m.Range)
			require.Equal(t, test.count, m.Objects)
		})
	}
}

// An object counts its records in 31 bits, and takes so many objects at once.
func TestAMergedObjectIsBounded(t *testing.T) {
	m, ok := planMerge(entriesOf(repeat(9, piece{math.MaxInt32 / 4, 1})), MergeLimits{TargetBytes: 1000, FanIn: 8})
	require.True(t, ok)
	require.Equal(t, 4, m.Objects)
	_, ok = planMerge(entriesOf(repeat(9, piece{math.MaxInt32, 1})), MergeLimits{TargetBytes: 1000, FanIn: 8})
	require.False(t, ok)
	m, ok = planMerge(entriesOf(repeat(3000, piece{1, 1})), MergeLimits{TargetBytes: 1 << 20, FanIn: 8})
	require.True(t, ok)
	require.Equal(t, maxMergedObjects, m.Objects)
}

// mergedLog is a log that is merged on and on, and what was done to it.
type mergedLog struct {
	t       *rapid.T
	limits  MergeLimits
	shrink  float64 // what is left of merged bytes
	pieces  []piece
	rewrote []int // of each piece, how often the record in it that was rewritten most
}

// mergeOnce merges what a plan says, and reports whether there was anything.
func (l *mergedLog) mergeOnce() bool {
	entries := entriesOf(l.pieces)
	m, ok := planMerge(entries, l.limits)
	if !ok {
		return false
	}
	first := slices.IndexFunc(entries, func(e shard.Entry) bool { return e.Range.Start == m.Range.Start })
	last := first + m.Objects
	var merged piece
	for _, p := range l.pieces[first:last] {
		require.Less(l.t, p.size, l.limits.TargetBytes/2, "what is large is rewritten")
		merged.records, merged.size = merged.records+p.records, merged.size+p.size
	}
	require.Equal(l.t, m.Bytes, merged.size)
	require.Equal(l.t, m.Range.Len(), merged.records)
	merged.size = max(1, int64(float64(merged.size)*l.shrink))
	rewrites := 1 + slices.Max(l.rewrote[first:last])
	l.pieces = slices.Replace(l.pieces, first, last, merged)
	l.rewrote = slices.Replace(l.rewrote, first, last, rewrites)
	return true
}

// Given any log that passes add objects to, when it is merged on and on, then no
// record is rewritten more often than the logarithm of their number, what is large is
// never rewritten, and few small objects are left.
func TestPropertyMergingIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &mergedLog{t: t, shrink: rapid.Float64Range(0.5, 1).Draw(t, "shrink"), limits: MergeLimits{
			TargetBytes: rapid.Int64Range(50, 100_000).Draw(t, "target"), FanIn: rapid.IntRange(2, MergeFanIn).Draw(t, "fan-in"),
		}}
		var total int64
		for range rapid.IntRange(1, 200).Draw(t, "passes") {
			added := piece{rapid.Int64Range(1, 50).Draw(t, "records"), rapid.Int64Range(1, 300).Draw(t, "size")}
			l.pieces, l.rewrote = append(l.pieces, added), append(l.rewrote, 0)
			total += added.records
			for l.mergeOnce() {
				continue // until nothing is left
			}
		}
		orders := 1
		for n := total; n >= int64(l.limits.FanIn); n /= int64(l.limits.FanIn) {
			orders++
		}
		small := 0
		for i, p := range l.pieces {
			require.LessOrEqual(t, l.rewrote[i], orders, "one more than the order of all records: reaching the target")
			if p.size >= l.limits.TargetBytes/2 {
				small = 0
				continue
			}
			// Each order has fewer than the fan-in between any two of a higher one.
			small++
			require.LessOrEqual(t, float64(small), math.Pow(float64(l.limits.FanIn), float64(orders)))
		}
	})
}
