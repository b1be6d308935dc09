package mem

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// watchBuffer is how many new entries a watch holds before it counts as too
// slow and is interrupted.
const watchBuffer = 1024

// history is one log. Server.mu guards all of it.
type history struct {
	first   base.Revision // of the first retained entry, or else of the next
	entries []coord.Entry // entries[i] has revision first+i
	watches []*watch
}

// next is the revision that the next record gets.
func (h *history) next() base.Revision { return h.first + base.Revision(len(h.entries)) }

// from returns the entries from a revision on.
func (h *history) from(revision base.Revision) []coord.Entry {
	skip := min(max(revision, h.first), h.next()) - h.first
	return h.entries[skip:]
}

func (h *history) append(at base.Millis, data []byte) base.Revision {
	revision := h.next()
	entry := coord.Entry{Revision: revision, Time: at, Data: bytes.Clone(data)}
	h.entries = append(h.entries, entry)
	for _, w := range slices.Clone(h.watches) {
		w.deliver(entry)
	}
	return revision
}

type commitLog struct {
	store   *Store
	history *history
}

func (l *commitLog) Put(ctx context.Context, data []byte) (base.Revision, error) {
	if err := coord.CheckData(data, coord.MaxRecordBytes); err != nil {
		return 0, err
	}
	if err := l.store.enter(ctx); err != nil {
		return 0, fmt.Errorf("putting record: %w", err)
	}
	defer l.store.server.mu.Unlock()
	return l.history.append(base.MillisOf(l.store.server.clock.Now()), data), nil
}

func (l *commitLog) Watch(ctx context.Context, from base.Revision) (coord.Watch, error) {
	if from == 0 {
		return nil, fmt.Errorf("%w: watching from revision 0: the first is 1", base.ErrInvalid)
	}
	if err := l.store.enter(ctx); err != nil {
		return nil, fmt.Errorf("watching log: %w", err)
	}
	defer l.store.server.mu.Unlock()
	backlog := l.history.from(from)
	w := &watch{
		store: l.store, history: l.history, from: from,
		entries: make(chan coord.Entry, len(backlog)+watchBuffer),
	}
	l.history.watches = append(l.history.watches, w)
	for _, entry := range backlog {
		w.deliver(entry)
	}
	return w, nil
}

func (l *commitLog) Bounds(ctx context.Context) (first, last base.Revision, err error) {
	if err := l.store.enter(ctx); err != nil {
		return 0, 0, fmt.Errorf("reading bounds: %w", err)
	}
	defer l.store.server.mu.Unlock()
	last = l.history.next() - 1
	if last == 0 {
		return 0, 0, nil
	}
	return l.history.first, last, nil
}

func (l *commitLog) Purge(ctx context.Context, below base.Revision) error {
	if err := l.store.enter(ctx); err != nil {
		return fmt.Errorf("purging log: %w", err)
	}
	defer l.store.server.mu.Unlock()
	h := l.history
	if len(h.entries) == 0 {
		return nil
	}
	kept := h.from(min(below, h.next()-1))
	h.first, h.entries = kept[0].Revision, slices.Clone(kept) // a clone lets go of the rest
	return nil
}

// watch is fed by append under Server.mu, which also guards its fields.
type watch struct {
	store   *Store
	history *history
	from    base.Revision
	entries chan coord.Entry
	ended   bool
}

func (w *watch) Entries() <-chan coord.Entry { return w.entries }

func (w *watch) Stop() {
	w.store.server.mu.Lock()
	defer w.store.server.mu.Unlock()
	w.end()
}

// deliver hands the receiver its own copy of an entry, or interrupts a receiver
// that has fallen too far behind.
func (w *watch) deliver(entry coord.Entry) {
	if entry.Revision < w.from {
		return
	}
	entry.Data = bytes.Clone(entry.Data)
	select {
	case w.entries <- entry:
	default:
		w.end()
	}
}

func (w *watch) end() {
	if w.ended {
		return
	}
	w.ended = true
	close(w.entries)
	w.history.watches = slices.DeleteFunc(w.history.watches, func(o *watch) bool { return o == w })
}
