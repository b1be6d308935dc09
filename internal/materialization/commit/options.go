package commit

import (
	"fmt"
	"io"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// Names of the points at which Options.CrashPoint is called: before and after
// each effect of a step.
const (
	CrashBeforeDeadLetter   = "commit.dead-letter.before"
	CrashAfterDeadLetter    = "commit.dead-letter.after"
	CrashBeforeTable        = "commit.table.before"
	CrashAfterTable         = "commit.table.after"
	CrashBeforeMaterialized = "commit.materialized.before"
	CrashAfterMaterialized  = "commit.materialized.after"
)

// Defaults of Options.
const (
	DefaultInterval = 10 * time.Second
	DefaultRetry    = time.Second
	DefaultMaxFiles = 1000
)

// Limits that are not options.
const (
	// maxRetry bounds the back-off between attempts.
	maxRetry = time.Minute
	// recheckSuspended is how often a suspended table is looked at again, to
	// notice that someone acted.
	recheckSuspended = 15 * time.Second
	// checkFilesAfter is the age from which the files of a prepared range are
	// checked to exist before they are committed: another tool may have taken
	// files that no snapshot holds for garbage.
	checkFilesAfter = time.Hour
)

// Options configure a Committer.
type Options struct {
	// Table and DeadLetter name the tables; both are required.
	Table, DeadLetter materialization.Ident
	Tables            materialization.Tables // required
	Source            Source                 // required
	Clock             base.Clock             // required
	// Entropy makes commit ids unique; crypto/rand.Reader outside tests. Required.
	Entropy io.Reader
	// Interval is the time between commits, DefaultInterval when 0.
	Interval time.Duration
	// Retry is the first delay after a failure, doubled with each further one
	// up to a minute; DefaultRetry when 0.
	Retry time.Duration
	// MaxFiles bounds the files of one commit, DefaultMaxFiles when 0. A
	// single range may exceed it.
	MaxFiles int
	// Held reports whether this instance still holds the table's lease; it is
	// asked before each effect. Nil is always. It only avoids wasted work:
	// what keeps two committers apart is the assertion in each commit.
	Held func() bool
	// CrashPoint, if set, is called with the name of each point passed.
	CrashPoint func(name string)
	// OnStatus, if set, is told each status by Run, with the error that caused
	// it, if any.
	OnStatus func(Status, error)
}

// withDefaults returns the options with defaults filled in, or what is wrong.
func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Tables == nil, o.Source == nil, o.Clock == nil, o.Entropy == nil:
		return o, fmt.Errorf("%w: committer options: Tables, Source, Clock and Entropy are required", base.ErrInvalid)
	case o.Table == (materialization.Ident{}), o.DeadLetter == (materialization.Ident{}), o.Table == o.DeadLetter:
		return o, fmt.Errorf("%w: committer options: two different tables are required", base.ErrInvalid)
	case o.Interval < 0, o.Retry < 0, o.MaxFiles < 0:
		return o, fmt.Errorf("%w: committer options: negative value", base.ErrInvalid)
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.Retry == 0 {
		o.Retry = DefaultRetry
	}
	if o.MaxFiles == 0 {
		o.MaxFiles = DefaultMaxFiles
	}
	if o.Held == nil {
		o.Held = func() bool { return true }
	}
	if o.CrashPoint == nil {
		o.CrashPoint = func(string) {}
	}
	if o.OnStatus == nil {
		o.OnStatus = func(Status, error) {}
	}
	return o, nil
}
