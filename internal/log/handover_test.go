package log

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

// readTo reads from next until a batch ends at or beyond end, a few records at a time.
func (w *world) readTo(t require.TestingT, r *Reader, next, end base.Offset) base.Offset {
	for next < end {
		batch, err := r.Read(context.Background(), next, Limits{MaxMessages: int(min(end-next, 7))})
		require.NoError(t, err)
		require.Equal(t, w.all[next:batch.Next], batch.Records)
		next = batch.Next
	}
	return next
}

// Behaviours 36 and 37. Given a reader that stands at any place of a raw log, when any
// part of the log that begins and ends between entries is compacted, into one object or
// several, and the raw objects are deleted, then it goes on without a gap or a duplicate.
func TestAReaderCrossesFromRawToCompactedAtEveryBoundary(t *testing.T) {
	const objects, perObject = 4, 5
	for place := range base.Offset(objects*perObject + 1) {
		for first := range objects {
			for last := first + 1; last <= objects; last++ {
				for _, files := range []int{1, last - first} {
					name := fmt.Sprintf("at %d, objects %d to %d in %d", place, first, last, files)
					w := makeWorld(t, 1<<20)
					for i := range objects {
						w.append(records(perObject*i, perObject)...)
					}
					r := w.reader()
					next := w.readTo(t, r, 0, place)
					for i := range files {
						each := (last - first) / files
						w.compact(first+i, first+i+each, true)
					}
					require.Equal(t, base.Offset(objects*perObject), w.readTo(t, r, next, base.Offset(objects*perObject)), name)
					w.close()
				}
			}
		}
	}
}

// Behaviours 36 and 37, by chance: entries of any size, compacted in any order, between
// any two reads.
func TestPropertyAReaderNeverNoticesCompaction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := makeWorld(t, rapid.Int64Range(1, 20_000).Draw(t, "cache"))
		defer w.close()
		for range rapid.IntRange(1, 10).Draw(t, "objects") {
			w.append(records(len(w.all), rapid.IntRange(1, 9).Draw(t, "records"))...)
		}
		r, next := w.reader(), base.Offset(0)
		var got []recordbatch.Positioned
		for int(next) < len(w.all) {
			if rapid.Bool().Draw(t, "compact") {
				w.compactAny(t)
			}
			batch, err := r.Read(context.Background(), next, Limits{MaxMessages: rapid.IntRange(1, 12).Draw(t, "messages")})
			require.NoError(t, err)
			require.NotEmpty(t, batch.Records)
			got, next = append(got, batch.Records...), batch.Next
		}
		require.Equal(t, w.all, got)
	})
}
