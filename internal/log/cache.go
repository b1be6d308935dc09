package log

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/lakestream-go/lakestream/internal/format/compacted"
)

// cacheKey names a part of an object. Objects never change, so neither does what
// a key stands for.
type cacheKey struct {
	object   string
	pos, len int64
	// shared says that other logs may want what lies beside it at the same time.
	shared bool
}

// footerOf is the key of an open compacted object.
func footerOf(object string) cacheKey { return cacheKey{object: object, len: -1} }

// cached is what a key stands for: bytes, or an open compacted object. Readers
// share it and must not change it.
type cached struct {
	data   []byte
	object *compacted.Reader
	weight int64
}

// cache keeps what was used last, bounded in bytes, and loads each key once at a
// time. What it evicts stays valid for those who hold it: buffers are never used
// again. It is safe for concurrent use.
type cache struct {
	limit int64

	mu sync.Mutex
	// items has the loaded and the loading; used and order cover the loaded.
	// All three are guarded by mu.
	items map[cacheKey]*cacheItem
	used  int64
	order *list.List // of *cacheItem, the last used first
}

type cacheItem struct {
	key   cacheKey
	value cached
	err   error
	// ready is closed when value or err is set.
	ready   chan struct{}
	element *list.Element // nil while loading
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, items: make(map[cacheKey]*cacheItem), order: list.New()}
}

// get returns what key stands for, calling load when nobody else has or does. A
// caller whose ctx ends stops waiting; one whose loader gave up tries itself.
func (c *cache) get(ctx context.Context, key cacheKey, load func(context.Context) (cached, error)) (cached, error) {
	for {
		item, mine := c.claim(key)
		if mine {
			value, err := load(ctx)
			c.settle(item, value, err)
			return value, err
		}
		select {
		case <-item.ready:
		case <-ctx.Done():
			return cached{}, ctx.Err()
		}
		if item.err == nil || !isCancelled(item.err) || ctx.Err() != nil {
			return item.value, item.err
		}
	}
}

func isCancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// claim returns the item of a key, and whether the caller has to load it.
func (c *cache) claim(key cacheKey) (item *cacheItem, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if item, ok := c.items[key]; ok {
		if item.element != nil {
			c.order.MoveToFront(item.element)
		}
		return item, false
	}
	item = &cacheItem{key: key, ready: make(chan struct{})}
	c.items[key] = item
	return item, true
}

// settle ends a load. A failed one leaves nothing behind.
func (c *cache) settle(item *cacheItem, value cached, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	item.value, item.err = value, err
	close(item.ready)
	if err != nil {
		delete(c.items, item.key)
		return
	}
	item.element = c.order.PushFront(item)
	c.used += value.weight
	for c.used > c.limit {
		c.removeLocked(c.order.Back().Value.(*cacheItem)) // the list holds nothing else
	}
}

func (c *cache) removeLocked(item *cacheItem) {
	delete(c.items, item.key)
	c.order.Remove(item.element)
	c.used -= item.value.weight
}

// has reports whether a key is loaded or being loaded.
func (c *cache) has(key cacheKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.items[key]
	return ok
}

// forget drops all that is loaded of an object, so that it is read again: its
// bytes turned out to be damaged, perhaps only on the way.
func (c *cache) forget(object string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, item := range c.items {
		if key.object == object && item.element != nil {
			c.removeLocked(item)
		}
	}
}

// bytes returns what the cache holds.
func (c *cache) bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}
