package crash

import (
	"fmt"
	"slices"
	"sync"

	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/materialization/prepare"
	"github.com/lakestream-go/lakestream/internal/wal"
)

// AnyPoint as the point of a Kill means whichever is passed.
const AnyPoint = "any"

// Points returns the name of every moment at which a child can be made to die, in
// the order in which a record meets them.
func Points() []string {
	return []string{
		wal.CrashBeforePut, wal.CrashAfterPut, wal.CrashBeforeCommit, wal.CrashAfterCommit,
		compaction.AfterCompacted, compaction.BeforeCompact, compaction.AfterCompact,
		prepare.CrashBeforeFiles, prepare.CrashAfterFiles,
		compaction.BeforePrepared, compaction.AfterPrepared,
		commit.CrashBeforeDeadLetter, commit.CrashAfterDeadLetter,
		commit.CrashBeforeTable, commit.CrashAfterTable,
		commit.CrashBeforeMaterialized, commit.CrashAfterMaterialized,
	}
}

// Kill says where a child ends itself. The zero value never does.
type Kill struct {
	// Point is one of Points, or AnyPoint.
	Point string `json:"point,omitempty"`
	// Passing is which passing of the point is the last, counted from 1.
	Passing int `json:"passing,omitempty"`
}

// String renders the kill for people.
func (k Kill) String() string { return fmt.Sprintf("%s, passing %d", k.Point, k.Passing) }

// executioner counts the passings of crash points. It is safe for concurrent use.
type executioner struct {
	kill Kill
	die  func()
	// unlisted is called with the name of a point that Points lacks.
	unlisted func(name string)

	mu sync.Mutex
	// passed is guarded by mu.
	passed int
}

// pass is the CrashPoint of a child's engine.
func (e *executioner) pass(name string) {
	if !slices.Contains(Points(), name) {
		e.unlisted(name)
	}
	if e.kill.Point != name && e.kill.Point != AnyPoint {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.passed++; e.passed == e.kill.Passing {
		e.die()
	}
}
