// Package coord is the seam to coordination: append-only commit logs whose order
// every instance agrees on, and small documents changed by compare-and-set.
//
// The commit log is the only thing that orders writes; documents carry leases,
// cursors and the cluster's identity. To add a provider, implement Store and
// run coordtest.Run over it; to test how a caller copes with failures, wrap any
// Store in a Faulty.
//
// A log holds what was put until Purge drops it, and documents hold one value a
// key until they are deleted or expire: what bounds a store is that logs are
// purged behind their checkpoints and that lasting keys are as few as the cluster
// has parts. A store that is full refuses what is put and drops nothing.
package coord

import (
	"context"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Entry is one record of a commit log as the store accepted it.
type Entry struct {
	Revision base.Revision
	// Time is the clock of the server that accepted the record. It may step
	// back between entries; the fold takes the running maximum.
	Time base.Millis
	// Data is what was put, or empty for a stray delete marker. It belongs to
	// the receiver.
	Data []byte
}

// CommitLog is the ordered history of one key. It is safe for concurrent use.
type CommitLog interface {
	// Put appends data and returns its revision, which is durable. After
	// ErrUnknown the record may have been appended, or may yet be; only
	// reading the log tells. ErrUnavailable means that it was not.
	Put(ctx context.Context, data []byte) (base.Revision, error)
	// Watch delivers every entry from revision from (≥1) on, in order, then
	// new ones as they arrive. Where from was purged it starts at the first
	// retained entry, whose revision tells. ctx bounds the start only; Stop
	// ends it.
	Watch(ctx context.Context, from base.Revision) (Watch, error)
	// Bounds returns the first retained and the last revision as the leader
	// knows them, never a stale replica. A log that never had a record has 0, 0,
	// and where its first record is to be n (>1), n, n-1.
	Bounds(ctx context.Context) (first, last base.Revision, err error)
	// Purge drops the entries with a revision below this one, for good; the last
	// entry stays, whatever below is, so that the log keeps its place. It can be
	// repeated, also after ErrUnknown. Running watches may or may not deliver
	// what was dropped before they came to it.
	Purge(ctx context.Context, below base.Revision) error
}

// Watch is a running delivery of entries.
type Watch interface {
	// Entries delivers until the watch is interrupted or stopped, then closes.
	// Silence is no proof that nothing happened: a caller compares with Bounds.
	Entries() <-chan Entry
	// Stop ends the delivery and releases it. It may be called twice.
	Stop()
}

// Document is one value under a key.
type Document struct {
	Key   string
	Value []byte
	// Revision changes with every change of the document and never repeats;
	// it serves as a fencing epoch.
	Revision base.Revision
}

// Documents are small values changed by compare-and-set. Keys are
// dot-separated tokens of A-Z a-z 0-9 _ and -. Reads are answered by the leader.
// It is safe for concurrent use.
type Documents interface {
	// Get returns a document, or ErrNotFound.
	Get(ctx context.Context, key string) (Document, error)
	// Create stores a document that must not exist, else ErrExists. With a
	// ttl above 0 (whole seconds) it vanishes unless updated in time.
	Create(ctx context.Context, key string, value []byte, ttl time.Duration) (base.Revision, error)
	// Update replaces a document that must stand at revision, else
	// ErrConflict. Its time to live starts again as ttl.
	Update(ctx context.Context, key string, value []byte, revision base.Revision, ttl time.Duration) (base.Revision, error)
	// Delete removes a document that must stand at revision, else ErrConflict.
	Delete(ctx context.Context, key string, revision base.Revision) error
	// List returns the documents whose keys start with prefix, by key.
	List(ctx context.Context, prefix string) ([]Document, error)
}

// Store is the coordination of one cluster. It is safe for concurrent use.
type Store interface {
	// Log opens the commit log of this name ("meta", "s00", …), creating it
	// empty when absent.
	Log(ctx context.Context, name string) (CommitLog, error)
	// LogFrom creates the commit log of this name such that its first record
	// gets revision first (≥1): the place of a log that was lost goes on from
	// what is known of it. An empty log that waits for that revision is opened;
	// any other is ErrExists and left alone. Log opens it from then on.
	LogFrom(ctx context.Context, name string, first base.Revision) (CommitLog, error)
	// Documents returns the cluster's documents.
	Documents() Documents
	// Reconnects returns a counter that grows each time the connection was
	// lost and made again: a watch made before may have become silent.
	Reconnects() uint64
	// String names the store for people, without secrets.
	String() string
	// Close releases the connection and, where this process runs it, the
	// server, waiting for both at most until ctx ends.
	Close(ctx context.Context) error
}
