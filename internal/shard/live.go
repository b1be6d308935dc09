package shard

import (
	"iter"

	"github.com/lakestream-go/lakestream/internal/base"
)

// LiveObjects yields the key and the size of every object that an index entry lies
// in, each once, in no order. Streams that were deleted without a purge count. The
// state must not change meanwhile.
func (s *State) LiveObjects() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		seen := make([]bool, len(s.objects.all))
		for _, streams := range []map[base.StreamID]*Stream{s.streams, s.kept} {
			for _, st := range streams {
				if !s.yieldObjects(st, seen, yield) {
					return
				}
			}
		}
	}
}

func (s *State) yieldObjects(st *Stream, seen []bool, yield func(string, int64) bool) bool {
	for _, l := range st.Logs {
		for _, e := range l.entries {
			if seen[e.object] {
				continue
			}
			seen[e.object] = true
			o := s.objects.get(e.object)
			if !yield(o.key(s.shard, l.id, base.OffsetRange{Start: e.base, End: e.end()}), o.size) {
				return false
			}
		}
	}
	return true
}
