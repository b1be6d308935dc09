package log

import "github.com/lakestream-go/lakestream/internal/shard"

const (
	// wholeObjectBytes is the size up to which a raw object is read whole: the
	// logs that share it then share one request.
	wholeObjectBytes = 256 << 10
	// maxGapBytes is how much between two wanted blocks is read along rather
	// than paid for with another request.
	maxGapBytes = 64 << 10
	// maxExtentBytes bounds what neighbouring blocks are joined to.
	maxExtentBytes = 4 << 20
)

// extentOf returns what to read for the first of the entries, which is raw: the
// whole object when it is small, or else its block and those of the next entries
// that lie close behind in the same object. It also returns how many entries
// that covers.
func extentOf(entries []shard.Entry) (cacheKey, int) {
	first := &entries[0]
	part := cacheKey{object: first.Key(), pos: first.Pos, len: first.Len}
	if first.Size <= wholeObjectBytes && first.Pos+first.Len <= first.Size {
		part.pos, part.len = 0, first.Size
	}
	n := 1
	for ; n < len(entries); n++ {
		next := &entries[n]
		if !sameObject(first, next) {
			break
		}
		end := part.pos + part.len
		if next.Pos >= part.pos && next.Pos+next.Len <= end {
			continue
		}
		grown := next.Pos + next.Len - part.pos
		if next.Pos < end || next.Pos-end > maxGapBytes || grown > maxExtentBytes {
			break
		}
		part.len = grown
	}
	// A large part is worth a request of its own.
	part.shared = part.len <= wholeObjectBytes
	return part, n
}

func sameObject(a, b *shard.Entry) bool {
	return a.Storage == b.Storage && a.Writer == b.Writer && a.Seq == b.Seq
}
