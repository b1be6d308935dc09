package cursor

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// takeAttempts bounds how often a document that changes is stamped again.
const takeAttempts = 16

// stored is the document of a cursor, as its owner knows it.
type stored struct {
	documents  coord.Documents
	key        string
	owner      string
	generation base.Revision

	// turn holds one token while nobody writes; who has it may use the rest.
	turn     chan struct{}
	revision base.Revision
	// written is the cursor's version that the document holds.
	written uint64
	gone    error // why the document is not ours any more
}

// take stamps the document as the owner's, whoever had it.
func (s *stored) take(ctx context.Context, now base.Millis) (document, error) {
	for range takeAttempts {
		doc, revision, err := loadDocument(ctx, s.documents, s.key)
		if err != nil {
			return document{}, err
		}
		ok, err := s.stamp(ctx, &doc, revision, now)
		if ok || err != nil {
			return doc, err
		}
	}
	return document{}, base.WithClass(base.ErrUnavailable, fmt.Errorf("someone else takes %s again and again", s.key))
}

// stamp makes the document the owner's if it still stands at a revision; 0 means
// that it must not exist. It returns false when the document must be read again.
func (s *stored) stamp(ctx context.Context, doc *document, revision base.Revision, now base.Millis) (bool, error) {
	if revision > 0 && s.owns(doc) { // only the reply was lost
		s.revision = revision
		return true, nil
	}
	doc.Owner, doc.Generation, doc.Time, doc.Stalled = s.owner, s.generation, now, false
	data, err := doc.encode()
	if err != nil {
		return false, err
	}
	if revision == 0 {
		s.revision, err = s.documents.Create(ctx, s.key, data, 0)
	} else {
		s.revision, err = s.documents.Update(ctx, s.key, data, revision, 0)
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, base.ErrConflict), errors.Is(err, base.ErrExists), errors.Is(err, base.ErrUnknown):
		return false, nil
	default:
		return false, err
	}
}

// owns reports whether a document stands as this owner stamped it. An earlier stamp
// of the same session is not this one.
func (s *stored) owns(d *document) bool { return d.Owner == s.owner && d.Generation == s.generation }

// loadDocument returns a cursor's document, or an empty one at revision 0.
func loadDocument(ctx context.Context, documents coord.Documents, key string) (document, base.Revision, error) {
	found, err := documents.Get(ctx, key)
	if errors.Is(err, base.ErrNotFound) {
		return document{}, 0, nil
	}
	if err != nil {
		return document{}, 0, err
	}
	doc, err := decodeDocument(found.Value)
	return doc, found.Revision, err
}

// Persist makes what is consumed durable; without a change it does nothing. When
// someone else took the cursor, or deleted it, that is ErrFenced, now and for ever.
// After ErrUnknown or ErrUnavailable try again. An ephemeral cursor has nothing to
// persist.
func (c *Cursor) Persist(ctx context.Context) error {
	if c.store == nil {
		return nil
	}
	if err := c.begin(); err != nil {
		return err
	}
	defer c.running.Done()
	return c.write(ctx, c.store.owner)
}

// release persists and lets go of ownership: nothing can be persisted any more.
func (c *Cursor) release(ctx context.Context) error {
	if c.store == nil {
		return nil
	}
	return c.write(ctx, "")
}

// write stores the cursor with an owner.
func (c *Cursor) write(ctx context.Context, owner string) error {
	s := c.store
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done():
		return fmt.Errorf("persisting cursor %s: %w", s.key, base.WithClass(base.ErrUnavailable, ctx.Err()))
	}
	doc, version := c.snapshot()
	if s.gone == nil && version == s.written && owner == s.owner {
		return nil
	}
	doc.Owner, doc.Generation = owner, s.generation
	err := s.replace(ctx, &doc)
	if err != nil {
		return fmt.Errorf("persisting cursor %s: %w", s.key, err)
	}
	s.written = version
	if owner != s.owner {
		s.gone = fmt.Errorf("%w: it was let go", base.ErrFenced)
	}
	return nil
}

// replace writes the document while it is ours. One that stands at another
// revision is still ours when only the reply of an earlier write was lost.
func (s *stored) replace(ctx context.Context, doc *document) error {
	if s.gone != nil {
		return s.gone
	}
	data, err := doc.encode()
	if err != nil {
		return err
	}
	revision, err := s.documents.Update(ctx, s.key, data, s.revision, 0)
	if errors.Is(err, base.ErrConflict) {
		found, at, readErr := loadDocument(ctx, s.documents, s.key)
		switch {
		case readErr != nil:
			return readErr
		case at == 0:
			s.gone = fmt.Errorf("%w: it was deleted", base.ErrFenced)
			return s.gone
		case !s.owns(&found):
			s.gone = fmt.Errorf("%w: it belongs to another owner since", base.ErrFenced)
			return s.gone
		}
		revision, err = s.documents.Update(ctx, s.key, data, at, 0)
	}
	if err != nil {
		return err
	}
	s.revision = revision
	return nil
}

// snapshot returns the cursor as a document without an owner, and its version.
func (c *Cursor) snapshot() (document, uint64) {
	now := base.MillisOf(c.clock.Now())
	c.mu.Lock()
	defer c.mu.Unlock()
	doc := document{Properties: maps.Clone(c.properties), Stalled: c.stalled, Time: now}
	if c.marked {
		next := c.next
		doc.Next = &next
	}
	for _, r := range c.acks {
		doc.Acks = append(doc.Acks, [2]base.Offset{r.Start, r.End})
	}
	return doc, c.version
}

// SetStalled tells, with the next Persist, whether its owner waits for a batch for
// too long.
func (c *Cursor) SetStalled(stalled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stalled != stalled {
		c.stalled = stalled
		c.version++
	}
}

// Delete removes a durable cursor for good and closes this one. One that someone
// else took is ErrFenced; one that is gone is no error.
func (c *Cursor) Delete(ctx context.Context) error {
	if err := c.begin(); err != nil {
		return err
	}
	err := c.delete(ctx)
	c.running.Done()
	if err == nil {
		c.Close()
	}
	return err
}

func (c *Cursor) delete(ctx context.Context) error {
	s := c.store
	if s == nil {
		return nil
	}
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done():
		return fmt.Errorf("deleting cursor %s: %w", s.key, base.WithClass(base.ErrUnavailable, ctx.Err()))
	}
	found, at, err := loadDocument(ctx, s.documents, s.key)
	switch {
	case err != nil:
		return fmt.Errorf("deleting cursor %s: %w", s.key, err)
	case at == 0:
		return nil
	case !s.owns(&found):
		return fmt.Errorf("deleting cursor %s: %w: it belongs to another owner since", s.key, base.ErrFenced)
	}
	if err := s.documents.Delete(ctx, s.key, at); err != nil && !errors.Is(err, base.ErrNotFound) {
		return fmt.Errorf("deleting cursor %s: %w", s.key, err)
	}
	return nil
}
