package engine

import (
	"errors"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
)

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
	// ErrConflict says that the thing was changed by someone else.
	ErrConflict = base.ErrConflict
	// ErrTableAhead says that a table holds offsets that its log lost, and would give
	// to other records.
	ErrTableAhead = errors.New("the table is ahead of the log")
)

// Errors of the catalog. Each matches one of those above too.
var (
	// ErrAlreadyExists says that a namespace, table catalog or another stream of
	// the name exists.
	ErrAlreadyExists = catalog.ErrAlreadyExists
	// ErrNoSuchNamespace matches ErrNotFound.
	ErrNoSuchNamespace = catalog.ErrNoSuchNamespace
	// ErrNamespaceNotEmpty says that streams live in the namespace. It matches
	// ErrConflict.
	ErrNamespaceNotEmpty = catalog.ErrNamespaceNotEmpty
	// ErrNamespaceDropping says that the namespace takes no streams because it is
	// being dropped, or a drop was broken off. It matches ErrConflict.
	ErrNamespaceDropping = catalog.ErrNamespaceDropping
	// ErrNoSuchStream matches ErrNotFound.
	ErrNoSuchStream = catalog.ErrNoSuchStream
	// ErrStreamPermanentlyDeleted says that a stream of this name was deleted: the
	// name is never used again. It matches ErrNotFound and ErrInvalid.
	ErrStreamPermanentlyDeleted = catalog.ErrStreamPermanentlyDeleted
	// ErrNoSuchTableCatalog matches ErrNotFound.
	ErrNoSuchTableCatalog = catalog.ErrNoSuchTableCatalog
	// ErrNotYetAllowed says that an instance of the cluster is too old for the
	// operation. It matches ErrUnavailable.
	ErrNotYetAllowed = catalog.ErrNotYetAllowed
)
