package catalog

import (
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Errors of the catalog. All are definite, and each matches a class or a sentinel
// of package base too.
var (
	// ErrAlreadyExists says that a namespace, table catalog or another stream of
	// the name exists.
	ErrAlreadyExists = base.ErrExists
	// ErrNoSuchNamespace matches base.ErrNotFound.
	ErrNoSuchNamespace error = &named{"no such namespace", []error{base.ErrNotFound}}
	// ErrNamespaceNotEmpty says that streams live in the namespace. It matches
	// base.ErrConflict.
	ErrNamespaceNotEmpty error = &named{"the namespace is not empty", []error{base.ErrConflict}}
	// ErrNamespaceDropping says that the namespace takes no streams because it is
	// being dropped, or a drop was broken off: dropping it again ends that. It
	// matches base.ErrConflict.
	ErrNamespaceDropping error = &named{"the namespace is being dropped", []error{base.ErrConflict}}
	// ErrNoSuchStream matches base.ErrNotFound.
	ErrNoSuchStream error = &named{"no such stream", []error{base.ErrNotFound}}
	// ErrStreamPermanentlyDeleted says that a stream of this name was deleted: the
	// name is never used again. It matches base.ErrNotFound and base.ErrInvalid.
	ErrStreamPermanentlyDeleted error = &named{"the stream was deleted and its name is never used again", []error{base.ErrNotFound, base.ErrInvalid}}
	// ErrNoSuchTableCatalog matches base.ErrNotFound.
	ErrNoSuchTableCatalog error = &named{"no such table catalog", []error{base.ErrNotFound}}
	// ErrNotYetAllowed says that some instance of the cluster is too old for the
	// operation. It matches base.ErrUnavailable.
	ErrNotYetAllowed error = &named{"not possible before every instance runs this release", []error{base.ErrUnavailable}}
)

// named is an error with a name of its own that belongs to classes.
type named struct {
	text    string
	classes []error
}

func (e *named) Error() string   { return e.text }
func (e *named) Unwrap() []error { return e.classes }

// refusal turns why the fold refused a record into an error.
func refusal(why shard.Reason) error {
	switch why {
	case shard.NoStream:
		return ErrNoSuchStream
	case shard.NoPartition:
		return base.WithClass(base.ErrNotFound, fmt.Errorf("%s", why))
	case shard.StreamDeleted:
		return ErrStreamPermanentlyDeleted
	case shard.StreamExists, shard.NamespaceExists, shard.CatalogExists:
		return ErrAlreadyExists
	case shard.NoNamespace:
		return ErrNoSuchNamespace
	case shard.NamespaceSealed:
		return ErrNamespaceDropping
	case shard.NotEmpty:
		return ErrNamespaceNotEmpty
	case shard.NoCatalog:
		return ErrNoSuchTableCatalog
	case shard.NotYetAllowed:
		return ErrNotYetAllowed
	case shard.VersionChanged:
		return base.ErrConflict
	default:
		return base.WithClass(base.ErrInvalid, fmt.Errorf("%s", why))
	}
}

// needVersion refuses what a ledger's fold does not allow yet.
func needVersion(version uint32, ledgers ...Ledger) error {
	for _, l := range ledgers {
		if at := foldVersion(l); at < version {
			return fmt.Errorf("the cluster is at fold version %d, this needs %d; status tells which instances hold it back: %w", at, version, ErrNotYetAllowed)
		}
	}
	return nil
}

func foldVersion(l Ledger) (version uint32) {
	l.Inspect(func(s *shard.State) { version = s.FoldVersion() })
	return version
}
