package blob

import (
	"context"
	"sync/atomic"
)

// Stats counts what was asked of a Store since it was opened, whether it succeeded
// or not, and the bytes of what succeeded. A bucket may need several requests for
// one call: parts of a large object, repeats after a failure.
type Stats struct {
	// Puts counts Put, and Create where it came to a Commit.
	Puts int64 `json:"puts"`
	// Gets counts ReadRange.
	Gets int64 `json:"gets"`
	// Heads counts Stat.
	Heads int64 `json:"heads"`
	// Lists counts pages of a listing.
	Lists int64 `json:"lists"`
	// Deletes counts Delete.
	Deletes int64 `json:"deletes"`
	// PutBytes are those of objects that were put, GetBytes those that reads
	// returned.
	PutBytes int64 `json:"put_bytes"`
	GetBytes int64 `json:"get_bytes"`
}

// Counted is a Store that counts its calls. Make one with NewCounted.
type Counted struct {
	inner Store

	puts, gets, heads, lists, deletes, putBytes, getBytes atomic.Int64
}

// NewCounted wraps a store, which the wrapper's Close closes.
func NewCounted(inner Store) *Counted { return &Counted{inner: inner} }

// Stats returns the counts as they stand. It is safe for concurrent use; counts
// that change meanwhile may be from slightly different moments.
func (s *Counted) Stats() Stats {
	return Stats{
		Puts: s.puts.Load(), Gets: s.gets.Load(), Heads: s.heads.Load(),
		Lists: s.lists.Load(), Deletes: s.deletes.Load(),
		PutBytes: s.putBytes.Load(), GetBytes: s.getBytes.Load(),
	}
}

// Put implements Store.
func (s *Counted) Put(ctx context.Context, key string, data []byte) error {
	s.puts.Add(1)
	err := s.inner.Put(ctx, key, data)
	if err == nil {
		s.putBytes.Add(int64(len(data)))
	}
	return err
}

// Create implements Store.
func (s *Counted) Create(ctx context.Context, key string) (Writer, error) {
	inner, err := s.inner.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	return &countedWriter{Writer: inner, store: s}, nil
}

// ReadRange implements Store.
func (s *Counted) ReadRange(ctx context.Context, key string, offset, length int64, dst []byte) ([]byte, error) {
	s.gets.Add(1)
	data, err := s.inner.ReadRange(ctx, key, offset, length, dst)
	if err == nil {
		s.getBytes.Add(int64(len(data)))
	}
	return data, err
}

// Stat implements Store.
func (s *Counted) Stat(ctx context.Context, key string) (Info, error) {
	s.heads.Add(1)
	return s.inner.Stat(ctx, key)
}

// List implements Store.
func (s *Counted) List(ctx context.Context, prefix, after string, limit int) ([]Info, error) {
	s.lists.Add(1)
	return s.inner.List(ctx, prefix, after, limit)
}

// Delete implements Store.
func (s *Counted) Delete(ctx context.Context, key string) error {
	s.deletes.Add(1)
	return s.inner.Delete(ctx, key)
}

// String implements Store.
func (s *Counted) String() string { return s.inner.String() }

// Close implements Store. The counts stay.
func (s *Counted) Close() error { return s.inner.Close() }

// countedWriter counts an object when it is committed.
type countedWriter struct {
	Writer

	store   *Counted
	written int64
}

// Write implements io.Writer.
func (w *countedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.written += int64(n)
	return n, err
}

// Commit implements Writer.
func (w *countedWriter) Commit() error {
	w.store.puts.Add(1)
	err := w.Writer.Commit()
	if err == nil {
		w.store.putBytes.Add(w.written)
	}
	return err
}
