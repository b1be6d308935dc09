package blob

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/lakestream-go/lakestream/internal/base"
)

// maxOpenDirs bounds the folders that a store keeps open while nobody uses them.
const maxOpenDirs = 64

// dirCache keeps the folders that objects are put into open, so that a Put neither
// walks the path nor opens the folder to sync it. A folder enters the cache only
// when every entry that leads to it is durable.
type dirCache struct {
	root *os.Root
	sync func(*os.File) error

	mu     sync.Mutex
	open   map[string]*dirHandle // guarded by mu
	uses   uint64                // guarded by mu: counts acquires, to find the least recently used
	closed bool                  // guarded by mu
}

// dirHandle is one open folder.
type dirHandle struct {
	path string
	root *os.Root // creates files in the folder
	file *os.File // syncs the folder

	users   int    // guarded by dirCache.mu
	lastUse uint64 // guarded by dirCache.mu
	evicted bool   // guarded by dirCache.mu: the last user closes it
}

func newDirCache(root *os.Root, sync func(*os.File) error) *dirCache {
	return &dirCache{root: root, sync: sync, open: make(map[string]*dirHandle)}
}

// acquire returns the folder at dir, which it creates durably when absent. The
// caller releases it.
func (c *dirCache) acquire(dir string) (*dirHandle, error) {
	if h, err := c.lookup(dir); h != nil || err != nil {
		return h, err
	}
	if err := c.makeDurable(dir); err != nil {
		return nil, err
	}
	h, err := c.openDir(dir)
	if err != nil {
		return nil, err
	}
	return c.insert(h)
}

func (c *dirCache) lookup(dir string) (*dirHandle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, base.ErrClosed
	}
	h := c.open[dir]
	if h != nil {
		c.use(h)
	}
	return h, nil
}

// use counts one more user of h. The caller holds c.mu.
func (c *dirCache) use(h *dirHandle) {
	c.uses++
	h.lastUse = c.uses
	h.users++
}

// insert adds a folder just opened, unless another caller was first.
func (c *dirCache) insert(h *dirHandle) (*dirHandle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.open[h.path]
	if c.closed || first != nil {
		err := h.close()
		if c.closed {
			return nil, errors.Join(base.ErrClosed, err)
		}
		c.use(first)
		return first, err
	}
	if len(c.open) >= maxOpenDirs {
		c.evictIdle()
	}
	c.open[h.path] = h
	c.use(h)
	return h, nil
}

// evictIdle closes the least recently used folder that nobody uses, if there is
// one. The caller holds c.mu.
func (c *dirCache) evictIdle() {
	var oldest *dirHandle
	for _, h := range c.open {
		if h.users == 0 && (oldest == nil || h.lastUse < oldest.lastUse) {
			oldest = h
		}
	}
	if oldest != nil {
		delete(c.open, oldest.path)
		_ = oldest.close() // only read from and synced: nothing to lose
	}
}

// release ends one use of h.
func (c *dirCache) release(h *dirHandle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.users--
	if h.users == 0 && h.evicted {
		_ = h.close() // only read from and synced: nothing to lose
	}
}

// forget takes a folder that turned out to be removed out of the cache. The
// caller still releases it.
func (c *dirCache) forget(h *dirHandle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[h.path] == h {
		delete(c.open, h.path)
		h.evicted = true
	}
}

// close closes every folder, those in use too.
func (c *dirCache) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var errs []error
	for dir, h := range c.open {
		delete(c.open, dir)
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

// makeDurable creates dir and its missing ancestors and syncs every folder above
// dir. It syncs those that it found too: whoever created them may not have come
// to that yet.
func (c *dirCache) makeDurable(dir string) error {
	if dir == "." {
		return nil
	}
	parent := "."
	for part := range strings.SplitSeq(dir, "/") {
		child := path.Join(parent, part)
		if err := c.root.Mkdir(child, dirMode); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := c.syncPath(parent); err != nil {
			return err
		}
		parent = child
	}
	return nil
}

// syncPath syncs the folder at dir.
func (c *dirCache) syncPath(dir string) error {
	f, err := c.root.Open(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(c.sync(f), f.Close()); err != nil {
		return fmt.Errorf("syncing folder %s: %w", dir, err)
	}
	return nil
}

func (c *dirCache) openDir(dir string) (*dirHandle, error) {
	root, err := c.root.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	file, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &dirHandle{path: dir, root: root, file: file}, nil
}

func (h *dirHandle) close() error { return errors.Join(h.file.Close(), h.root.Close()) }
