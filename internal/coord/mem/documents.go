package mem

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// document is a value and the time at which it vanishes, zero for never.
type document struct {
	value    []byte
	revision base.Revision
	expires  time.Time
}

type documents struct {
	store *Store
}

func (d documents) Get(ctx context.Context, key string) (coord.Document, error) {
	if err := d.enter(ctx, key); err != nil {
		return coord.Document{}, fmt.Errorf("reading document %s: %w", key, err)
	}
	defer d.store.server.mu.Unlock()
	doc, ok := d.live(key)
	if !ok {
		return coord.Document{}, fmt.Errorf("reading document %s: %w", key, base.ErrNotFound)
	}
	return doc.public(key), nil
}

func (d documents) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (base.Revision, error) {
	if err := check(value, ttl); err != nil {
		return 0, fmt.Errorf("creating document %s: %w", key, err)
	}
	if err := d.enter(ctx, key); err != nil {
		return 0, fmt.Errorf("creating document %s: %w", key, err)
	}
	defer d.store.server.mu.Unlock()
	if _, ok := d.live(key); ok {
		return 0, fmt.Errorf("creating document %s: %w", key, base.ErrExists)
	}
	return d.set(key, value, ttl), nil
}

func (d documents) Update(
	ctx context.Context, key string, value []byte, revision base.Revision, ttl time.Duration,
) (base.Revision, error) {
	if err := check(value, ttl); err != nil {
		return 0, fmt.Errorf("updating document %s: %w", key, err)
	}
	if err := d.enter(ctx, key); err != nil {
		return 0, fmt.Errorf("updating document %s: %w", key, err)
	}
	defer d.store.server.mu.Unlock()
	if doc, ok := d.live(key); !ok || doc.revision != revision {
		return 0, fmt.Errorf("updating document %s at revision %d: %w", key, revision, base.ErrConflict)
	}
	return d.set(key, value, ttl), nil
}

func (d documents) Delete(ctx context.Context, key string, revision base.Revision) error {
	if err := d.enter(ctx, key); err != nil {
		return fmt.Errorf("deleting document %s: %w", key, err)
	}
	defer d.store.server.mu.Unlock()
	if doc, ok := d.live(key); !ok || doc.revision != revision {
		return fmt.Errorf("deleting document %s at revision %d: %w", key, revision, base.ErrConflict)
	}
	d.store.server.revision++
	delete(d.store.server.documents, key)
	return nil
}

func (d documents) List(ctx context.Context, prefix string) ([]coord.Document, error) {
	if err := d.store.enter(ctx); err != nil {
		return nil, fmt.Errorf("listing documents %s: %w", prefix, err)
	}
	defer d.store.server.mu.Unlock()
	var found []coord.Document
	for _, key := range slices.Sorted(maps.Keys(d.store.server.documents)) {
		if doc, ok := d.live(key); ok && strings.HasPrefix(key, prefix) {
			found = append(found, doc.public(key))
		}
	}
	return found, nil
}

// enter checks the key and locks the server.
func (d documents) enter(ctx context.Context, key string) error {
	if err := coord.CheckKey(key); err != nil {
		return err
	}
	return d.store.enter(ctx)
}

// live returns the document unless it is absent or has expired. It needs mu.
func (d documents) live(key string) (document, bool) {
	doc, ok := d.store.server.documents[key]
	if ok && !doc.expires.IsZero() && !d.store.server.clock.Now().Before(doc.expires) {
		delete(d.store.server.documents, key)
		return document{}, false
	}
	return doc, ok
}

// set stores a value under the next revision. It needs mu.
func (d documents) set(key string, value []byte, ttl time.Duration) base.Revision {
	server := d.store.server
	server.revision++
	doc := document{value: bytes.Clone(value), revision: server.revision}
	if ttl > 0 {
		doc.expires = server.clock.Now().Add(ttl)
	}
	server.documents[key] = doc
	return doc.revision
}

func (d document) public(key string) coord.Document {
	return coord.Document{Key: key, Value: bytes.Clone(d.value), Revision: d.revision}
}

func check(value []byte, ttl time.Duration) error {
	if err := coord.CheckData(value, coord.MaxRecordBytes); err != nil {
		return err
	}
	return coord.CheckTTL(ttl)
}
