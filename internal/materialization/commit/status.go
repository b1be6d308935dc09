package commit

import (
	"fmt"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// State is the condition of a table's commits.
type State string

// The states of a committer.
const (
	// StatePending: there is nothing to do here: no table yet, or another
	// instance commits to it.
	StatePending State = "PENDING"
	// StateRunning: commits land, or there is nothing to commit.
	StateRunning State = "RUNNING"
	// StateDegraded: an attempt failed; it is tried again, with back-off.
	StateDegraded State = "DEGRADED"
	// StateSuspended: the table is not what it was, so that committing could
	// lose or double rows. Someone must decide; nothing is dropped meanwhile.
	StateSuspended State = "SUSPENDED"
)

// Status is the outcome of a step, for the driver and for people.
type Status struct {
	State State
	// Reason says why a state other than running was entered.
	Reason string
	// NextAction says what happens next or what a person must do.
	NextAction string
	// Delay is when to step again: 0 is at once.
	Delay time.Duration
	// Missing are files of prepared ranges that are gone; the caller must have
	// the ranges decoded again. What precedes them is committed.
	Missing []MissingFile
	// Main is the newest commit seen, zero before the first.
	Main Mark
	// Pending counts the offsets that are prepared and not yet published as
	// being in the table.
	Pending int64
}

// MissingFile is a file that a prepared range names and that does not exist.
type MissingFile struct {
	Log   base.LogID
	Range base.OffsetRange
	Path  string
}

// suspension is why a table must not be committed to.
type suspension struct {
	table  materialization.Ident
	reason string
}

func suspend(table materialization.Ident, format string, args ...any) *suspension {
	return &suspension{table: table, reason: fmt.Sprintf("table %s: "+format, append([]any{table}, args...)...)}
}

// remedy says what an operator must do: only a person knows which of the table
// and the log is right.
func (s *suspension) remedy(main materialization.Ident) string {
	return fmt.Sprintf("restore table %s to the state that the reason asks for, or run `lakestream table reset %s` to materialize the log anew",
		s.table, main)
}

// status is what a step begins with: running, to be continued at once.
func (c *Committer) status(view View) Status {
	main := view.Main
	if main == (Mark{}) {
		main = c.last.Main
	}
	return Status{State: StateRunning, Main: main, Pending: view.pending()}
}

// waiting is running until an appointed time.
func (c *Committer) waiting(view View, delay time.Duration) Status {
	status := c.status(view)
	status.Delay = delay
	return status
}

// idle has nothing to commit until more is prepared, which wakes the driver.
func (c *Committer) idle(view View) Status {
	status := c.waiting(view, c.options.Interval)
	if status.Main == (Mark{}) {
		status.State = StatePending
		status.Reason = "nothing was prepared for the table yet"
	}
	return status
}

func (c *Committer) demoted() Status {
	status := c.last
	status.State, status.Delay, status.Missing = StatePending, c.options.Interval, nil
	status.Reason, status.NextAction = "another instance commits to the table", ""
	c.look = true
	return status
}

// suspended stops attempts until someone acts; the table is looked at again now
// and then to notice.
func (c *Committer) suspended(view View, fault *suspension, now time.Time) Status {
	c.look = true
	c.retryAt = now.Add(recheckSuspended)
	status := c.waiting(view, recheckSuspended)
	status.State, status.Reason, status.NextAction = StateSuspended, fault.reason, fault.remedy(c.options.Table)
	return status
}

// lacking has nothing that can be committed until ranges are decoded again.
func (c *Committer) lacking(view View, missing []MissingFile, now time.Time) Status {
	c.retryAt = now.Add(c.options.Interval)
	status := c.waiting(view, c.options.Interval)
	status.State, status.Missing = StateDegraded, missing
	status.Reason = fmt.Sprintf("%d files of prepared ranges are gone, the first is %s", len(missing), missing[0].Path)
	status.NextAction = "the ranges are decoded again from the log"
	return status
}
