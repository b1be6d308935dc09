package compaction

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/shard"
)

const (
	// quarantineTime is how long a table in trouble is left alone. Its log is
	// compacted meanwhile, so that it never pins shared WAL objects.
	quarantineTime = 30 * time.Second
	// retryDelay is how long the driver waits after a pass that failed.
	retryDelay = time.Second
	// maxRetryDelay bounds its doubling.
	maxRetryDelay = 30 * time.Second
	// lookEvery is how often the driver looks how much there is to do while less is
	// due later: enough may have come meanwhile.
	lookEvery = time.Second
	// closeTimeout bounds the farewell of a session.
	closeTimeout = 5 * time.Second
)

// DriverOptions are what a driver needs; all but Inherited, TargetBytes and CrashPoint
// are required.
type DriverOptions struct {
	View    View
	Objects blob.Store
	Tables  Materializer
	Open    OpenSource
	Due     Due
	// Inherited returns what streams take from their namespace and the cluster;
	// nil stands for nothing.
	Inherited func() catalog.Inherited
	// Bytes bounds the WAL bytes that one pass holds.
	Bytes int64
	// TargetBytes is the size up to which small compacted objects are merged; 0
	// merges none.
	TargetBytes int64
	// Instance names the lease of this process.
	Instance   string
	Clock      base.Clock
	Entropy    io.Reader
	Logger     *slog.Logger
	CrashPoint func(name string)
}

// View is a ledger that wakes who waits for a change.
type View interface {
	Ledger
	Changed() <-chan struct{}
	Err() error
}

// Driver compacts one shard and prepares its tables, pass after pass. Run and
// Once are called by one goroutine; the other methods by any.
type Driver struct {
	opts    DriverOptions
	session *shard.Session
	hurry   atomic.Bool
	nudge   chan struct{}
	stats   Stats
	age     *ageClock
	// allMerged is the revision at which nothing was left to merge. Only Run and
	// Once use it.
	allMerged base.Revision

	mu sync.Mutex
	// All below are guarded by mu.
	tables map[base.StreamID]Trouble
	logs   map[base.LogID]Trouble
	// unmerged are logs whose small objects stay as they are for now.
	unmerged map[base.LogID]Trouble
	lost     map[lostFile]struct{}
}

// lostFile is a file of a prepared range that vanished before it was committed.
type lostFile struct {
	log  base.LogID
	r    base.OffsetRange
	path string
}

// Trouble is why a table gets no files, or a log is not compacted, for now.
type Trouble struct {
	Err   error
	Until base.Millis
}

// Stats count what a driver did. Fields are read and written atomically.
type Stats struct {
	Passes, ReadBytes, Logs, Failures atomic.Int64
	// Merges counts merges, MergedObjects what they replaced and MergedBytes the
	// size of that.
	Merges, MergedObjects, MergedBytes atomic.Int64
}

// NewDriver returns a driver that has not started.
func NewDriver(opts DriverOptions) *Driver {
	return &Driver{
		opts: opts, nudge: make(chan struct{}, 1), age: newAgeClock(opts.Clock),
		tables: make(map[base.StreamID]Trouble), logs: make(map[base.LogID]Trouble),
		unmerged: make(map[base.LogID]Trouble), lost: make(map[lostFile]struct{}),
	}
}

// Stats returns the driver's counters.
func (d *Driver) Stats() *Stats { return &d.stats }

// Troubles returns the streams whose tables, and the logs that, are left alone,
// and why.
func (d *Driver) Troubles() (map[base.StreamID]Trouble, map[base.LogID]Trouble) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.tables), maps.Clone(d.logs)
}

// Unmerged returns the logs whose small objects are not merged for now, and why.
// They are read and compacted as ever.
func (d *Driver) Unmerged() map[base.LogID]Trouble {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.unmerged)
}

// Hurry makes everything due from now on that tables wait for: the engine is
// draining.
func (d *Driver) Hurry() {
	d.hurry.Store(true)
	d.wake()
}

// Redecode makes the driver decode a prepared range again, whose named file is
// gone. Asking again for the same one changes nothing.
func (d *Driver) Redecode(log base.LogID, r base.OffsetRange, path string) {
	d.mu.Lock()
	d.lost[lostFile{log, r, path}] = struct{}{}
	d.mu.Unlock()
	d.wake()
}

func (d *Driver) wake() {
	select {
	case d.nudge <- struct{}{}:
	default:
	}
}

// Run works until ctx ends or the view stops, and then lets go of its session.
func (d *Driver) Run(ctx context.Context) {
	defer d.endSession(ctx)
	delay := retryDelay
	for d.awaitWork(ctx) {
		_, err := d.Once(ctx)
		if err == nil {
			delay = retryDelay
			continue
		}
		if ctx.Err() != nil {
			return
		}
		d.stats.Failures.Add(1)
		d.opts.Logger.Warn("a compaction pass failed and will be tried again", "reason", err.Error(), "in", delay.String())
		select {
		case <-d.opts.Clock.After(delay):
		case <-ctx.Done():
		}
		delay = min(2*delay, maxRetryDelay)
	}
}

// awaitWork blocks until a pass is due, or reports that ctx ended or the view has
// stopped: another instance may be able to do the work.
func (d *Driver) awaitWork(ctx context.Context) bool {
	for {
		changed := d.opts.View.Changed()
		if ctx.Err() != nil || d.opts.View.Err() != nil {
			return false
		}
		wait, some := d.due()
		if some && wait == 0 {
			return true
		}
		var timer <-chan time.Time
		if some {
			timer = d.opts.Clock.After(min(wait, lookEvery))
			changed = nil
		}
		select {
		case <-changed:
		case <-timer:
		case <-d.nudge:
		case <-ctx.Done():
			return false
		}
	}
}

func (d *Driver) due() (wait time.Duration, some bool) {
	now := d.now()
	limits, retry := d.limits(now)
	d.opts.View.Inspect(func(s *shard.State) {
		wait, some = d.opts.Due.Wait(s, now, limits)
		if len(Backlogs(s, limits)) > 0 {
			wait, some = 0, true
		}
	})
	mergeWait, mergeSome := d.mergeDue(now)
	switch {
	case len(d.lostFiles(limits)) > 0, mergeSome && mergeWait == 0:
		wait, some = 0, true
	case mergeSome && (!some || mergeWait < wait):
		wait, some = mergeWait, true
	}
	if d.hurry.Load() {
		wait = 0
	}
	if retry > 0 && (!some || retry < wait) {
		wait, some = retry, true
	}
	return wait, some
}

// now returns the time by which records are old and troubles over.
func (d *Driver) now() base.Millis {
	var newest base.Millis
	d.opts.View.Inspect(func(s *shard.State) { newest = s.Time() })
	return d.age.now(newest)
}

func (d *Driver) inherited() catalog.Inherited {
	if d.opts.Inherited == nil {
		return catalog.Inherited{}
	}
	return d.opts.Inherited()
}

// limits returns what to leave alone now, and when the first of it is to be tried
// again.
func (d *Driver) limits(now base.Millis) (l Limits, retry time.Duration) {
	tables, logs := d.Troubles()
	l = Limits{
		Bytes: d.opts.Bytes, Quarantined: make(map[base.StreamID]bool), Unreadable: make(map[base.LogID]bool),
		Inherited: d.inherited(),
	}
	wait := func(t Trouble) bool {
		left := time.Duration(t.Until-now) * time.Millisecond
		if left > 0 && (retry == 0 || left < retry) {
			retry = left
		}
		return left > 0
	}
	for id, t := range tables {
		l.Quarantined[id] = wait(t)
	}
	for id, t := range logs {
		l.Unreadable[id] = wait(t)
	}
	return l, retry
}

// Once catches tables up, runs one pass over what is raw, and merges what is small.
// It reports whether there was anything to do.
func (d *Driver) Once(ctx context.Context) (worked bool, err error) {
	for _, part := range []func(context.Context) (bool, error){d.catchUp, d.redecode, d.pass, d.merge} {
		did, err := part(ctx)
		if worked = worked || did; err != nil {
			return true, err
		}
	}
	return worked, nil
}

func (d *Driver) catchUp(ctx context.Context) (worked bool, err error) {
	var backlogs []Backlog
	limits, _ := d.limits(d.now())
	d.opts.View.Inspect(func(s *shard.State) { backlogs = Backlogs(s, limits) })
	if len(backlogs) == 0 {
		return false, nil
	}
	return true, d.work(ctx, func(env Env) machine { return NewCatchUp(ctx, env, backlogs, d.opts.Open) })
}

func (d *Driver) pass(ctx context.Context) (worked bool, err error) {
	var plan Plan
	limits, _ := d.limits(d.now())
	d.opts.View.Inspect(func(s *shard.State) { plan = NewPlan(s, limits) })
	if plan.Empty() {
		return false, nil
	}
	if err := d.work(ctx, func(env Env) machine { return NewPass(env, plan) }); err != nil {
		return true, err
	}
	d.stats.Passes.Add(1)
	d.stats.Logs.Add(int64(len(plan.Logs)))
	for _, o := range plan.Objects {
		d.stats.ReadBytes.Add(o.Size)
	}
	return true, nil
}

// redecode works off what Redecode asked for.
func (d *Driver) redecode(ctx context.Context) (worked bool, err error) {
	limits, _ := d.limits(d.now())
	for _, f := range d.lostFiles(limits) {
		err := d.work(ctx, func(env Env) machine {
			c := NewCatchUp(ctx, env, []Backlog{{Log: f.log, Range: f.r}}, d.opts.Open)
			c.tables.replaces = f.path
			return c
		})
		if err != nil {
			return true, err
		}
		d.mu.Lock()
		delete(d.lost, f)
		d.mu.Unlock()
		worked = true
	}
	return worked, nil
}

func (d *Driver) lostFiles(limits Limits) (files []lostFile) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for f := range d.lost {
		if !limits.Quarantined[f.log.Stream] {
			files = append(files, f)
		}
	}
	return files
}

// machine is a Pass, a CatchUp or a Merge.
type machine interface {
	Step(ctx context.Context) (bool, error)
	Failed() map[base.StreamID]error
	Unreadable() []base.LogID
}

// work steps a machine to its end. A session that saw any failure is not used
// again: its half-written objects keep their names.
func (d *Driver) work(ctx context.Context, start func(Env) machine) error {
	if d.session == nil {
		session, err := shard.OpenSession(ctx, d.opts.View, d.opts.Instance, d.opts.Entropy)
		if err != nil {
			return err
		}
		d.session = session
	}
	m := start(Env{
		Ledger: d.opts.View, Session: d.session, Objects: d.opts.Objects,
		Tables: d.opts.Tables, Inherited: d.inherited(), CrashPoint: d.opts.CrashPoint,
	})
	var err error
	for done := false; !done && err == nil; {
		done, err = m.Step(ctx)
	}
	d.note(m, err)
	if err != nil || len(m.Failed()) > 0 {
		d.endSession(ctx)
	}
	return err
}

// note remembers what is to be left alone for a while, and forgets what is over.
func (d *Driver) note(m machine, err error) {
	now := d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	until := now + base.Millis(quarantineTime.Milliseconds())
	maps.DeleteFunc(d.tables, func(_ base.StreamID, t Trouble) bool { return t.Until <= now })
	maps.DeleteFunc(d.logs, func(_ base.LogID, t Trouble) bool { return t.Until <= now })
	for id, err := range m.Failed() {
		if errors.Is(err, context.Canceled) {
			continue
		}
		d.tables[id] = Trouble{Err: err, Until: until}
		d.opts.Logger.Warn("the table gets no new rows for now; its log is kept", "stream", uint64(id),
			"reason", err.Error(), "retry_in", quarantineTime.String())
	}
	if !errors.Is(err, base.ErrCorrupt) && !errors.Is(err, base.ErrNotFound) {
		return
	}
	for _, id := range m.Unreadable() {
		d.logs[id] = Trouble{Err: err, Until: until}
		d.opts.Logger.Error("a log cannot be read and is left uncompacted; others go on", "log", id.String(), "reason", err.Error())
	}
}

func (d *Driver) endSession(ctx context.Context) {
	if d.session == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if err := d.session.Close(ctx); err != nil {
		d.opts.Logger.Debug("leaving a writer to be fenced", "reason", err.Error())
	}
	d.session = nil
}
