// Package blob is the seam to object storage: whole objects that are created
// once and never changed, read by range, listed and deleted.
//
// Every other package stores objects through Store only. To add a provider,
// implement Store and run Acceptance over it; to test how a caller copes with
// failures, wrap any Store in a Faulty.
package blob

import (
	"context"
	"io"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Info describes one stored object.
type Info struct {
	Key  string
	Size int64
	// Modified is the store's own clock. Nothing that decides a delete may use it.
	Modified base.Millis
}

// Store keeps immutable objects under slash-separated keys. It is safe for
// concurrent use.
//
// Errors match the sentinels of package base: ErrNotFound, ErrExists,
// ErrUnavailable (the store cannot be reached or refuses for now; nothing
// happened), ErrUnknown (a write that may have happened), ErrInvalid (a key
// outside the grammar).
type Store interface {
	// Put stores data under a new key. When it returns nil the object and
	// every directory entry that leads to it are durable. A key that exists
	// is ErrExists and is left as it was. data is not kept.
	Put(ctx context.Context, key string, data []byte) error
	// Create starts a new object that is written as a stream. The object is
	// visible and durable when Commit returns nil, and invisible before.
	Create(ctx context.Context, key string) (Writer, error)
	// ReadRange reads length bytes from offset, into dst where its capacity
	// suffices, and returns them. Fewer bytes in the object than asked for
	// is io.ErrUnexpectedEOF; an absent object is ErrNotFound.
	ReadRange(ctx context.Context, key string, offset, length int64, dst []byte) ([]byte, error)
	// Stat returns size and time of an object, or ErrNotFound.
	Stat(ctx context.Context, key string) (Info, error)
	// List returns at most limit objects whose keys start with prefix and sort
	// after the key after, in byte order of their keys. Objects that were not
	// committed are not listed.
	List(ctx context.Context, prefix, after string, limit int) ([]Info, error)
	// Delete removes an object, durably. An absent object is no error.
	Delete(ctx context.Context, key string) error
	// String names the store for people: its URL without secrets.
	String() string
	// Close releases what the store holds. Calls under way may fail.
	Close() error
}

// Writer is one object being written. It is not safe for concurrent use.
// Exactly one of Commit and Abort ends it; Abort after Commit is a no-op.
type Writer interface {
	io.Writer
	// Commit makes the object visible and durable, or reports ErrExists.
	Commit() error
	// Abort discards what was written.
	Abort()
}
