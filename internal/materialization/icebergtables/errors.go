package icebergtables

import (
	"errors"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/lakestream-go/lakestream/internal/base"
)

// classifyWrite marks an error of a catalog write. What is not known to be
// definite is base.ErrUnknown: the caller must load and look.
func classifyWrite(err error) error {
	if definite := classifyDefinite(err); definite != nil {
		return definite
	}
	return base.WithClass(base.ErrUnknown, err)
}

// classifyRead marks an error of an operation that changes nothing that anyone
// could see: what no other class explains is base.ErrUnavailable.
func classifyRead(err error) error {
	if classed(err) {
		return err
	}
	if definite := classifyDefinite(err); definite != nil {
		return definite
	}
	return base.WithClass(base.ErrUnavailable, err)
}

// classifyDefinite marks an error that proves that nothing happened, or
// returns nil.
func classifyDefinite(err error) error {
	switch {
	case errors.Is(err, catalog.ErrNoSuchTable), errors.Is(err, catalog.ErrNoSuchNamespace):
		return base.WithClass(base.ErrNotFound, err)
	case errors.Is(err, catalog.ErrTableAlreadyExists), errors.Is(err, catalog.ErrViewAlreadyExists):
		return base.WithClass(base.ErrExists, err)
	case errors.Is(err, catalog.ErrInvalidIdentifier):
		return base.WithClass(base.ErrInvalid, err)
	case errors.Is(err, table.ErrCommitFailed), errors.Is(err, table.ErrCommitDiverged), isRequirement(err):
		return base.WithClass(base.ErrConflict, err)
	case isBusy(err):
		return base.WithClass(base.ErrUnavailable, err)
	default:
		return nil
	}
}

// classed reports whether an error carries a class or a sentinel of base.
func classed(err error) bool {
	for _, known := range []error{
		base.ErrNotFound, base.ErrExists, base.ErrConflict, base.ErrInvalid,
		base.ErrCorrupt, base.ErrUnavailable, base.ErrUnknown,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// isBusy reports whether SQLite gave up waiting for a lock, and so changed
// nothing: each write takes the lock when it begins.
func isBusy(err error) bool {
	var sqliteErr *sqlite.Error
	const primary = 0xff // extended codes carry the primary one in the low byte
	return errors.As(err, &sqliteErr) && sqliteErr.Code()&primary == sqlite3.SQLITE_BUSY
}
