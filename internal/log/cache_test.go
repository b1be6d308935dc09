package log

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
)

func TestTheCacheStaysWithinItsBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCache(rapid.Int64Range(0, 200).Draw(t, "limit"))
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				key := cacheKey{object: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "object"), pos: rapid.Int64Range(0, 9).Draw(t, "pos")}
				weight := rapid.Int64Range(0, 90).Draw(t, "weight")
				value, err := c.get(context.Background(), key, func(context.Context) (cached, error) {
					if weight == 0 {
						return cached{}, base.ErrUnavailable
					}
					return cached{data: fmt.Append(nil, key), weight: weight}, nil
				})
				if err == nil {
					require.Equal(t, fmt.Append(nil, key), value.data)
				}
			},
			"forget": func(*rapid.T) { c.forget("a") },
			"": func(t *rapid.T) {
				var sum int64
				for _, item := range c.items {
					sum += item.value.weight
				}
				require.Equal(t, c.bytes(), sum)
				require.LessOrEqual(t, sum, c.limit)
				require.Len(t, c.items, c.order.Len())
			},
		})
	})
}

func TestTheCacheEvictsWhatWasUsedLongestAgo(t *testing.T) {
	c := newCache(3)
	load := func(context.Context) (cached, error) { return cached{weight: 1}, nil }
	for _, object := range []string{"a", "b", "c", "a", "d"} {
		_, err := c.get(t.Context(), cacheKey{object: object}, load)
		require.NoError(t, err)
	}
	require.False(t, c.has(cacheKey{object: "b"}))
	for _, object := range []string{"a", "c", "d"} {
		require.True(t, c.has(cacheKey{object: object}))
	}
}

func TestReadersOfTheSameBytesShareOneRequest(t *testing.T) {
	w := newWorld(t)
	w.append(records(0, 50)...)
	hold := make(chan struct{})
	asked := make(chan struct{}, 10)
	w.faults = func(blob.Call) blob.Fault {
		return blob.Fault{Wait: func(context.Context) error {
			asked <- struct{}{}
			<-hold
			return nil
		}}
	}
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			batch, err := w.reader().Read(t.Context(), 0, Limits{})
			if err != nil || len(batch.Records) != 50 {
				t.Errorf("%d records: %v", len(batch.Records), err)
			}
		})
	}
	<-asked
	close(hold)
	readers.Wait()
	require.Len(t, w.reads(), 1)
}

func TestACancelledLoaderDoesNotFailThoseWhoWait(t *testing.T) {
	c := newCache(10)
	ctx, cancel := context.WithCancel(t.Context())
	loading := make(chan struct{})
	first := make(chan error)
	go func() {
		_, err := c.get(ctx, cacheKey{}, func(ctx context.Context) (cached, error) {
			close(loading)
			<-ctx.Done()
			return cached{}, ctx.Err()
		})
		first <- err
	}()
	<-loading
	second := make(chan error)
	go func() {
		_, err := c.get(t.Context(), cacheKey{}, func(context.Context) (cached, error) { return cached{weight: 1}, nil })
		second <- err
	}()
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err := c.get(gone, cacheKey{}, nil)
	require.ErrorIs(t, err, context.Canceled, "one who waits may leave")
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
	require.NoError(t, <-second)
}

func TestAFailedLoadIsTriedAgain(t *testing.T) {
	c := newCache(10)
	failure := errors.New("once")
	_, err := c.get(t.Context(), cacheKey{}, func(context.Context) (cached, error) { return cached{}, failure })
	require.ErrorIs(t, err, failure)
	_, err = c.get(t.Context(), cacheKey{}, func(context.Context) (cached, error) { return cached{weight: 1}, nil })
	require.NoError(t, err)
}

// Behaviour 17.
func TestRecordsOutliveTheirPlaceInTheCache(t *testing.T) {
	for _, compression := range []recordbatch.Compression{recordbatch.None, recordbatch.Zstd} {
		w := makeWorld(t, 1) // evicts each block as soon as it was read
		w.compression = compression
		for i := range 20 {
			w.append(records(50*i, 50)...)
		}
		w.compact(0, 7, true)
		got, err := readAll(t.Context(), w.reader(), 0, Limits{MaxMessages: 13})
		require.NoError(t, err)
		again, err := readAll(t.Context(), w.reader(), 0, Limits{})
		require.NoError(t, err)
		require.Equal(t, w.all, got)
		require.Equal(t, w.all, again)
		require.Zero(t, w.fetcher.Stats().CacheBytes)
		w.close()
	}
}

func TestASmallObjectIsReadOnceForAllItsBlocks(t *testing.T) {
	w := newWorld(t)
	w.appendPadded(10_000, records(0, 20), records(20, 20), records(40, 20))
	got, err := readAll(t.Context(), w.reader(), 25, Limits{})
	require.NoError(t, err)
	require.Equal(t, w.all[25:], got)
	got, err = readAll(t.Context(), w.reader(), 0, Limits{})
	require.NoError(t, err)
	require.Equal(t, w.all, got)
	require.Len(t, w.reads(), 1)
}

func TestNeighbouringBlocksOfALargeObjectShareARequest(t *testing.T) {
	w := newWorld(t)
	w.appendPadded(60_000, records(0, 20), records(20, 20), records(40, 20), records(60, 20), records(80, 20))
	require.Greater(t, w.entries[0].Size, int64(wholeObjectBytes))
	got, err := readAll(t.Context(), w.reader(), 0, Limits{})
	require.NoError(t, err)
	require.Equal(t, w.all, got)
	require.Len(t, w.reads(), 1, "five blocks with small gaps")
}

func TestExtents(t *testing.T) {
	entry := func(seq base.Seq, pos, length, size int64) shard.Entry {
		return shard.Entry{Storage: shard.Raw, Writer: 1, Seq: seq, Pos: pos, Len: length, Size: size}
	}
	const large = 8 << 20
	for name, test := range map[string]struct {
		entries  []shard.Entry
		pos, len int64
		covered  int
	}{
		"small objects are read whole":  {[]shard.Entry{entry(1, 50, 10, 1000), entry(1, 90, 10, 1000), entry(2, 0, 9, 9)}, 0, 1000, 2},
		"large ones by block":           {[]shard.Entry{entry(1, 50, 10, large)}, 50, 10, 1},
		"a small gap is read along":     {[]shard.Entry{entry(1, 50, 10, large), entry(1, 60+maxGapBytes, 10, large)}, 50, 20 + maxGapBytes, 2},
		"a large gap is not":            {[]shard.Entry{entry(1, 50, 10, large), entry(1, 61+maxGapBytes, 10, large)}, 50, 10, 1},
		"extents are bounded":           {[]shard.Entry{entry(1, 0, maxExtentBytes-5, large), entry(1, maxExtentBytes-5, 6, large)}, 0, maxExtentBytes - 5, 1},
		"another object ends an extent": {[]shard.Entry{entry(1, 0, 10, large), entry(2, 10, 10, large)}, 0, 10, 1},
		"a block before is not joined":  {[]shard.Entry{entry(1, 50, 10, large), entry(1, 0, 10, large)}, 50, 10, 1},
		"a block may be huge":           {[]shard.Entry{entry(1, 0, large, large)}, 0, large, 1},
	} {
		t.Run(name, func(t *testing.T) {
			part, covered := extentOf(test.entries)
			require.Equal(t, test.pos, part.pos)
			require.Equal(t, test.len, part.len)
			require.Equal(t, test.covered, covered)
		})
	}
}

func TestASequentialReaderFetchesAhead(t *testing.T) {
	w := newWorld(t)
	for i := range 12 {
		w.append(records(10*i, 10)...)
	}
	r := w.reader()
	_, err := r.Read(t.Context(), 0, Limits{MaxMessages: 10})
	require.NoError(t, err)
	require.Len(t, w.reads(), 1, "a reader that may look at one record only fetches nothing ahead")
	_, err = r.Read(t.Context(), 10, Limits{MaxMessages: 1})
	require.NoError(t, err)
	w.fetcher.ahead.Wait()
	require.Len(t, w.reads(), 12, "one that goes on does")
	require.Equal(t, int64(10), w.fetcher.Stats().Prefetches)
	_, err = readAll(t.Context(), r, 11, Limits{})
	require.NoError(t, err)
	require.Len(t, w.reads(), 12, "and no object is read twice")
}

func TestACompactedObjectIsFetchedAheadInBlocks(t *testing.T) {
	w := makeWorld(t, 64<<20)
	defer w.close()
	incompressible := make([]recordbatch.Record, 400)
	for i := range incompressible {
		value := make([]byte, 0, 20_000)
		for x := uint64(i) + 1; len(value) < 20_000; {
			x = x*6364136223846793005 + 1442695040888963407
			value = append(value, byte(x>>56))
		}
		incompressible[i].Value = value
	}
	w.append(incompressible...)
	w.compact(0, 1, true)
	require.Greater(t, w.entries[0].Size, int64(7*blockBytes))
	source, err := NewSource(t.Context(), w.fetcher, w, testLog, base.OffsetRange{Start: 0, End: 400})
	require.NoError(t, err)
	next := 0
	require.NoError(t, source.Each(func(p *recordbatch.Positioned) error {
		require.True(t, bytes.Equal(w.all[next].Value, p.Value))
		next++
		return nil
	}))
	require.Equal(t, 400, next)
	stats := w.fetcher.Stats()
	require.Positive(t, stats.Prefetches)
	require.Equal(t, (w.entries[0].Size+blockBytes-1)/blockBytes, stats.Gets, "each block once")
	require.Equal(t, w.entries[0].Size, stats.ReadBytes)
	require.Positive(t, stats.Hits)
}

func TestPrefetchingIsBounded(t *testing.T) {
	w := makeWorld(t, 100_000)
	defer w.close()
	for i := range 40 {
		w.append(records(100*i, 100)...)
	}
	hold := make(chan struct{})
	var flying, most atomic.Int64
	w.faults = func(blob.Call) blob.Fault {
		return blob.Fault{Wait: func(context.Context) error {
			most.Store(max(most.Load(), flying.Add(1)))
			defer flying.Add(-1)
			<-hold
			return nil
		}}
	}
	for _, e := range w.entries {
		part, _ := extentOf([]shard.Entry{e})
		w.fetcher.prefetch(part)
	}
	w.fetcher.mu.Lock()
	require.LessOrEqual(t, w.fetcher.flying, maxPrefetches)
	require.LessOrEqual(t, w.fetcher.flyingBytes, int64(100_000/prefetchShare))
	require.Positive(t, w.fetcher.flying)
	w.fetcher.mu.Unlock()
	close(hold)
	w.fetcher.ahead.Wait()
	require.LessOrEqual(t, most.Load(), int64(maxPrefetches))
}

func TestAClosedFetcherStillReadsAndFetchesNothingAhead(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.append(records(10*i, 10)...)
	}
	w.fetcher.Close()
	got, err := readAll(t.Context(), w.reader(), 0, Limits{})
	require.NoError(t, err)
	require.Equal(t, w.all, got)
	require.Zero(t, w.fetcher.Stats().Prefetches)
	_, err = NewFetcher(w.store, -1)
	require.ErrorIs(t, err, base.ErrInvalid)
}
