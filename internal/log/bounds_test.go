package log

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Behaviour 4.
func TestAnEmptyLogHasNoFirstAndNoLast(t *testing.T) {
	r := newWorld(t).reader()
	for _, trimmed := range []bool{false, true} {
		_, ok, err := r.First(trimmed)
		require.NoError(t, err)
		require.False(t, ok)
	}
	_, ok, err := r.Last()
	require.NoError(t, err)
	require.False(t, ok)
	n, err := r.Count(base.OffsetRange{End: 100})
	require.NoError(t, err)
	require.Zero(t, n)
	at, err := r.Search(t.Context(), func(*recordbatch.Positioned) bool { return true })
	require.NoError(t, err)
	require.Zero(t, at)
	_, err = r.ReadOne(t.Context(), 0)
	require.ErrorIs(t, err, base.ErrNotFound)
	_, err = r.Entry(0)
	require.ErrorIs(t, err, base.ErrNotFound)
}

// Behaviours 3 and 18. Given a log that is trimmed softly and then for good, then
// what is hidden shows only to who asks for it, and what is gone to nobody.
func TestWhatWasTrimmedSoftlyIsHiddenAndCanBeRead(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		w.append(records(10*i, 10)...)
	}
	w.compact(0, 2, true)
	size := w.bytes
	w.start, w.floor = 25, 12
	r := w.reader()
	hidden := Limits{IncludeTrimmed: true, MaxMessages: 4}

	first, ok, err := r.First(false)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, base.Offset(25), first)
	first, _, _ = r.First(true)
	require.Equal(t, base.Offset(12), first)
	last, ok, err := r.Last()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, base.Offset(39), last)

	got, err := readAll(t.Context(), r, 12, hidden)
	require.NoError(t, err)
	require.Equal(t, w.all[12:], got)
	_, err = r.Read(t.Context(), 11, hidden)
	require.ErrorIs(t, err, base.ErrTrimmed)
	_, err = r.Read(t.Context(), 24, Limits{})
	require.ErrorIs(t, err, base.ErrTrimmed)
	batch, err := r.Read(t.Context(), 13, hidden)
	require.NoError(t, err)
	_, err = r.Read(t.Context(), batch.Next, Limits{})
	require.ErrorIs(t, err, base.ErrTrimmed, "the place that is kept shows nothing hidden")
	_, err = r.ReadOne(t.Context(), 24)
	require.ErrorIs(t, err, base.ErrTrimmed)

	n, err := r.Count(base.OffsetRange{Start: 0, End: 30})
	require.NoError(t, err)
	require.Equal(t, int64(5), n)
	got2, err := r.Size()
	require.NoError(t, err)
	require.Equal(t, size, got2, "neither compaction nor trimming makes it less")

	w.start = 40
	_, ok, err = r.Last()
	require.NoError(t, err)
	require.False(t, ok, "nothing is live")
	first, ok, err = r.First(true)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, base.Offset(12), first)
}

// Behaviour 18, by the fold: a soft trim, and then a hard one.
func TestTrimsOfTheFoldReachReaders(t *testing.T) {
	s := newFoldedShard(t)
	fetcher, err := NewFetcher(s.store, 0)
	require.NoError(t, err)
	defer fetcher.Close()
	for range 3 {
		s.append(10)
	}
	s.compact(0, 10)
	r := NewReader(fetcher, NewIndex(s.follower), s.log)
	s.trim(15, false)
	_, err = r.Read(t.Context(), 14, Limits{})
	require.ErrorIs(t, err, base.ErrTrimmed)
	got, err := readAll(t.Context(), r, 0, Limits{IncludeTrimmed: true})
	require.NoError(t, err)
	require.Equal(t, s.all, got)
	source, err := NewSource(t.Context(), fetcher, NewIndex(s.follower), s.log, base.OffsetRange{Start: 5, End: 20})
	require.NoError(t, err, "what is hidden is rewritten like the rest")
	n := 0
	require.NoError(t, source.Each(func(*recordbatch.Positioned) error { n++; return nil }))
	require.Equal(t, 15, n)
	s.trim(15, true)
	_, err = r.Read(t.Context(), 14, Limits{IncludeTrimmed: true})
	require.ErrorIs(t, err, base.ErrTrimmed)
	got, err = readAll(t.Context(), r, 15, Limits{})
	require.NoError(t, err)
	require.Equal(t, s.all[15:], got)
	_, err = r.Entry(9)
	require.ErrorIs(t, err, base.ErrTrimmed)
}

func TestTheIndexIsReadByOffsetAndByRange(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.append(records(10*i, 10)...)
	}
	w.compact(0, 2, true)
	r := w.reader()
	for offset := range base.Offset(50) {
		e, err := r.Entry(offset)
		require.NoError(t, err)
		require.True(t, e.Range.Contains(offset))
		require.Equal(t, offset < 20, e.Storage == shard.Compacted)
	}
	_, err := r.Entry(50)
	require.ErrorIs(t, err, base.ErrNotFound)
	_, err = r.Entry(-1)
	require.ErrorIs(t, err, base.ErrTrimmed)

	starts := func(o base.OffsetRange, limit int) (starts []base.Offset) {
		entries, err := r.Entries(o, limit)
		require.NoError(t, err)
		for _, e := range entries {
			starts = append(starts, e.Range.Start)
		}
		return starts
	}
	require.Equal(t, []base.Offset{0, 20, 30, 40}, starts(base.OffsetRange{End: 99}, 99))
	require.Equal(t, []base.Offset{0, 20}, starts(base.OffsetRange{Start: 19, End: 21}, 99))
	require.Equal(t, []base.Offset{20}, starts(base.OffsetRange{Start: 20, End: 30}, 99))
	require.Equal(t, []base.Offset{20, 30}, starts(base.OffsetRange{Start: 25, End: 99}, 2))
	require.Empty(t, starts(base.OffsetRange{Start: 50, End: 99}, 99))
	_, err = r.Entries(base.OffsetRange{End: 9}, 0)
	require.ErrorIs(t, err, base.ErrInvalid)
	_, err = r.Count(base.OffsetRange{Start: 2, End: 1})
	require.ErrorIs(t, err, base.ErrInvalid)
}

// Behaviour 7.
func TestOneRecordIsReadAtEachOffset(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		w.append(records(25*i, 25)...)
	}
	w.compact(0, 2, true)
	r := w.reader()
	batch, err := r.Read(t.Context(), 0, Limits{MaxMessages: 3})
	require.NoError(t, err)
	for offset := range w.all {
		got, err := r.ReadOne(t.Context(), base.Offset(offset))
		require.NoError(t, err)
		require.Equal(t, w.all[offset], got)
	}
	next, err := r.Read(t.Context(), batch.Next, Limits{MaxMessages: 3})
	require.NoError(t, err)
	require.Equal(t, w.all[3:6], next.Records, "the place of Read is where it was")
	_, err = r.ReadOne(t.Context(), 100)
	require.ErrorIs(t, err, base.ErrNotFound)
	_, err = r.ReadOne(t.Context(), 101)
	require.ErrorIs(t, err, base.ErrNotFound)
}

// Behaviour 16: the first, the last, one inside, and what is out of range.
func TestSearchFindsWhereAPredicateBeginsToHold(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.append(records(20*i, 20)...)
	}
	w.compact(0, 2, true)
	w.start = 7
	r := w.reader()
	for want := base.Offset(0); want <= 101; want++ {
		got, err := r.Search(t.Context(), func(p *recordbatch.Positioned) bool { return p.Offset >= want })
		require.NoError(t, err)
		require.Equal(t, min(max(want, 7), 100), got)
	}
	for i := 7; i < 100; i++ {
		got, err := r.OffsetOfTimestamp(t.Context(), w.all[i].Timestamp)
		require.NoError(t, err)
		require.Equal(t, base.Offset(i), got)
	}
	head, err := r.OffsetOfTimestamp(t.Context(), w.all[99].Timestamp+1)
	require.NoError(t, err)
	require.Equal(t, base.Offset(100), head)
	probes := 0
	_, err = r.Search(t.Context(), func(*recordbatch.Positioned) bool { probes++; return false })
	require.NoError(t, err)
	require.LessOrEqual(t, probes, 7)
}

// Behaviours 8 and 9: whatever fails, the read fails with its class.
func TestEveryQuestionFailsWithItsClass(t *testing.T) {
	w := newWorld(t)
	w.append(records(0, 20)...)
	r := w.reader()
	questions := map[string]func() error{
		"ReadOne": func() error { _, err := r.ReadOne(t.Context(), 3); return err },
		"Search": func() error {
			_, err := r.Search(t.Context(), func(*recordbatch.Positioned) bool { return false })
			return err
		},
		"Read": func() error { _, err := r.Read(t.Context(), 0, Limits{}); return err },
	}
	w.set(func() { w.faults = func(blob.Call) blob.Fault { return blob.Fault{Before: base.ErrUnavailable} } })
	for name, ask := range questions {
		require.ErrorIs(t, ask(), base.ErrUnavailable, name)
	}
	questions["First"] = func() error { _, _, err := r.First(false); return err }
	questions["Last"] = func() error { _, _, err := r.Last(); return err }
	questions["Bounds"] = func() error { _, err := r.Bounds(); return err }
	questions["Size"] = func() error { _, err := r.Size(); return err }
	questions["Count"] = func() error { _, err := r.Count(base.OffsetRange{End: 9}); return err }
	questions["Entry"] = func() error { _, err := r.Entry(3); return err }
	questions["Entries"] = func() error { _, err := r.Entries(base.OffsetRange{End: 9}, 9); return err }
	stopped := base.WithClass(base.ErrCorrupt, errors.New("the view stopped"))
	w.set(func() { w.down = stopped })
	for name, ask := range questions {
		require.ErrorIs(t, ask(), base.ErrCorrupt, name)
	}
}

// Everything that a log can be asked is exact, whatever was appended, compacted and
// trimmed.
func TestPropertyALogAnswersExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := makeWorld(t, rapid.Int64Range(1, 20_000).Draw(t, "cache"))
		defer w.close()
		for i := range rapid.IntRange(1, 12).Draw(t, "objects") {
			w.append(records(len(w.all), rapid.IntRange(1, 20).Draw(t, "records"))...)
			if i > 2 && rapid.Bool().Draw(t, "compact") {
				w.compactAny(t)
			}
		}
		head := base.Offset(len(w.all))
		w.start = base.Offset(rapid.IntRange(0, len(w.all)).Draw(t, "start"))
		w.floor = base.Offset(rapid.IntRange(0, int(w.start)).Draw(t, "floor"))
		r := w.reader()
		n, err := r.Count(base.OffsetRange{End: head + 5})
		require.NoError(t, err)
		require.Equal(t, int64(head-w.start), n)
		target := base.Offset(rapid.IntRange(0, len(w.all)).Draw(t, "target"))
		found, err := r.Search(context.Background(), func(p *recordbatch.Positioned) bool { return p.Offset >= target })
		require.NoError(t, err)
		require.Equal(t, max(target, w.start), found)
		got, err := readAll(context.Background(), r, w.floor, Limits{IncludeTrimmed: true, MaxMessages: 7})
		require.NoError(t, err)
		require.True(t, slices.EqualFunc(w.all[w.floor:], got, func(a, b recordbatch.Positioned) bool {
			return a.Offset == b.Offset && string(a.Value) == string(b.Value)
		}))
	})
}

// Given a tail at the head of an idle log, when hours pass, then the store was asked
// nothing; and the record that comes then is delivered.
func TestAnIdleTailAsksTheStoreNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := makeWorld(t, 1<<20)
		defer w.close()
		counted := blob.NewCounted(w.objects)
		fetcher, err := NewFetcher(counted, 1<<20)
		require.NoError(t, err)
		defer fetcher.Close()
		w.append(records(0, 10)...)
		r := NewReader(fetcher, w, testLog)
		_, err = r.Tail(t.Context(), 0, Limits{})
		require.NoError(t, err)
		before := counted.Stats()
		got := make(chan Batch)
		go func() {
			batch, _ := r.Tail(t.Context(), 10, Limits{})
			got <- batch
		}()
		time.Sleep(3 * time.Hour) // of the bubble
		synctest.Wait()
		require.Equal(t, before, counted.Stats())
		w.append(records(10, 1)...)
		require.Equal(t, w.all[10:], (<-got).Records)
	})
}

// Behaviour 17: many readers over a cache that holds next to nothing keep what they
// read, while others have it evicted, and find it as it was.
func TestNoReaderSeesABlockThatWasUsedAgain(t *testing.T) {
	w := makeWorld(t, 3000)
	defer w.close()
	for i := range 30 {
		w.append(records(20*i, 20)...)
	}
	w.compact(0, 10, true)
	var readers sync.WaitGroup
	for first := range 8 {
		readers.Go(func() {
			kept, err := readAll(t.Context(), w.reader(), base.Offset(first*50), Limits{MaxMessages: 5})
			if err != nil {
				t.Error(err)
			}
			for i := range kept {
				if want := w.all[first*50+i]; string(want.Value) != string(kept[i].Value) || string(want.Key) != string(kept[i].Key) {
					t.Errorf("offset %d changed after it was read", want.Offset)
				}
			}
		})
	}
	readers.Wait()
	require.LessOrEqual(t, w.fetcher.Stats().CacheBytes, int64(3000))
	require.Positive(t, w.fetcher.Stats().ReturnedBytes)
}
