// Package tablestest is the acceptance suite of the table seam: what every
// implementation of materialization.Tables must do, and helpers to write and
// read small tables in tests of the seam's users.
package tablestest

import (
	"testing"

	"github.com/lakestream-go/lakestream/internal/materialization"
)

// Catalog is what the suite tests: tables whose rows can be read.
type Catalog interface {
	materialization.Tables
	materialization.Scanner
}

// Admin is what other users of a catalog do to a table behind the engine's back.
type Admin interface {
	// Append commits files without a mark of the engine's.
	Append(ident materialization.Ident, files ...materialization.DataFile) error
	// Rollback points the head to the snapshot that is steps before it.
	Rollback(ident materialization.Ident, steps int) error
	// Drop removes the table from the catalog.
	Drop(ident materialization.Ident) error
	// Strip removes properties.
	Strip(ident materialization.Ident, keys ...string) error
}

// Subject is a fresh, empty catalog to test.
type Subject struct {
	Catalog Catalog
	Admin   Admin
}

// Run runs the suite; open makes an empty catalog for each of its tests and
// registers its own clean-up.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	stories := []struct {
		name string
		tell func(t *testing.T, s Subject)
	}{
		{"an absent table is not found", absentTable},
		{"a create race has one winner", createRace},
		{"a new table is empty and keeps its properties", newTable},
		{"a commit lands whole", commitLandsWhole},
		{"an empty commit still makes a snapshot", emptyCommit},
		{"a commit on a stale head changes nothing", staleHead},
		{"a commit to a replaced table changes nothing", replacedTable},
		{"a commit of a missing file changes nothing", missingFile},
		{"racing commits each land once", racingCommits},
		{"schemas grow at any depth", evolveNested},
		{"a schema grows only from what was loaded", evolveStale},
		{"a schema change that old files do not bear is refused", evolveRefused},
		{"two writers that add a column at once converge", evolveRace},
		{"files are created once, read and removed", files},
		{"a scan reads the loaded snapshot", scanLoaded},
		{"a scan chooses columns and stops at its limit", scanChosen},
		{"rows written before a column was added read as null", scanEvolved},
		{"a rollback keeps properties and loses the commit id", rollback},
		{"a foreign commit keeps our commit ids in the ancestry", foreignCommit},
		{"stripped properties are gone", stripped},
	}
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) { story.tell(t, open(t)) })
	}
}
