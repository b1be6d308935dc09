package log

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
)

// gatherer joins requests for neighbouring parts of one object: many logs share a
// WAL object, and when it was committed, their tails want their parts of it at once.
// The first request goes out at once. Those that come while one is under way wait
// for it and then go together, as few as gaps and sizes allow. Nobody waits longer
// than for one request of somebody else, and nothing is read that nobody asked for
// but small gaps. It is safe for concurrent use.
type gatherer struct {
	// get makes one request.
	get func(ctx context.Context, part cacheKey) ([]byte, error)

	mu sync.Mutex
	// busy are the objects with requests under way; guarded by mu, as is what it
	// points to.
	busy map[string]*gathering
}

// gathering is what happens to one object.
type gathering struct {
	// flying counts the requests under way.
	flying  int
	waiting []*wanted
}

// wanted is a part that a caller waits for.
type wanted struct {
	part cacheKey
	// ready is closed when data or err is set, or when the caller is to make the
	// request for joint.
	ready chan struct{}
	data  []byte
	err   error
	joint []*wanted
}

// errAlone tells a caller to make its request by itself.
var errAlone = errors.New("the joint request failed")

func newGatherer(get func(context.Context, cacheKey) ([]byte, error)) *gatherer {
	return &gatherer{get: get, busy: make(map[string]*gathering)}
}

// read returns the bytes of a part in a buffer of its own. Errors are those of get,
// or of ctx.
func (g *gatherer) read(ctx context.Context, part cacheKey) ([]byte, error) {
	w := g.join(part)
	select {
	case <-w.ready:
	case <-ctx.Done():
		g.leave(w)
		return nil, ctx.Err()
	}
	if w.joint == nil {
		if errors.Is(w.err, errAlone) {
			return g.get(ctx, part)
		}
		return w.data, w.err
	}
	defer g.land(part.object)
	return g.lead(ctx, w)
}

// join enters a part. Where nothing is under way, its request is to be made at once.
func (g *gatherer) join(part cacheKey) *wanted {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &wanted{part: part, ready: make(chan struct{})}
	if o := g.busy[part.object]; o != nil {
		o.waiting = append(o.waiting, w)
		return w
	}
	g.busy[part.object] = &gathering{flying: 1}
	w.joint = []*wanted{w}
	close(w.ready)
	return w
}

// leave takes back a part. Who was chosen to make a request tells the others to go
// alone.
func (g *gatherer) leave(w *wanted) {
	g.mu.Lock()
	o := g.busy[w.part.object]
	if o != nil {
		o.waiting = slices.DeleteFunc(o.waiting, func(other *wanted) bool { return other == w })
	}
	g.mu.Unlock()
	select {
	case <-w.ready:
	default:
		return // it was waiting, or another one makes its request
	}
	if w.joint != nil {
		w.settle(nil, errAlone)
		g.land(w.part.object)
	}
}

// lead makes the request of a joint of parts and gives each its bytes.
func (g *gatherer) lead(ctx context.Context, w *wanted) ([]byte, error) {
	part := w.joint[0].part
	for _, j := range w.joint {
		part.len = max(part.len, j.part.pos+j.part.len-part.pos)
	}
	data, err := g.get(ctx, part)
	if len(w.joint) == 1 {
		return data, err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || isCancelled(err) {
		// What the object lacks may be another's part, and who gave up is only w's
		// caller.
		w.settle(nil, errAlone)
		if isCancelled(err) {
			return nil, err
		}
		return g.get(ctx, w.part)
	}
	return w.settle(data, err), err
}

// settle gives every other part of the joint its bytes, of those from the first part
// on, or the error; it returns the bytes of w itself.
func (w *wanted) settle(data []byte, err error) (own []byte) {
	start := w.joint[0].part.pos
	for _, j := range w.joint {
		if err == nil {
			// A copy, so that no part keeps its neighbours in memory.
			j.data = slices.Clone(data[j.part.pos-start:][:j.part.len])
		}
		if j == w {
			own = j.data
			continue
		}
		j.err = err
		close(j.ready)
	}
	return own
}

// land ends a request. With the last one those that waited take off.
func (g *gatherer) land(object string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.busy[object]
	if o.flying--; o.flying > 0 {
		return
	}
	if len(o.waiting) == 0 {
		delete(g.busy, object)
		return
	}
	waiting := o.waiting
	o.waiting = nil
	slices.SortFunc(waiting, func(a, b *wanted) int { return cmp.Compare(a.part.pos, b.part.pos) })
	for len(waiting) > 0 {
		n := jointOf(waiting)
		leader := waiting[0]
		leader.joint = slices.Clip(waiting[:n])
		waiting = waiting[n:]
		o.flying++
		close(leader.ready)
	}
}

// jointOf returns how many of the parts, which are in order, one request can bring.
func jointOf(parts []*wanted) int {
	start, end := parts[0].part.pos, parts[0].part.pos+parts[0].part.len
	n := 1
	for ; n < len(parts); n++ {
		next := parts[n].part
		grown := max(end, next.pos+next.len)
		if next.pos-end > maxGapBytes || grown-start > maxExtentBytes {
			break
		}
		end = grown
	}
	return n
}
