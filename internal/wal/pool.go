package wal

import (
	"math/bits"
	"sync"

	"github.com/lakestream-go/lakestream/internal/blob"
)

// buffer is a byte slice that can be pooled without allocating.
type buffer struct {
	data []byte
}

// classPool keeps buffers by size class, each twice as large as the one before.
type classPool struct {
	classes [maxClass - minClass + 1]sync.Pool
}

const (
	minClass = 9  // 512 bytes
	maxClass = 23 // 8 MiB; larger ones are left to the garbage collector
)

// stagingPool holds what appends are encoded into before their object is built.
var stagingPool classPool

// get returns an empty buffer of at least this capacity.
func (p *classPool) get(capacity int) *buffer {
	class := max(minClass, bits.Len(uint(max(1, capacity)-1)))
	if class > maxClass {
		return &buffer{data: make([]byte, 0, capacity)}
	}
	if b, ok := p.classes[class-minClass].Get().(*buffer); ok {
		b.data = b.data[:0]
		return b
	}
	return &buffer{data: make([]byte, 0, 1<<class)}
}

func (p *classPool) put(b *buffer) {
	class := bits.Len(uint(cap(b.data))) - 1
	if class < minClass || class > maxClass {
		return
	}
	p.classes[class-minClass].Put(b)
}

// segmentList keeps a few aligned buffers in which objects are built. Unlike a
// sync.Pool it survives garbage collections, after which large buffers would have
// to be zeroed again.
type segmentList struct {
	keep int // bytes to hold at most

	mu   sync.Mutex
	free [][]byte // guarded by mu
	held int      // guarded by mu; bytes of free
}

const (
	minSegmentBytes = 256 << 10
	// segmentStepBytes is what sizes above it are rounded up to, so that an
	// object fits the buffer of one that was a little smaller.
	segmentStepBytes = 1 << 20
)

// take returns an aligned buffer of at least capacity bytes.
func (l *segmentList) take(capacity int) []byte {
	l.mu.Lock()
	best := -1
	for i, b := range l.free {
		if cap(b) >= capacity && (best < 0 || cap(b) < cap(l.free[best])) {
			best = i
		}
	}
	var found []byte
	if best >= 0 {
		last := len(l.free) - 1
		found = l.free[best]
		l.free[best], l.free[last] = l.free[last], nil
		l.free = l.free[:last]
		l.held -= cap(found)
	}
	l.mu.Unlock()
	if found != nil {
		return found
	}
	if capacity > segmentStepBytes {
		return blob.AlignedBuffer((capacity + segmentStepBytes - 1) / segmentStepBytes * segmentStepBytes)
	}
	return blob.AlignedBuffer(max(minSegmentBytes, 1<<bits.Len(uint(max(1, capacity)-1))))
}

func (l *segmentList) give(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held+cap(b) <= l.keep {
		l.free = append(l.free, b)
		l.held += cap(b)
	}
}

var appends = sync.Pool{New: func() any { return &Append{done: make(chan struct{}, 1)} }}

func newAppend() *Append {
	a := appends.Get().(*Append) // the pool holds nothing else
	return a
}

// recycle gives back everything that the append holds. Nobody may refer to it.
func (a *Append) recycle() {
	a.releaseStaging()
	clear(a.runs)
	clear(a.parts)
	clear(a.groups)
	clear(a.results)
	*a = Append{parts: a.parts[:0], groups: a.groups[:0], runs: a.runs[:0], results: a.results[:0], done: a.done}
	appends.Put(a)
}

func (a *Append) releaseStaging() {
	if a.staging != nil {
		stagingPool.put(a.staging)
		a.staging = nil
	}
}

// resize returns s with n zero elements.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}
