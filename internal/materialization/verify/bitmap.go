package verify

import (
	"math/bits"

	"github.com/lakestream-go/lakestream/internal/base"
)

const (
	wordBits = 64
	// minMemoryBytes is the least budget that makes progress in few passes.
	minMemoryBytes = 1 << 10
)

// window is a range of a partition's offsets with a bit for each.
type window struct {
	partition base.Partition
	offsets   base.OffsetRange
	words     []uint64
}

// passes cuts the offsets to prove into windows whose bitmaps together fit the
// budget, in as many passes as that takes; there is always a first.
func passes(logs []Log, budgetBytes int64) [][]window {
	capacity := budgetBytes / 8 * wordBits
	all := [][]window{nil}
	left := capacity
	for _, log := range logs {
		for start := log.Start; start < log.Materialized; {
			if left < wordBits {
				all = append(all, nil)
				left = capacity
			}
			end := min(log.Materialized, start+base.Offset(left))
			last := len(all) - 1
			all[last] = append(all[last], window{partition: log.Partition, offsets: base.OffsetRange{Start: start, End: end}})
			left -= (int64(end-start) + wordBits - 1) / wordBits * wordBits
			start = end
		}
	}
	return all
}

// allocate makes the window's bitmap.
func (w *window) allocate() {
	w.words = make([]uint64, (w.offsets.Len()+wordBits-1)/wordBits)
}

// mark sets the bit of an offset of the window and reports whether it was clear.
func (w *window) mark(offset base.Offset) bool {
	at := uint64(offset - w.offsets.Start) //nolint:gosec // the offset lies in the window
	word, bit := &w.words[at/wordBits], uint64(1)<<(at%wordBits)
	was := *word & bit
	*word |= bit
	return was == 0
}

// marked counts the set bits.
func (w *window) marked() int64 {
	var n int64
	for _, word := range w.words {
		n += int64(bits.OnesCount64(word))
	}
	return n
}

// gaps yields the ranges of clear bits, in order.
func (w *window) gaps(yield func(base.OffsetRange) bool) {
	for offset := w.offsets.Start; offset < w.offsets.End; {
		start := w.next(offset, false)
		if start >= w.offsets.End {
			return
		}
		offset = w.next(start, true)
		if !yield(base.OffsetRange{Start: start, End: offset}) {
			return
		}
	}
}

// next returns the first offset from from on whose bit is as asked, or the end
// of the window.
func (w *window) next(from base.Offset, set bool) base.Offset {
	at := uint64(from - w.offsets.Start) //nolint:gosec // the offset lies in the window
	for i := at / wordBits; i < uint64(len(w.words)); i++ {
		word := w.words[i]
		if !set {
			word = ^word
		}
		if i == at/wordBits {
			word &= ^uint64(0) << (at % wordBits)
		}
		if word != 0 {
			found := i*wordBits + uint64(bits.TrailingZeros64(word))      //nolint:gosec // at most 63
			return min(w.offsets.End, w.offsets.Start+base.Offset(found)) //nolint:gosec // below the window's length
		}
	}
	return w.offsets.End
}
