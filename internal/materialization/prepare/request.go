package prepare

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

// Source is one range of one log of the stream.
type Source struct {
	Log     base.LogID
	Records recordbatch.Source
}

// Request says what to prepare for which table.
type Request struct {
	// Owner is the value of materialization.PropertyOwner in the stream's tables.
	Owner string
	// Main and DeadLetter name the tables. The dead-letter table is created
	// when the first record needs it.
	Main, DeadLetter materialization.Ident
	// System columns that rows carry.
	System schema.SystemColumns
	// Limits of the inferred schema.
	Limits schema.Limits
	// FilePrefix starts the names of the files: <shard>-<writer>-<seq>. It must
	// never come twice.
	FilePrefix string
	// TargetFileBytes is the size at which a data file ends, 128 MiB when 0.
	TargetFileBytes int64
	// BatchBytes is how much decoded data waits in memory for the Parquet
	// writer, 16 MiB when 0.
	BatchBytes int64
	Sources    []Source
	Clock      base.Clock
	// CrashPoint, when set, is called at the named moments, so that a test can
	// end the process there.
	CrashPoint func(name string)
}

// Names of the moments at which Request.CrashPoint is called: before and after the
// files of a range are closed, which makes them durable.
const (
	CrashBeforeFiles = "prepare.files.before"
	CrashAfterFiles  = "prepare.files.after"
)

func (r Request) crash(name string) {
	if r.CrashPoint != nil {
		r.CrashPoint(name)
	}
}

const (
	defaultBatchBytes = 16 << 20
	// maxBatchRows bounds a batch of small rows.
	maxBatchRows = 1 << 16
)

func (r Request) validate() error {
	var problem string
	switch {
	case r.Owner == "":
		problem = "an owner"
	case r.Main.Name == "" || r.DeadLetter.Name == "":
		problem = "names for both tables"
	case r.Main == r.DeadLetter:
		problem = "different names for the two tables"
	case r.FilePrefix == "" || strings.ContainsAny(r.FilePrefix, "/\\"):
		problem = "a file prefix without slashes"
	case r.Clock == nil:
		problem = "a clock"
	default:
		return nil
	}
	return fmt.Errorf("%w: preparing needs %s", base.ErrInvalid, problem)
}

func (r Request) batchBytes() int64 {
	if r.BatchBytes <= 0 {
		return defaultBatchBytes
	}
	return r.BatchBytes
}

// errNovel ends a pass early: a record holds what the schema has no column for.
var errNovel = errors.New("the schema can grow")
