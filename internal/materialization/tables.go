// Package materialization holds the seam between a log and its Iceberg table:
// what a table is to the engine, and what a commit to it carries.
//
// Its subpackages do the work: schema infers and evolves, decode turns records
// into rows, write makes data files, icebergtables implements Tables, commit
// groups prepared files into snapshots, verify proves what a table holds. They
// are the only importers of iceberg-go.
package materialization

import (
	"context"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Ident names a table in its catalog.
type Ident struct {
	Namespace, Name string
}

// String renders namespace.name.
func (i Ident) String() string { return i.Namespace + "." + i.Name }

// Table is a table as one read of its catalog showed it. It does not change;
// load again to see what others did.
type Table struct {
	Ident Ident
	// UUID tells this table from one that was dropped and created again.
	UUID     string
	Location string
	Schema   *iceberg.Schema
	// LastColumnID is the highest field id that any schema of the table ever
	// assigned. New fields take ids above it, so an id is never used again
	// after its column was dropped.
	LastColumnID int
	SpecID       int
	// Head is the snapshot that the main branch points to, 0 when there is none.
	Head int64
	// Rows is how many rows the head's summary counts, and Metadata where the
	// table's current metadata is, both for people.
	Rows     int64
	Metadata string
	// Properties are the table's properties; the engine's start with
	// PropertyPrefix.
	Properties map[string]string
	// CommitIDs are the engine's commit ids found in the summaries of the
	// head's ancestors, newest first.
	CommitIDs []string
	// AncestryComplete is true when the ancestry reaches the table's first
	// snapshot, so that a commit id that is absent was never committed, and
	// false when expiry has cut it.
	AncestryComplete bool
	// Handle is the catalog's own representation; only its maker reads it.
	Handle any
}

// PropertyPrefix starts the name of each table property that belongs to the engine.
const PropertyPrefix = "lakestream."

// Properties that the engine keeps in each table that it fills. Progress travels
// only together with a snapshot, in the same catalog transaction.
const (
	// PropertyOwner names the cluster and the stream incarnation that fill
	// the table: cluster id, slash, shard, slash, stream id.
	PropertyOwner = PropertyPrefix + "owner"
	// PropertyRole is main or dead-letter.
	PropertyRole = PropertyPrefix + "role"
	// PropertyEndOffsets packs the end offset of each partition: "0:120,3:7".
	PropertyEndOffsets = PropertyPrefix + "end-offsets"
	// PropertyCommitID is the id of the newest commit of the engine; the
	// same id stands in that snapshot's summary.
	PropertyCommitID = PropertyPrefix + "commit-id"
)

// DataFile is a finished Parquet file that no snapshot may hold yet.
type DataFile struct {
	// Path is the full location, as it will stand in the manifest.
	Path string
	Size int64
	Rows int64
}

// Update is one atomic change of a table: a snapshot (with or without files),
// properties, and the assertion of what it was built on.
type Update struct {
	// Files are added to the table. An empty list still makes a snapshot.
	Files []DataFile
	// Summary goes into the snapshot's summary.
	Summary map[string]string
	// Properties are set on the table in the same transaction.
	Properties map[string]string
}

// Tables is a catalog of tables and the file system under it. It is safe for
// concurrent use by many processes.
//
// Errors match the sentinels of package base: ErrNotFound, ErrExists,
// ErrConflict (someone changed the table since it was loaded; definite),
// ErrUnknown (the change may have landed: load and look), ErrUnavailable
// (definite: the catalog could not be asked).
type Tables interface {
	// Load reads a table's current state from the catalog, or ErrNotFound.
	Load(ctx context.Context, ident Ident) (*Table, error)
	// Create makes an empty table, and its namespace when absent, or ErrExists.
	Create(ctx context.Context, ident Ident, schema *iceberg.Schema, properties map[string]string) (*Table, error)
	// Evolve replaces the schema of a loaded table with one that adds to it, as
	// CheckEvolution demands, its field ids assigned by the caller. It asserts
	// that the schema and the last column id are still the loaded ones. A
	// schema equal to the current one changes nothing.
	Evolve(ctx context.Context, table *Table, schema *iceberg.Schema) (*Table, error)
	// Commit applies an update. It asserts the head snapshot of the loaded
	// table and is never retried inside. An added file that does not exist is
	// ErrNotFound, and nothing happened.
	Commit(ctx context.Context, table *Table, update Update) (*Table, error)
	// CreateFile starts a new file at a full location under a table, or
	// ErrExists. The file is durable when Close returns nil.
	CreateFile(ctx context.Context, path string) (io.WriteCloser, error)
	// OpenFile opens a file for reading, or ErrNotFound.
	OpenFile(ctx context.Context, path string) (File, error)
	// RemoveFile deletes a file that no snapshot holds. Absent is no error.
	RemoveFile(ctx context.Context, path string) error
}

// Scanner reads the rows of tables. It is safe for concurrent use.
type Scanner interface {
	// Scan streams the rows of the loaded table's head snapshot, whatever
	// happened to the table since, in no promised order: the named top-level
	// columns, or all when none is named, and at most limit rows, or all when
	// limit is 0. A batch is the iterator's and is valid until the next one.
	// Memory is bounded by a few batches. A column that the table does not
	// have is ErrInvalid. The iteration ends at the first error.
	Scan(ctx context.Context, table *Table, columns []string, limit int64) iter.Seq2[arrow.RecordBatch, error]
}

// File is a file open for reading.
type File interface {
	io.ReaderAt
	io.ReadSeekCloser
	Size() int64
}

// Prepared is what a decoded range became: it binds the range to its files.
type Prepared struct {
	Log   base.LogID
	Range base.OffsetRange
	// TableUUID, SchemaID and SpecID say under what the files were written.
	TableUUID string
	SchemaID  int
	SpecID    int
	Main      []DataFile
	// DeadLetterUUID is empty when no record of the range was dead-lettered.
	DeadLetterUUID string
	DeadLetter     []DataFile
	// Filtered counts the records that were left out on purpose.
	Filtered int64
}
