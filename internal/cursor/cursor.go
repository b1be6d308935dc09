package cursor

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/log"
)

// Log is what a cursor needs of the log that it is in. It is used by one operation
// at a time; log.Reader documents the errors.
type Log interface {
	// Bounds returns the first live offset and the one after the last.
	Bounds() (start, head base.Offset, err error)
	// Read returns records from an offset on, at the head none.
	Read(ctx context.Context, from base.Offset, limits log.Limits) (log.Batch, error)
	// Tail is Read that waits at the head until there is a record.
	Tail(ctx context.Context, from base.Offset, limits log.Limits) (log.Batch, error)
}

// Cursor is a place in one log. What is consumed is known in memory at once and
// becomes durable with Persist. It is safe for concurrent use; reads take turns.
type Cursor struct {
	log   Log
	clock base.Clock
	store *stored // nil when the cursor is ephemeral

	// turn holds one token while nobody reads.
	turn chan struct{}
	// closing ends waits.
	closing chan struct{}
	// running are the operations that Close waits for; Add needs mu.
	running sync.WaitGroup

	mu sync.Mutex
	// All below are guarded by mu.
	closed bool
	// marked says that next was ever set.
	marked     bool
	next       base.Offset // the first that is not consumed
	acks       ranges      // after next
	read       base.Offset
	properties map[string]string
	stalled    bool
	// version counts changes, so that Persist knows what it has written.
	version uint64
}

// NewEphemeral returns a cursor that nothing remembers, at an offset: what lies
// before it counts as consumed.
func NewEphemeral(source Log, at base.Offset) *Cursor {
	c := newCursor(source, nil, nil)
	c.marked, c.next, c.read = true, at, at
	return c
}

func newCursor(source Log, clock base.Clock, store *stored) *Cursor {
	c := &Cursor{log: source, clock: clock, store: store, turn: make(chan struct{}, 1), closing: make(chan struct{})}
	c.turn <- struct{}{}
	return c
}

// OpenOptions say which durable cursor to open.
type OpenOptions struct {
	Documents coord.Documents
	Clock     base.Clock
	Place     Place
	// Name is the cursor's own among those of its log.
	Name string
	// Owner is unique to this opening.
	Owner string
	Log   Log
}

// Open opens a durable cursor and takes it from whoever had it open: their next
// Persist is base.ErrFenced. A cursor that is new has no mark: see Marked. Reading
// begins after the mark.
func Open(ctx context.Context, o OpenOptions) (*Cursor, error) {
	if err := CheckName(o.Name); err != nil {
		return nil, fmt.Errorf("opening cursor: %w", err)
	}
	store := &stored{documents: o.Documents, key: o.Place.key(cursorKind, o.Name), owner: o.Owner, turn: make(chan struct{}, 1)}
	store.turn <- struct{}{}
	doc, err := store.take(ctx, base.MillisOf(o.Clock.Now()))
	if err != nil {
		return nil, fmt.Errorf("opening cursor %s at %s: %w", o.Name, o.Place, err)
	}
	c := newCursor(o.Log, o.Clock, store)
	c.restore(&doc)
	return c, nil
}

// restore takes over what a document holds.
func (c *Cursor) restore(d *document) {
	if d.Next == nil {
		return
	}
	c.marked, c.next, c.read = true, *d.Next, *d.Next
	for _, a := range d.Acks {
		c.acks = append(c.acks, base.OffsetRange{Start: a[0], End: a[1]})
	}
	c.properties = d.Properties
}

// begin lets an operation run, unless the cursor is closed.
func (c *Cursor) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return base.ErrClosed
	}
	c.running.Add(1)
	return nil
}

// Close refuses further operations, ends waits, and returns when the operations
// that are running have ended. It does not persist. A second call does the same.
func (c *Cursor) Close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.closing)
	}
	c.mu.Unlock()
	c.running.Wait()
}

// Marked reports whether the cursor has a mark. One without begins where Reset
// puts it; its Next is 0.
func (c *Cursor) Marked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.marked
}

// Next returns the first offset that is not consumed, where reading resumes: the
// mark and one.
func (c *Cursor) Next() base.Offset {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

// Properties returns those that came with the mark.
func (c *Cursor) Properties() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.properties)
}

// MarkConsumed moves the mark to an offset: it and all before it are consumed. A
// mark never goes back: an offset at or before it changes nothing, not even the
// properties. One at or beyond the head is ErrInvalid.
func (c *Cursor) MarkConsumed(offset base.Offset, properties map[string]string) error {
	if err := checkProperties(properties); err != nil {
		return err
	}
	if err := c.checkHead(offset + 1); err != nil {
		return fmt.Errorf("marking offset %d: %w", offset, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return base.ErrClosed
	case c.marked && offset < c.next:
		return nil
	}
	c.marked, c.properties = true, maps.Clone(properties)
	c.advance(offset + 1)
	return nil
}

// Ack says that the offsets of a range are consumed. Where the range begins at
// Next the mark moves, over ranges that it then reaches too. When too many ranges
// lie after the mark, that is ErrInvalid: consume what lies before them first.
func (c *Cursor) Ack(r base.OffsetRange) error {
	if err := c.checkHead(r.End); err != nil {
		return fmt.Errorf("acknowledging %s: %w", r, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Start = max(r.Start, c.next)
	switch {
	case c.closed:
		return base.ErrClosed
	case r.Len() <= 0:
		return nil
	case r.Start == c.next:
		c.marked = true
		c.advance(r.End)
		return nil
	case len(c.acks) >= MaxAcks && !c.acks.joins(r):
		return fmt.Errorf("%w: acknowledging %s: %d ranges after the mark %d are acknowledged: acknowledge what lies before them first",
			base.ErrInvalid, r, len(c.acks), c.next-1)
	}
	c.marked = true // a range alone says that what lies before it is not consumed
	c.acks = c.acks.add(r)
	c.version++
	return nil
}

// advance moves the mark. It needs mu.
func (c *Cursor) advance(next base.Offset) {
	if next > c.next {
		c.next = next
	}
	c.acks = c.acks.from(c.next)
	if len(c.acks) > 0 && c.acks[0].Start == c.next {
		c.next, c.acks = c.acks[0].End, c.acks[1:]
	}
	c.read = max(c.read, c.next)
	c.version++
}

// checkHead refuses offsets that no record has yet.
func (c *Cursor) checkHead(end base.Offset) error {
	_, head, err := c.log.Bounds()
	if err != nil {
		return err
	}
	if end > head {
		return fmt.Errorf("%w: the log ends at %d", base.ErrInvalid, head)
	}
	return nil
}

// Reset puts the mark and the reading before an offset, forwards or back, and
// forgets what was consumed after it, durably. Errors are those of Persist.
func (c *Cursor) Reset(ctx context.Context, next base.Offset) error {
	if next < 0 {
		return fmt.Errorf("%w: resetting a cursor to offset %d", base.ErrInvalid, next)
	}
	if err := c.checkHead(next); err != nil {
		return fmt.Errorf("resetting a cursor to offset %d: %w", next, err)
	}
	c.mu.Lock()
	c.marked, c.next, c.read, c.acks, c.properties = true, next, next, nil, nil
	c.version++
	c.mu.Unlock()
	return c.Persist(ctx)
}
