// Package commit makes prepared files part of an Iceberg table, each exactly
// once.
//
// A Committer is a step machine without memory of what it did: each step reads
// what the fold knows and what the table is, decides, and makes at most one
// change: a commit to the dead-letter table, then one to the main table, then the
// record that tells the fold. So a crash between any two steps, a lost reply and
// a second committer are all the same case: the next step looks.
//
// What makes it exact is in the table. Each commit writes files, end offsets and
// a commit id in one transaction that asserts the head it was decided on. A range
// below the end offset is in the table and is never added again; a range from it
// on is not, and is. A table that contradicts the fold is suspended, never
// guessed at.
package commit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// Committer commits one stream's prepared ranges to its table and its
// dead-letter table. Step and Run are for one goroutine; Wake and Flush are safe
// for concurrent use.
type Committer struct {
	options Options
	flush   atomic.Bool
	wake    chan struct{}

	// The rest paces attempts; nothing that decides what to commit.
	due        time.Time // when the next group may be committed
	retryAt    time.Time // no attempt before, after a failure
	failures   int       // consecutive
	look       bool      // the table may hold what the fold does not know
	checkFiles bool      // a commit found a file missing: check all
	last       Status
}

// New returns a committer that has done nothing yet, or base.ErrInvalid.
func New(options Options) (*Committer, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Committer{options: options, wake: make(chan struct{}, 1), look: true}, nil
}

// Flush makes the committer commit all that is prepared without waiting for the
// interval, once. A failure still waits for its back-off.
func (c *Committer) Flush() {
	c.flush.Store(true)
	c.Wake()
}

// Step does the next thing, if its time has come. The error is what made the
// status degraded, or the context's; a status tells all that people need.
func (c *Committer) Step(ctx context.Context) (Status, error) {
	now := c.options.Clock.Now()
	if wait := c.retryAt.Sub(now); wait > 0 {
		c.last.Delay, c.last.Missing = wait, nil // missing files are reported once an attempt
		return c.last, nil
	}
	status, err := c.step(ctx, now)
	if ctx.Err() != nil {
		return c.last, ctx.Err()
	}
	if err != nil {
		status = c.failed(status, err, now)
	} else {
		c.failures = 0
	}
	c.last = status
	return status, err
}

// failed schedules the next attempt after a failure. Whatever failed may have
// taken effect, so the next step looks at the table.
func (c *Committer) failed(status Status, err error, now time.Time) Status {
	c.look = true
	delay := maxRetry
	if c.failures < 6 {
		delay = min(maxRetry, c.options.Retry<<c.failures)
	}
	c.failures++
	c.retryAt = now.Add(delay)
	status.State, status.Reason, status.Delay = StateDegraded, err.Error(), delay
	status.NextAction = fmt.Sprintf("tried again in %s (failure %d in a row); check catalog and warehouse if it lasts", delay, c.failures)
	return status
}

// attempt is what one step works with.
type attempt struct {
	now  time.Time
	view View
	main *materialization.Table
	held materialization.EndOffsets // the main table's
}

func (c *Committer) step(ctx context.Context, now time.Time) (Status, error) {
	if !c.options.Held() {
		return c.demoted(), nil
	}
	view, err := c.options.Source.View(ctx)
	if err != nil {
		return c.status(View{}), fmt.Errorf("reading the log's progress: %w", err)
	}
	if view.pending() == 0 {
		c.flush.Store(false)
		return c.idle(view), nil
	}
	if wait := c.untilDue(now); wait > 0 && !c.look && !c.flush.Load() {
		return c.waiting(view, wait), nil
	}
	a := attempt{now: now, view: view}
	if fault, err := c.loadMain(ctx, &a); fault != nil || err != nil {
		return c.stopped(view, fault, now), err
	}
	if landed := unpublished(a.held, view.Logs); len(landed.ranges) > 0 {
		return c.publish(ctx, a, landed)
	}
	return c.commit(ctx, a)
}

// Check looks at the table as the next commit would and changes nothing. It says
// what keeps the table from being committed to, also while nothing is to be.
func (c *Committer) Check(ctx context.Context) (Status, error) {
	view, err := c.options.Source.View(ctx)
	if err != nil {
		return c.status(View{}), fmt.Errorf("reading the log's progress: %w", err)
	}
	if view.Main == (Mark{}) && view.pending() == 0 {
		return c.idle(view), nil
	}
	a := attempt{now: c.options.Clock.Now(), view: view}
	if fault, err := c.loadMain(ctx, &a); fault != nil || err != nil {
		return c.stopped(view, fault, a.now), err
	}
	return c.idle(view), nil
}

// stopped is the status of an attempt that found a fault, or failed to look.
func (c *Committer) stopped(view View, fault *suspension, now time.Time) Status {
	if fault == nil {
		return c.status(view)
	}
	return c.suspended(view, fault, now)
}

// loadMain reads the main table and checks that it may be committed to.
func (c *Committer) loadMain(ctx context.Context, a *attempt) (*suspension, error) {
	main, err := c.options.Tables.Load(ctx, c.options.Table)
	if errors.Is(err, base.ErrNotFound) {
		// Ranges are prepared, so that the table was there.
		return suspend(c.options.Table, "it is not in the catalog: it was dropped or renamed, or another catalog is configured"), nil
	}
	if err != nil {
		return nil, err
	}
	if fault := checkTable(main, RoleMain, a.view.Owner, a.view.Main); fault != nil {
		return fault, nil
	}
	a.main = main
	if a.held, err = main.EndOffsets(); err != nil {
		return suspend(main.Ident, "%v", err), nil
	}
	return checkProgress(main, a.held, a.view.Logs), nil
}

// loadDeadLetter reads the dead-letter table for a group that has dead letters,
// and checks that it may be committed to.
func (c *Committer) loadDeadLetter(ctx context.Context, view View, g group) (*materialization.Table, materialization.EndOffsets, *suspension, error) {
	table, err := c.options.Tables.Load(ctx, c.options.DeadLetter)
	if errors.Is(err, base.ErrNotFound) {
		return nil, nil, suspend(c.options.DeadLetter, "it was dropped"), nil
	}
	if err != nil {
		return nil, nil, nil, err
	}
	if fault := checkTable(table, RoleDeadLetter, view.Owner, view.DeadLetter); fault != nil {
		return nil, nil, fault, nil
	}
	held, err := table.EndOffsets()
	if err != nil {
		return nil, nil, suspend(table.Ident, "%v", err), nil
	}
	return table, held, checkDeadLetters(table, held, g), nil
}

// untilDue returns how long the next group has to wait: never longer than an
// interval, even where the clock was set back.
func (c *Committer) untilDue(now time.Time) time.Duration {
	c.due = earlier(c.due, now.Add(c.options.Interval))
	return c.due.Sub(now)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// commit adds the next group, when its time has come.
func (c *Committer) commit(ctx context.Context, a attempt) (Status, error) {
	g, fault := selectGroup(c.options.Table, a.main.UUID, a.held, a.view.Logs, c.options.MaxFiles)
	if fault != nil {
		return c.suspended(a.view, fault, a.now), nil
	}
	c.look = false
	if wait := c.untilDue(a.now); wait > 0 && !g.full && !c.flush.Load() {
		return c.waiting(a.view, wait), nil
	}
	missing, err := c.missingFiles(ctx, g, a.now)
	if err != nil {
		return c.status(a.view), err
	}
	if len(missing) > 0 {
		if g = g.without(missing, a.held); len(g.ranges) == 0 {
			return c.lacking(a.view, missing, a.now), nil
		}
	}
	status, err := c.commitGroup(ctx, a, g)
	status.Missing = missing
	return status, err
}

// commitGroup commits to the dead-letter table while it lacks dead letters of
// the group, else to the main table: what the main table's end offsets cover is
// in either.
func (c *Committer) commitGroup(ctx context.Context, a attempt, g group) (Status, error) {
	id, err := ulid.New(ulid.Timestamp(a.now), c.options.Entropy)
	if err != nil {
		return c.status(a.view), fmt.Errorf("drawing a commit id: %w", err)
	}
	if g.hasDeadLetters() {
		table, held, fault, err := c.loadDeadLetter(ctx, a.view, g)
		if fault != nil || err != nil {
			return c.stopped(a.view, fault, a.now), err
		}
		if files, ends := g.deadLetters(held); len(files) > 0 {
			change := update(RoleDeadLetter, a.view.Owner, id.String(), files, ends)
			return c.effect(a.view, CrashBeforeDeadLetter, CrashAfterDeadLetter, func() error {
				return c.commitTo(ctx, table, change)
			})
		}
	}
	change := update(RoleMain, a.view.Owner, id.String(), g.mainFiles(), g.ends)
	return c.effect(a.view, CrashBeforeTable, CrashAfterTable, func() error {
		err := c.commitTo(ctx, a.main, change)
		if err == nil {
			c.look, c.due = true, a.now.Add(c.options.Interval)
		}
		return err
	})
}

func (c *Committer) commitTo(ctx context.Context, table *materialization.Table, change materialization.Update) error {
	_, err := c.options.Tables.Commit(ctx, table, change)
	if errors.Is(err, base.ErrNotFound) {
		c.checkFiles = true
	}
	return err
}

// publish tells the fold what the tables hold.
func (c *Committer) publish(ctx context.Context, a attempt, landed group) (Status, error) {
	for _, r := range landed.ranges {
		if fault := checkWrittenFor(a.main.Ident, a.main.UUID, r); fault != nil {
			return c.suspended(a.view, fault, a.now), nil
		}
	}
	progress := Materialized{Main: markOf(a.main), DeadLetter: a.view.DeadLetter, Ends: landed.ends}
	if landed.hasDeadLetters() {
		table, held, fault, err := c.loadDeadLetter(ctx, a.view, landed)
		if fault != nil || err != nil {
			return c.stopped(a.view, fault, a.now), err
		}
		if lost, _ := landed.deadLetters(held); len(lost) > 0 {
			fault := suspend(table.Ident, "it lacks dead letters of ranges that table %s holds: an older state of it was restored", a.main.Ident)
			return c.suspended(a.view, fault, a.now), nil
		}
		progress.DeadLetter = markOf(table)
	}
	return c.effect(a.view, CrashBeforeMaterialized, CrashAfterMaterialized, func() error {
		if err := c.options.Source.Publish(ctx, progress); err != nil {
			return fmt.Errorf("publishing the table's progress: %w", err)
		}
		c.last.Main = progress.Main
		return nil
	})
}

// effect makes the one change of a step, unless the lease is lost.
func (c *Committer) effect(view View, before, after string, do func() error) (Status, error) {
	if !c.options.Held() {
		return c.demoted(), nil
	}
	c.options.CrashPoint(before)
	if err := do(); err != nil {
		return c.status(view), err
	}
	c.options.CrashPoint(after)
	return c.status(view), nil
}

func markOf(table *materialization.Table) Mark {
	return Mark{TableUUID: table.UUID, SnapshotID: table.Head, CommitID: table.Properties[materialization.PropertyCommitID]}
}
