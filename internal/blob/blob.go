// Package blob is the seam to object storage: whole objects that are created
// once and never changed, read by range, listed and deleted.
//
// Every other package stores objects through Store only. Open makes one from a
// URL. To add a provider that package gocloud.dev/blob knows, teach Open its
// scheme; to add another, implement Store. Either way run the acceptance suite of
// package blobtest over it. To test how a caller copes with failures, wrap any
// Store in a Faulty.
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
// A key is 1 to 1024 bytes: parts of 1 to 255 of the characters A-Z a-z 0-9
// . _ = @ + - ~ , and space, joined by slashes, none starting or ending with a dot.
// A key must not be the folder of another key.
//
// Errors match the sentinels of package base: ErrNotFound, ErrExists,
// ErrUnavailable (the store cannot be reached or refuses for now; nothing
// happened), ErrUnknown (a write that may have happened), ErrInvalid (a key
// outside the grammar), ErrClosed. A cancelled context ends a call with the
// context's error.
type Store interface {
	// Put stores data under a new key. When it returns nil the object and
	// every directory entry that leads to it are durable. A key that exists
	// is ErrExists and is left as it was. data is not kept.
	//
	// While Put runs, and after a crash inside it, other readers may see a
	// part of the object. So Put is for objects that are read only once a
	// commit record names them; an object that is looked up by its name alone
	// needs Create, which is all or nothing.
	Put(ctx context.Context, key string, data []byte) error
	// Create starts a new object that is written as a stream. The object is
	// visible and durable when Commit returns nil, and invisible before. ctx
	// governs the whole write: once it is cancelled, Write and Commit fail.
	Create(ctx context.Context, key string) (Writer, error)
	// ReadRange reads length bytes from offset, into dst where its capacity
	// suffices, and returns them. Fewer bytes in the object than asked for
	// is io.ErrUnexpectedEOF; an absent object is ErrNotFound; a negative
	// offset or length is ErrInvalid.
	ReadRange(ctx context.Context, key string, offset, length int64, dst []byte) ([]byte, error)
	// Stat returns size and time of an object, or ErrNotFound.
	Stat(ctx context.Context, key string) (Info, error)
	// List returns at most limit objects whose keys start with prefix and sort
	// after the key after, in byte order of their keys. limit is at least 1.
	// Fewer objects than limit means that there are no more. Objects that were
	// not committed are not listed.
	List(ctx context.Context, prefix, after string, limit int) ([]Info, error)
	// Delete removes an object, durably. An absent object is no error.
	Delete(ctx context.Context, key string) error
	// String names the store for people: its URL without secrets.
	String() string
	// Close releases what the store holds. Calls under way may fail; later
	// ones return ErrClosed. Closing again is a no-op.
	Close() error
}

// Writer is one object being written. It is not safe for concurrent use.
// Exactly one of Commit and Abort ends it; Abort after Commit is a no-op.
type Writer interface {
	io.Writer
	// Commit makes the object visible and durable, or reports ErrExists and
	// leaves the object that has the key as it was. After any error but
	// ErrUnknown nothing of this object is visible.
	Commit() error
	// Abort discards what was written.
	Abort()
}
