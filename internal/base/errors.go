package base

import "errors"

// An error that leaves the engine belongs to one of three classes, which tell a
// caller what it may assume. Test with errors.Is. An error of no class is
// definite: nothing happened.
var (
	// ErrUnknown marks an operation that may or may not have taken effect.
	// Resolve it by reading again; never assume either way.
	ErrUnknown = errors.New("outcome unknown")
	// ErrFenced marks an operation refused because someone else owns what it
	// would change: the log or the writer was fenced.
	ErrFenced = errors.New("fenced")
	// ErrInvalid marks an operation refused because of what the caller passed.
	// Repeating it unchanged fails again.
	ErrInvalid = errors.New("invalid")
)

// Sentinels that callers tell apart. Each is definite.
var (
	// ErrNotFound says that the named thing does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists says that the named thing exists already.
	ErrExists = errors.New("already exists")
	// ErrConflict says that the thing changed since the caller read it.
	ErrConflict = errors.New("changed by someone else")
	// ErrUnavailable says that a store, coordination or the catalog cannot be
	// reached or does not answer. Trying again later may succeed.
	ErrUnavailable = errors.New("unavailable")
	// ErrCorrupt says that bytes failed a checksum or contradict their format.
	ErrCorrupt = errors.New("corrupt")
	// ErrNewerFormat says that bytes were written by a newer version of this
	// software; upgrade to read them.
	ErrNewerFormat = errors.New("written by a newer version")
	// ErrForeign says that an object or a record belongs to another cluster.
	ErrForeign = errors.New("belongs to another cluster")
	// ErrTrimmed says that the offset lies before the first live one.
	ErrTrimmed = errors.New("offset was trimmed")
	// ErrClosed says that the engine or the component was closed.
	ErrClosed = errors.New("closed")
)

// classed is an error with a class or a sentinel of this package: errors.Is
// finds both the class and the cause.
type classed struct {
	class, cause error
}

func (e *classed) Error() string   { return e.cause.Error() }
func (e *classed) Unwrap() []error { return []error{e.class, e.cause} }

// WithClass returns cause marked with a class or sentinel of this package,
// keeping its text. A nil cause stays nil.
func WithClass(class, cause error) error {
	if cause == nil {
		return nil
	}
	return &classed{class: class, cause: cause}
}
