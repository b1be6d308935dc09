package engine

import "github.com/lakestream-go/lakestream/internal/base"

// Errors that callers tell apart with errors.Is.
var (
	// ErrUnknown marks an operation that may or may not have taken effect.
	ErrUnknown = base.ErrUnknown
	// ErrFenced marks an operation refused because someone else owns its target.
	ErrFenced = base.ErrFenced
	// ErrInvalid marks a wrong argument or configuration.
	ErrInvalid = base.ErrInvalid
	// ErrNotFound says that the named thing does not exist.
	ErrNotFound = base.ErrNotFound
	// ErrUnavailable says that a store, coordination or the catalog does not
	// answer; trying again later may succeed.
	ErrUnavailable = base.ErrUnavailable
	// ErrCorrupt says that stored bytes failed a check.
	ErrCorrupt = base.ErrCorrupt
	// ErrNewerFormat says that data was written by a newer version.
	ErrNewerFormat = base.ErrNewerFormat
	// ErrForeign says that data belongs to another cluster.
	ErrForeign = base.ErrForeign
	// ErrTrimmed says that an offset lies before the first live one.
	ErrTrimmed = base.ErrTrimmed
	// ErrClosed says that the engine was closed.
	ErrClosed = base.ErrClosed
)
