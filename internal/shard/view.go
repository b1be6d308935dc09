package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

const (
	// tick is how often a view looks whether it is being left in silence.
	tick = time.Second
	// boundsEvery is every how many ticks an idle view asks the leader for the
	// log's last revision. Servers have been seen silent for a minute after a
	// restart while records were accepted.
	boundsEvery = 3
	// retryDelay is how long a view waits before it watches again.
	retryDelay = 100 * time.Millisecond
	// callTimeout bounds one question to the coordination store.
	callTimeout = 5 * time.Second
	// lossPatience is for how long, and lossAnswers how often in a row, the leader
	// must say that the log ends before what it acknowledged until that is
	// believed: a leader that was elected just now may not have caught up.
	lossPatience = 30 * time.Second
	lossAnswers  = 5
	// holeAnswers is how often in a row a watch must leave out the same revision,
	// which the leader says it has, until the store counts as damaged.
	holeAnswers = 20
)

// Checkpoints finds folded states of a shard. It is safe for concurrent use.
type Checkpoints interface {
	// Load returns the newest readable checkpoint, which the caller owns, or a
	// zero Snapshot when there is none and the log may begin at revision 1. What a
	// newer binary wrote is base.ErrNewerFormat; damage without anything older to
	// fall back to is base.ErrCorrupt; base.ErrUnavailable passes.
	Load(ctx context.Context) (Snapshot, error)
}

// ViewOptions are what a view needs. All fields but Checkpoints are required.
type ViewOptions struct {
	Cluster base.ClusterID
	Shard   base.Shard
	Log     coord.CommitLog
	// Checkpoints is where the view starts, and where it goes on when the log no
	// longer holds what follows. Without it the log must begin at revision 1.
	Checkpoints Checkpoints
	// Reconnects counts how often the connection was made again.
	Reconnects func() uint64
	Clock      base.Clock
	Logger     *slog.Logger
	// Entropy is the source of request ids and tokens.
	Entropy io.Reader
}

// View is a follower that is fed from a coordination store until it is closed. It
// never trusts silence: the watch is made again when it closes, when the
// connection was lost, when a record that was put does not arrive, and when the
// leader says that the log is longer. When the leader keeps saying that the log is
// shorter than what it acknowledged, records are lost and the view stops.
type View struct {
	*Follower
	opts   ViewOptions
	cancel context.CancelFunc
	done   sync.WaitGroup
	// expected is the newest revision that a put of ours returned.
	expected atomic.Uint64
	// chased is the newest revision for whose sake the watch was made again. Only
	// the following goroutine uses it, and short.
	chased base.Revision
	// short is how often in a row the leader said that the log is too short, and
	// since when.
	short struct {
		answers int
		since   time.Time
	}
	// hole is how often in a row a watch left out what follows a revision. Only
	// the following goroutine uses it.
	hole struct {
		answers int
		after   base.Revision
	}
}

// OpenView starts at the newest checkpoint and folds the shard's log up to its last
// record of now.
func OpenView(ctx context.Context, opts ViewOptions) (*View, error) {
	v := &View{Follower: NewFollower(opts.Cluster, opts.Shard), opts: opts}
	if _, err := v.reload(ctx); err != nil {
		return nil, fmt.Errorf("opening view of %s: %w", opts.Shard, err)
	}
	_, last, err := opts.Log.Bounds(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening view of %s: %w", opts.Shard, err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	v.cancel = cancel
	v.done.Go(func() { v.run(running) })
	err = v.WaitUntil(ctx, func(s *State) bool { return s.Revision() >= last })
	if err != nil {
		v.Close()
		return nil, fmt.Errorf("opening view of %s: %w", opts.Shard, err)
	}
	return v, nil
}

// Close stops following and waits for it. The last state can still be inspected.
func (v *View) Close() {
	v.cancel()
	v.done.Wait()
	v.Stop(fmt.Errorf("view of %s: %w", v.opts.Shard, base.ErrClosed))
}

// Expect tells the view that the store acknowledged a record at this revision.
func (v *View) Expect(revision base.Revision) {
	for {
		old := v.expected.Load()
		if uint64(revision) <= old || v.expected.CompareAndSwap(old, uint64(revision)) {
			return
		}
	}
}

func (v *View) run(ctx context.Context) {
	for ctx.Err() == nil && v.Err() == nil {
		err := v.follow(ctx)
		if err == nil || ctx.Err() != nil || v.Err() != nil {
			continue
		}
		v.opts.Logger.Log(ctx, levelOf(err), "watching the commit log again", "shard", v.opts.Shard.String(),
			"revision", uint64(v.Revision()), "reason", err.Error())
		select {
		case <-v.opts.Clock.After(retryDelay):
		case <-ctx.Done():
		}
	}
	if err := v.Err(); err != nil && !errors.Is(err, base.ErrClosed) {
		v.opts.Logger.Error("the shard stopped", "shard", v.opts.Shard.String(), "reason", err.Error())
	}
}

// errInterrupted marks the end of a watch whose connection came or went. The store
// tells of that once; its shards need not repeat it.
var errInterrupted = errors.New("interrupted")

// levelOf is how loud the reason for another watch is told: a suspicion that the
// store left something out is, an interruption is not.
func levelOf(reason error) slog.Level {
	if errors.Is(reason, errInterrupted) || errors.Is(reason, base.ErrUnavailable) {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// follow runs one watch, from the newest applied revision on so that the overlap
// is compared, until there is a reason to make it again.
func (v *View) follow(ctx context.Context) error {
	reconnects := v.opts.Reconnects()
	starting, cancel := context.WithTimeout(ctx, callTimeout)
	watch, err := v.opts.Log.Watch(starting, max(1, v.Revision()))
	cancel()
	if err != nil {
		return fmt.Errorf("starting watch: %w", err)
	}
	defer watch.Stop()
	silence := silenceCheck{view: v, reconnects: reconnects, seen: v.Revision()}
	timer := v.opts.Clock.After(tick)
	for {
		select {
		case e, ok := <-watch.Entries():
			if !ok {
				return fmt.Errorf("%w: the watch was closed", errInterrupted)
			}
			if err := v.Apply(e); errors.Is(err, ErrGap) {
				return v.gap(ctx, err)
			} else if err != nil {
				return err
			}
		case <-timer:
			if err := silence.check(ctx); err != nil {
				return err
			}
			timer = v.opts.Clock.After(tick)
		case <-ctx.Done():
			return nil
		}
	}
}

// gap decides what missing revisions mean: a watch that began too late can be made
// again; a history that no longer holds them cannot be followed.
func (v *View) gap(ctx context.Context, gap error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	first, _, err := v.opts.Log.Bounds(ctx)
	if err != nil {
		return gap
	}
	if v.hole.after != v.Revision() {
		v.hole.after, v.hole.answers = v.Revision(), 0
	}
	v.hole.answers++
	switch {
	case first > v.Revision()+1:
		return v.passOver(ctx, first)
	case v.hole.answers >= holeAnswers:
		v.Stop(fmt.Errorf("the log of %s lacks revision %d: the coordination store is damaged, restore it from a copy: %w",
			v.opts.Shard, v.Revision()+1, base.ErrCorrupt))
	}
	return gap
}

// reload goes on from the newest checkpoint, if it is ahead, and reports whether it
// was.
func (v *View) reload(ctx context.Context) (bool, error) {
	if v.opts.Checkpoints == nil {
		return false, nil
	}
	before := v.Revision()
	sn, err := v.opts.Checkpoints.Load(ctx)
	if err != nil || sn.State == nil {
		return false, err
	}
	err = v.Jump(sn)
	return v.Revision() > before, err
}

// passOver goes on from a checkpoint when the log begins only at first. A
// checkpoint stands before anything is purged up to it, so one that is missing, or
// cannot be read, is damage.
func (v *View) passOver(ctx context.Context, first base.Revision) error {
	before := v.Revision()
	jumped, err := v.reload(ctx)
	switch {
	case jumped && v.Revision()+1 >= first:
		return fmt.Errorf("the log begins at revision %d, after %d: went on from the checkpoint of revision %d", first, before, v.Revision())
	case errors.Is(err, base.ErrCorrupt), errors.Is(err, base.ErrNewerFormat), errors.Is(err, base.ErrForeign):
		v.Stop(fmt.Errorf("the log of %s begins at revision %d, after %d: %w", v.opts.Shard, first, before, err))
	case err == nil:
		v.Stop(fmt.Errorf("the log of %s begins at revision %d, after %d, and no checkpoint reaches it: "+
			"if coordination was lost, stop every instance and run lakestream recover: %w", v.opts.Shard, first, before, base.ErrCorrupt))
	}
	return err
}

// silenceCheck finds out whether a quiet watch is quiet because nothing happens.
type silenceCheck struct {
	view       *View
	reconnects uint64
	seen       base.Revision
	idle       int
}

func (c *silenceCheck) check(ctx context.Context) error {
	v := c.view
	if v.opts.Reconnects() != c.reconnects {
		v.short.answers = 0
		return fmt.Errorf("%w: the connection was made again", errInterrupted)
	}
	now := v.Revision()
	if now != c.seen {
		c.seen, c.idle = now, 0
		v.short.answers = 0
		return nil
	}
	c.idle++
	expected := base.Revision(v.expected.Load())
	missing := fmt.Errorf("revision %d was acknowledged and not delivered", expected)
	switch {
	case expected > max(now, v.chased): // at once: a new watch mostly helps
		v.chased = expected
		return missing
	case expected <= now && c.idle%boundsEvery != 0:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, last, err := v.opts.Log.Bounds(ctx)
	if err != nil {
		v.short.answers = 0
		return fmt.Errorf("asking for the last revision: %w", err)
	}
	if err := v.checkLength(last); err != nil {
		return err
	}
	switch {
	case expected > now:
		return missing
	case last > v.Revision():
		return fmt.Errorf("the log is at revision %d", last)
	}
	return nil
}

// checkLength stops the view once the leader has said for long enough that the log
// ends before a revision that was applied here, or that a put of ours returned.
func (v *View) checkLength(last base.Revision) error {
	known := max(v.Revision(), base.Revision(v.expected.Load()))
	if last >= known {
		v.short.answers = 0
		return nil
	}
	now := v.opts.Clock.Now()
	if v.short.answers == 0 {
		v.short.since = now
	}
	v.short.answers++
	if v.short.answers < lossAnswers || now.Sub(v.short.since) < lossPatience {
		return nil
	}
	err := fmt.Errorf("the log of %s ends at revision %d, before %d which was acknowledged: it was reset or lost records: %w",
		v.opts.Shard, last, known, base.ErrCorrupt)
	v.Stop(err)
	return err
}
