package log

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnEmptyLogReadsAsNothing(t *testing.T) {
	w := newWorld(t)
	batch, err := w.reader().Read(t.Context(), 0, Limits{})
	require.NoError(t, err)
	require.Equal(t, Batch{}, batch)
	require.Empty(t, w.reads())
}

// Behaviours 7, 36 and 37.
func TestTheWholeLogIsReadFromEachOffset(t *testing.T) {
	for _, compression := range []recordbatch.Compression{recordbatch.None, recordbatch.Zstd} {
		t.Run(compression.String(), func(t *testing.T) {
			w := newWorld(t)
			w.compression = compression
			for i := range 6 {
				w.append(records(25*i, 25)...)
			}
			w.compact(0, 2, true)
			w.compact(1, 3, true)
			for from := range w.all {
				got, err := readAll(t.Context(), w.reader(), base.Offset(from), Limits{})
				require.NoError(t, err)
				require.Equal(t, w.all[from:], got, "from %d", from)
			}
		})
	}
}

// Behaviour 5.
func TestLimitsAreKept(t *testing.T) {
	w := newWorld(t)
	w.append(records(0, 30)...)
	w.append(records(30, 30)...)
	for _, kind := range []string{"raw", "compacted"} {
		t.Run(kind, func(t *testing.T) {
			r := w.reader()
			batch, err := r.Read(t.Context(), 7, Limits{MaxMessages: 10})
			require.NoError(t, err)
			require.Equal(t, w.all[7:17], batch.Records)
			require.Equal(t, base.Offset(17), batch.Next)

			batch, err = r.Read(t.Context(), 17, Limits{MaxBytes: 100})
			require.NoError(t, err)
			require.LessOrEqual(t, batch.Bytes, int64(100))
			more := recordBytes(&w.all[batch.Next])
			require.Greater(t, batch.Bytes+more, int64(100), "one more would not have fitted")

			rest, err := readAll(t.Context(), r, batch.Next, Limits{})
			require.NoError(t, err)
			require.Equal(t, w.all[batch.Next:], rest, "a record that did not fit is not lost")

			_, err = r.Read(t.Context(), 0, Limits{MaxMessages: -1})
			require.ErrorIs(t, err, base.ErrInvalid)
		})
		if kind == "raw" {
			w.compact(0, 2, true)
		}
	}
}

// Behaviour 6.
func TestARecordLargerThanTheLimitComesAlone(t *testing.T) {
	w := newWorld(t)
	big := recordbatch.Record{Value: make([]byte, 5000)}
	small := recordbatch.Record{Value: []byte("small")}
	w.append(small, big, small, big, big)
	for _, compacted := range []bool{false, true} {
		if compacted {
			w.compact(0, 1, true)
		}
		r := w.reader()
		for offset := range base.Offset(5) {
			batch, err := r.Read(t.Context(), offset, Limits{MaxBytes: 1000})
			require.NoError(t, err)
			require.Equal(t, w.all[offset:offset+1], batch.Records)
		}
	}
}

func TestOneBatchHoldsOneKindOfStorage(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.append(records(10*i, 10)...)
	}
	w.compact(0, 1, true)
	r := w.reader()
	batch, err := r.Read(t.Context(), 4, Limits{})
	require.NoError(t, err)
	require.Equal(t, shard.Compacted, batch.Storage)
	require.Equal(t, w.all[4:10], batch.Records)
	batch, err = r.Read(t.Context(), batch.Next, Limits{})
	require.NoError(t, err)
	require.Equal(t, shard.Raw, batch.Storage)
	require.Equal(t, w.all[10:30], batch.Records, "a batch goes on through entries of one kind")
}

func TestOffsetsOutsideTheLogAreErrors(t *testing.T) {
	w := newWorld(t)
	w.append(records(0, 20)...)
	w.start = 5
	r := w.reader()
	_, err := r.Read(t.Context(), 4, Limits{})
	require.ErrorIs(t, err, base.ErrTrimmed)
	require.ErrorContains(t, err, "begins at 5")
	batch, err := r.Read(t.Context(), 5, Limits{})
	require.NoError(t, err)
	require.Equal(t, w.all[5:], batch.Records)
	_, err = r.Read(t.Context(), 21, Limits{})
	require.ErrorIs(t, err, base.ErrInvalid)
	_, err = NewReader(w.fetcher, w, base.LogID{Stream: 99}).Read(t.Context(), 0, Limits{})
	require.ErrorIs(t, err, base.ErrNotFound)
}

// Behaviour 8.
func TestAnIndexThatIsDownFailsTheRead(t *testing.T) {
	w := newWorld(t)
	w.append(records(0, 20)...)
	w.down = base.WithClass(base.ErrUnavailable, errors.New("the view stopped"))
	_, err := w.reader().Read(t.Context(), 0, Limits{})
	require.ErrorIs(t, err, base.ErrUnavailable)
	_, err = w.reader().OffsetOfTime(t.Context(), 1)
	require.ErrorIs(t, err, base.ErrUnavailable)
}

func TestAHoleInTheIndexIsCorruption(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.append(records(10*i, 10)...)
	}
	w.entries = slices.Delete(w.entries, 1, 2)
	got, err := readAll(t.Context(), w.reader(), 0, Limits{})
	require.ErrorIs(t, err, base.ErrCorrupt)
	require.Equal(t, w.all[:10], got)
}

// Behaviour 9.
func TestFailedReadsAreReportedAndHeal(t *testing.T) {
	unreachable := base.WithClass(base.ErrUnavailable, errors.New("no route"))
	for _, kind := range []shard.Storage{shard.Raw, shard.Compacted} {
		for name, test := range map[string]struct {
			fault blob.Fault
			want  error
		}{
			"unreachable": {blob.Fault{Before: unreachable}, base.ErrUnavailable},
			"truncated":   {blob.Fault{Damage: blob.Truncate(90)}, base.ErrCorrupt},
			"flipped":     {blob.Fault{Damage: blob.FlipBit(8*150 + 3)}, base.ErrCorrupt},
		} {
			t.Run(fmt.Sprintf("%d %s", kind, name), func(t *testing.T) {
				w := newWorld(t)
				w.append(records(0, 20)...)
				if kind == shard.Compacted {
					w.compact(0, 1, true)
				}
				key := w.entries[0].Key()
				w.set(func() { w.faults = func(blob.Call) blob.Fault { return test.fault } })
				r := w.reader()
				for range 2 {
					_, err := r.Read(t.Context(), 3, Limits{})
					require.ErrorIs(t, err, test.want)
					require.ErrorContains(t, err, key)
				}
				w.set(func() { w.faults = nil })
				got, err := readAll(t.Context(), r, 3, Limits{})
				require.NoError(t, err, "damage on the way does not stay in the cache")
				require.Equal(t, w.all[3:], got)
			})
		}
	}
}

func TestRecordsBeforeAFailureAreReturnedFirst(t *testing.T) {
	w := newWorld(t)
	w.append(records(0, 10)...)
	w.append(records(10, 10)...)
	bad := w.entries[1].Key()
	w.faults = func(c blob.Call) blob.Fault {
		if c.Key == bad {
			return blob.Fault{Before: base.ErrUnavailable}
		}
		return blob.Fault{}
	}
	got, err := readAll(t.Context(), w.reader(), 0, Limits{})
	require.ErrorIs(t, err, base.ErrUnavailable)
	require.Equal(t, w.all[:10], got)
}

func TestAnObjectThatCompactionReplacedIsLookedUpAgain(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.append(records(10*i, 10)...)
	}
	swap := func() { w.compact(0, len(w.entries), true) }
	var once sync.Once
	w.set(func() { w.onLookup = func() { once.Do(swap) } })
	got, err := readAll(t.Context(), w.reader(), 0, Limits{})
	require.NoError(t, err)
	require.Equal(t, w.all, got)

	// The same again from one compacted object to another.
	once = sync.Once{}
	got, err = readAll(t.Context(), w.reader(), 12, Limits{})
	require.NoError(t, err)
	require.Equal(t, w.all[12:], got)
}

func TestAnObjectThatIsGoneForEverIsCorruption(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		w := newWorld(t)
		w.append(records(0, 10)...)
		if compacted {
			w.compact(0, 1, true)
		}
		key := w.entries[0].Key()
		require.NoError(t, w.objects.Delete(t.Context(), key))
		_, err := w.reader().Read(t.Context(), 2, Limits{})
		require.ErrorIs(t, err, base.ErrCorrupt)
		require.NotErrorIs(t, err, base.ErrNotFound, "it is the object that is missing, not the log")
		require.ErrorContains(t, err, key)
		require.Len(t, w.reads(), 2, "it was looked for twice")
		_, err = w.reader().OffsetOfTime(t.Context(), 1)
		if compacted {
			require.ErrorIs(t, err, base.ErrCorrupt)
		}
	}
}

func TestAnObjectOfAnotherClusterIsRefused(t *testing.T) {
	w := newWorld(t)
	w.append(records(0, 10)...)
	w.compact(0, 1, true)
	r := w.reader()
	r.cluster = base.ClusterID{1}
	_, err := r.Read(t.Context(), 0, Limits{})
	require.ErrorIs(t, err, base.ErrForeign)
}

func TestTailWaitsForTheNextRecordAndMakesNoRequest(t *testing.T) {
	w := newWorld(t)
	w.append(records(0, 10)...)
	r := w.reader()
	_, err := r.Tail(t.Context(), 0, Limits{})
	require.NoError(t, err)
	before := len(w.reads())

	waiting, cancel := context.WithCancel(t.Context())
	waits := make(chan error)
	go func() {
		_, err := w.reader().Tail(waiting, 10, Limits{})
		waits <- err
	}()
	cancel()
	require.ErrorIs(t, <-waits, context.Canceled)
	require.Len(t, w.reads(), before, "an idle tail makes no request")

	got := make(chan Batch)
	go func() {
		batch, _ := r.Tail(t.Context(), 10, Limits{})
		got <- batch
	}()
	w.append(records(10, 5)...)
	require.Equal(t, w.all[10:], (<-got).Records)
}

func TestTimeLookup(t *testing.T) {
	w := newWorld(t)
	for i := range 8 {
		w.append(records(10*i, 10)...)
	}
	w.compact(0, 3, true)
	w.compact(1, 3, true)
	w.start = 4
	first, last := w.all[0].AppendTime, w.all[79].AppendTime
	for at := first - 3; at <= last+3; at++ {
		want := base.Offset(len(w.all))
		if i := slices.IndexFunc(w.all[4:], func(p recordbatch.Positioned) bool { return p.AppendTime >= at }); i >= 0 {
			want = base.Offset(4 + i)
		}
		got, err := w.reader().OffsetOfTime(t.Context(), at)
		require.NoError(t, err)
		require.Equal(t, want, got, "at %d", at-first)
	}
}

func TestASourceYieldsItsRangeAgainAndAgain(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.append(records(10*i, 10)...)
	}
	w.compact(0, 2, true)
	offsets := base.OffsetRange{Start: 13, End: 37}
	source, err := NewSource(t.Context(), w.fetcher, w, testLog, offsets)
	require.NoError(t, err)
	require.Equal(t, offsets, source.Range())
	for range 2 {
		i := offsets.Start
		require.NoError(t, source.Each(func(p *recordbatch.Positioned) error {
			want := w.all[i]
			require.Equal(t, want.Offset, p.Offset)
			require.Equal(t, want.Value, p.Value)
			require.Len(t, p.Headers, len(want.Headers))
			i++
			return nil
		}))
		require.Equal(t, offsets.End, i)
	}
	enough := errors.New("enough")
	require.ErrorIs(t, source.Each(func(*recordbatch.Positioned) error { return enough }), enough)

	w.start, w.floor = 14, 14
	_, err = NewSource(t.Context(), w.fetcher, w, testLog, offsets)
	require.ErrorIs(t, err, base.ErrTrimmed)
	require.ErrorIs(t, source.Each(func(*recordbatch.Positioned) error { return nil }), base.ErrTrimmed)
	_, err = NewSource(t.Context(), w.fetcher, w, testLog, base.OffsetRange{Start: 20, End: 51})
	require.ErrorIs(t, err, base.ErrInvalid)
}

func TestACancelledContextEndsTheRead(t *testing.T) {
	w := newWorld(t)
	w.append(records(0, 10)...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.reader().Read(ctx, 0, Limits{})
	require.ErrorIs(t, err, context.Canceled)
}

// Given any interleaving of appends, compactions, merges, deletes and trims with
// the reads of several readers, each reads exactly the log.
func TestPropertyReadersSeeExactlyTheLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := makeWorld(t, rapid.Int64Range(1, 20_000).Draw(t, "cache"))
		defer w.close()
		if rapid.Bool().Draw(t, "zstd") {
			w.compression = recordbatch.Zstd
		}
		type follower struct {
			r    *Reader
			next base.Offset
		}
		followers := []*follower{{r: w.reader()}, {r: w.reader()}}
		swapped := false // once a read: an object may be looked up again only once
		w.onLookup = func() {
			if !swapped && rapid.IntRange(0, 3).Draw(t, "swap under the reader") == 0 {
				swapped = true
				w.compactAny(t)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				var blocks [][]recordbatch.Record
				next := len(w.all)
				for range rapid.IntRange(1, 3).Draw(t, "blocks") {
					n := rapid.IntRange(1, 30).Draw(t, "records")
					blocks = append(blocks, records(next, n))
					next += n
				}
				w.appendPadded(rapid.IntRange(0, 500).Draw(t, "padding"), blocks...)
			},
			"compact": w.compactAny,
			"read": func(t *rapid.T) {
				f := rapid.SampledFrom(followers).Draw(t, "reader")
				limits := Limits{
					MaxMessages: rapid.IntRange(1, 40).Draw(t, "messages"),
					MaxBytes:    rapid.Int64Range(1, 600).Draw(t, "bytes"),
				}
				swapped = false
				batch, err := f.r.Read(context.Background(), f.next, limits)
				require.NoError(t, err)
				if int(f.next) == len(w.all) {
					require.Empty(t, batch.Records)
					return
				}
				require.NotEmpty(t, batch.Records)
				require.Equal(t, w.all[f.next:batch.Next], batch.Records)
				f.next = batch.Next
			},
			"seek": func(t *rapid.T) {
				f := rapid.SampledFrom(followers).Draw(t, "reader")
				f.next = base.Offset(rapid.IntRange(0, len(w.all)).Draw(t, "offset"))
			},
		})
	})
}

// compactAny compacts or merges some neighbours and deletes their objects.
func (w *world) compactAny(t *rapid.T) {
	if len(w.entries) == 0 {
		return
	}
	first := rapid.IntRange(0, len(w.entries)-1).Draw(t, "first")
	last := rapid.IntRange(first+1, len(w.entries)).Draw(t, "last")
	w.compact(first, last, rapid.Bool().Draw(t, "delete"))
}

func TestReadersWalkWhileTheLogIsCompacted(t *testing.T) {
	w := newWorld(t)
	const objects, perObject = 60, 20
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() {
			r, next := w.reader(), base.Offset(0)
			for next < objects*perObject {
				batch, err := r.Tail(t.Context(), next, Limits{MaxMessages: 33})
				if err != nil || batch.Records[0].Offset != next {
					t.Errorf("at %d: %v", next, err)
					return
				}
				next = batch.Next
			}
		})
	}
	for i := range objects {
		w.append(records(i*perObject, perObject)...)
		if i%7 == 6 {
			w.compact(len(w.entries)-5, len(w.entries), false)
		}
	}
	work.Wait()
}
