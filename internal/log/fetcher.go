package log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/format/compacted"
)

const (
	// defaultCacheBytes is the cache when Options do not say.
	defaultCacheBytes = 128 << 20
	// maxPrefetches bounds the requests made ahead of readers.
	maxPrefetches = 16
	// prefetchShare is the part of the cache that may be on its way ahead of
	// readers: more would push out what they are about to use.
	prefetchShare = 4
	// footerWeight is how much more memory a parsed footer takes than its bytes.
	footerWeight = 4
)

// Stats count what a Fetcher did since it was made.
type Stats struct {
	// Gets counts requests to the store, ReadBytes what they returned, Hits
	// what the cache answered instead.
	Gets, ReadBytes, Hits int64
	// Prefetches counts the requests among Gets that ran ahead of a reader.
	Prefetches int64
	// ReturnedBytes counts the keys, values and headers that readers got. What
	// ReadBytes is larger by is format, neighbours that were read along, and what
	// was evicted before it was asked for again; what it is smaller by is
	// compression and the cache.
	ReturnedBytes int64
	// CacheBytes is what the cache holds now.
	CacheBytes int64
}

// Fetcher reads parts of objects through a cache. One serves all logs of a
// process; it is safe for concurrent use.
type Fetcher struct {
	store  blob.Store
	cache  *cache
	gather *gatherer

	gets, readBytes, hits, prefetches, returned atomic.Int64

	running context.Context
	stop    context.CancelFunc
	ahead   sync.WaitGroup

	mu sync.Mutex
	// closed, flying and flyingBytes are guarded by mu; the last two count what
	// prefetches have asked for.
	closed      bool
	flying      int
	flyingBytes int64
}

// NewFetcher returns a fetcher over a store whose cache holds at most so many
// bytes; 0 means 128 MiB. A negative number is base.ErrInvalid.
func NewFetcher(store blob.Store, cacheBytes int64) (*Fetcher, error) {
	if cacheBytes < 0 {
		return nil, fmt.Errorf("%w: a cache of %d bytes", base.ErrInvalid, cacheBytes)
	}
	if cacheBytes == 0 {
		cacheBytes = defaultCacheBytes
	}
	f := &Fetcher{store: store, cache: newCache(cacheBytes)}
	f.gather = newGatherer(f.get)
	f.running, f.stop = context.WithCancel(context.Background())
	return f, nil
}

// Close stops the requests that run ahead of readers and waits for them. The
// store stays open; reads that are under way go on.
func (f *Fetcher) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.stop()
	f.ahead.Wait()
}

// Stats returns the counters.
func (f *Fetcher) Stats() Stats {
	return Stats{
		Gets: f.gets.Load(), ReadBytes: f.readBytes.Load(), Hits: f.hits.Load(),
		Prefetches: f.prefetches.Load(), ReturnedBytes: f.returned.Load(), CacheBytes: f.cache.bytes(),
	}
}

// read returns the bytes of a part, which must not be changed. It fails when ctx
// has ended even if the cache could answer, so that a long scan ends too.
func (f *Fetcher) read(ctx context.Context, part cacheKey) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	hit := true
	value, err := f.cache.get(ctx, part, func(ctx context.Context) (cached, error) {
		hit = false
		return f.load(ctx, part)
	})
	if hit && err == nil {
		f.hits.Add(1)
	}
	return value.data, err
}

// load asks the store. The buffer is new each time, because records that leave
// the engine point into it for as long as anybody likes.
func (f *Fetcher) load(ctx context.Context, part cacheKey) (cached, error) {
	get := f.get
	if part.shared {
		get = f.gather.read
	}
	data, err := get(ctx, part)
	if err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = base.WithClass(base.ErrCorrupt, err)
		}
		return cached{}, fmt.Errorf("reading object %s, bytes [%d, %d): %w", part.object, part.pos, part.pos+part.len, err)
	}
	return cached{data: data, weight: part.len}, nil
}

// get makes one request.
func (f *Fetcher) get(ctx context.Context, part cacheKey) ([]byte, error) {
	f.gets.Add(1)
	data, err := f.store.ReadRange(ctx, part.object, part.pos, part.len, make([]byte, 0, part.len))
	if err != nil {
		return nil, err
	}
	f.readBytes.Add(int64(len(data)))
	return data, nil
}

// prefetch starts to read a part that a reader will want soon, unless it is there
// or enough is on its way. Its failure is left to the reader to find.
func (f *Fetcher) prefetch(part cacheKey) {
	if f.cache.has(part) || !f.takeOff(part.len) {
		return
	}
	go func() {
		defer f.land(part.len)
		_, _ = f.cache.get(f.running, part, func(ctx context.Context) (cached, error) {
			f.prefetches.Add(1)
			return f.load(ctx, part)
		})
	}()
}

func (f *Fetcher) takeOff(bytes int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.flying >= maxPrefetches || f.flyingBytes+bytes > f.cache.limit/prefetchShare {
		return false
	}
	f.flying++
	f.flyingBytes += bytes
	f.ahead.Add(1)
	return true
}

func (f *Fetcher) land(bytes int64) {
	f.mu.Lock()
	f.flying--
	f.flyingBytes -= bytes
	f.mu.Unlock()
	f.ahead.Done()
}

// open returns an open compacted object, read through source.
func (f *Fetcher) open(ctx context.Context, source *objectSource, want compacted.Meta) (*compacted.Reader, error) {
	value, err := f.cache.get(ctx, footerOf(source.key), func(ctx context.Context) (cached, error) {
		source.ctx = ctx
		object, err := compacted.Open(source, source.size, want)
		if err != nil {
			return cached{}, fmt.Errorf("opening object %s: %w", source.key, err)
		}
		// The cached one must not keep a reader's context.
		return cached{object: object.With(nil), weight: footerWeight * object.FooterBytes()}, nil
	})
	if err != nil {
		return nil, err
	}
	return value.object.With(source), nil
}
