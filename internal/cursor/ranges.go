package cursor

import (
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
)

// ranges are offsets as disjoint ranges that do not touch, ascending.
type ranges []base.OffsetRange

// add returns the union with one more range. It changes r in place.
func (r ranges) add(added base.OffsetRange) ranges {
	if added.Len() <= 0 {
		return r
	}
	// The ranges that overlap or touch the added one become one with it.
	first := r.reaching(added.Start)
	last := first
	for last < len(r) && r[last].Start <= added.End {
		added.Start, added.End = min(added.Start, r[last].Start), max(added.End, r[last].End)
		last++
	}
	return slices.Replace(r, first, last, added)
}

// joins reports whether adding a range makes no more of them.
func (r ranges) joins(added base.OffsetRange) bool {
	i := r.reaching(added.Start)
	return i < len(r) && r[i].Start <= added.End
}

// reaching returns the index of the first range that ends at an offset or later.
func (r ranges) reaching(offset base.Offset) int {
	i, _ := slices.BinarySearchFunc(r, offset, func(e base.OffsetRange, o base.Offset) int {
		if e.End < o {
			return -1
		}
		return 1
	})
	return i
}

// from returns the ranges without what lies before an offset.
func (r ranges) from(offset base.Offset) ranges {
	for len(r) > 0 && r[0].End <= offset {
		r = r[1:]
	}
	if len(r) > 0 && r[0].Start < offset {
		r[0].Start = offset
	}
	return r
}

// find returns the range that contains an offset.
func (r ranges) find(offset base.Offset) (base.OffsetRange, bool) {
	i := r.reaching(offset + 1)
	if i < len(r) && r[i].Contains(offset) {
		return r[i], true
	}
	return base.OffsetRange{}, false
}

// within returns how many offsets lie in a range.
func (r ranges) within(bounds base.OffsetRange) (n int64) {
	for _, e := range r {
		n += max(0, int64(min(e.End, bounds.End)-max(e.Start, bounds.Start)))
	}
	return n
}
