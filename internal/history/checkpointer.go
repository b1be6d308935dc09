package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// View is what this package needs of a shard's view; *shard.View is one.
type View interface {
	Snapshot() shard.Snapshot
	Inspect(fn func(*shard.State))
	Revision() base.Revision
	// LogBytes returns the size of the records that were applied so far.
	LogBytes() int64
	Err() error
}

// CheckpointerOptions are what a Checkpointer works with. All fields are required.
type CheckpointerOptions struct {
	Loader
	Log  coord.CommitLog
	View View
	// Instance tells the checkpoints of this process from those of others.
	Instance string
	Due      Due
	// Interval is how often it looks whether one is due.
	Interval time.Duration
	Clock    base.Clock
}

// Checkpointer makes the checkpoints of one shard. One goroutine runs it at a time;
// several processes may, though a lease avoids the double work.
type Checkpointer struct {
	opts    CheckpointerOptions
	trouble trouble

	mu sync.Mutex
	// seen is the newest checkpoint that was seen here, and bytes what LogBytes was
	// then. Both are guarded by mu.
	seen  base.Revision
	bytes int64
	// began is the log's time at the first look.
	began base.Millis // guarded by mu
}

// NewCheckpointer returns a checkpointer that has seen nothing yet.
func NewCheckpointer(opts CheckpointerOptions) *Checkpointer {
	return &Checkpointer{opts: opts}
}

// Run makes checkpoints when they are due until ctx ends or the view stops. What
// fails is tried again at the next look.
func (c *Checkpointer) Run(ctx context.Context) {
	for c.opts.View.Err() == nil {
		_, err := c.RunOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		c.report(ctx, err)
		select {
		case <-c.opts.Clock.After(c.opts.Interval):
		case <-ctx.Done():
			return
		}
	}
}

// report tells of trouble once, and when it is over.
func (c *Checkpointer) report(ctx context.Context, err error) {
	before := c.trouble.swap(err)
	logger := c.opts.Logger.With("shard", c.opts.Shard.String())
	switch {
	case isNews(before, err):
		level := slog.LevelWarn
		if !errors.Is(err, base.ErrUnavailable) {
			level = slog.LevelError
		}
		logger.Log(ctx, level, "no checkpoint could be made; the log grows until one can", "reason", err.Error())
	case err == nil && before != nil:
		logger.Info("checkpoints can be made again")
	}
}

// Trouble returns why the last attempt failed, or nil.
func (c *Checkpointer) Trouble() error { return c.trouble.get() }

// RunOnce makes a checkpoint if one is due, and reports whether it did.
func (c *Checkpointer) RunOnce(ctx context.Context) (bool, error) {
	p, _, err := ReadPointer(ctx, c.opts.Documents, c.opts.Shard)
	if err != nil {
		return false, err
	}
	if !c.opts.Due.Reached(c.progress(p)) {
		return false, nil
	}
	return true, c.Checkpoint(ctx)
}

// progress measures what came since the newest checkpoint, or since the first look
// where there is none.
func (c *Checkpointer) progress(p *Pointer) (now Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := Ref{}
	if p != nil {
		newest = p.Current
	}
	total := c.opts.View.LogBytes()
	c.opts.View.Inspect(func(s *shard.State) {
		if c.began == 0 {
			c.began = s.Time()
		}
		if p == nil {
			newest.Time = c.began
		}
		if s.Revision() > newest.Revision {
			now.Records = uint64(s.Revision() - newest.Revision)
			now.Age = time.Duration(s.Time()-newest.Time) * time.Millisecond
		}
	})
	if c.seen != newest.Revision {
		c.seen, c.bytes = newest.Revision, total
	}
	now.Bytes = total - c.bytes
	return now
}

// Checkpoint makes a checkpoint of what the view shows now, lets the pointer name it
// and gives up what it makes dispensable. It is base.ErrCorrupt when folding the
// log once more does not give the state that the view has: then nothing changes.
func (c *Checkpointer) Checkpoint(ctx context.Context) error {
	live := c.opts.View.Snapshot()
	if err := c.opts.View.Err(); err != nil {
		return fmt.Errorf("making checkpoint of %s: %w", c.opts.Shard, err)
	}
	hash, revision := live.State.Hash(), live.State.Revision()
	live.State = nil // the copy is large
	refolded, from, err := c.refold(ctx, revision)
	if errors.Is(err, errBehind) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("making checkpoint of %s at revision %d: %w", c.opts.Shard, revision, err)
	}
	if got := refolded.State.Hash(); got != hash {
		return fmt.Errorf("making checkpoint of %s at revision %d: folding the log again gives the state %s, this instance has %s; "+
			"restart it, and report a defect if it comes again: %w", c.opts.Shard, revision, got, hash, base.ErrCorrupt)
	}
	ref, err := write(ctx, c.opts.Objects, refolded, c.opts.Instance)
	if err != nil {
		return err
	}
	p, err := advance(ctx, c.opts.Documents, c.opts.Shard, ref, from)
	if errors.Is(err, errBehind) {
		return nil // what another instance made is as good; ours goes with the next
	}
	if err != nil {
		return err
	}
	c.opts.Logger.Info("made a checkpoint", "shard", c.opts.Shard.String(), "revision", uint64(revision), "bytes", ref.Size)
	return c.Tidy(ctx, p)
}

// refold folds the newest checkpoint and the log after it, up to a revision, and
// returns the checkpoint's revision too.
func (c *Checkpointer) refold(ctx context.Context, revision base.Revision) (shard.Snapshot, base.Revision, error) {
	start, err := c.opts.Load(ctx)
	if err != nil {
		return shard.Snapshot{}, 0, err
	}
	if start.State == nil {
		start.State = shard.NewState(c.opts.Cluster, c.opts.Shard)
	}
	from := start.State.Revision()
	if from > revision {
		return shard.Snapshot{}, 0, errBehind
	}
	// A follower also compares the histories that the records' publishers saw.
	f := shard.NewFollowerAt(start)
	if err := replay(ctx, c.opts.Clock, c.opts.Log, from+1, revision, f.Apply); err != nil {
		return shard.Snapshot{}, 0, err
	}
	return f.Snapshot(), from, nil
}

// write stores a checkpoint, once what was encoded loads as the same state.
func write(ctx context.Context, objects blob.Store, sn shard.Snapshot, instance string) (Ref, error) {
	s := sn.State
	ref := Ref{Key: base.CheckpointKey(s.Shard(), s.Revision(), instance), Revision: s.Revision(), Time: s.Time()}
	data, err := sn.Encode()
	if err != nil {
		return Ref{}, err
	}
	ref.Size = int64(len(data))
	if _, err := shard.VerifyCheckpoint(data, s.Cluster(), s.Shard()); err != nil {
		return Ref{}, fmt.Errorf("writing checkpoint %s: %w", ref.Key, err)
	}
	err = createObject(ctx, objects, ref.Key, data)
	if err != nil && !errors.Is(err, base.ErrExists) { // equal states give equal bytes
		return Ref{}, fmt.Errorf("writing checkpoint %s: %w", ref.Key, err)
	}
	return ref, nil
}

// Tidy purges the log and deletes the objects that the pointer's checkpoints make
// dispensable. It can be repeated.
func (c *Checkpointer) Tidy(ctx context.Context, p Pointer) error {
	stored, err := List(ctx, c.opts.Objects, c.opts.Shard)
	if err != nil {
		return err
	}
	t := PlanTidying(p, stored)
	if t.PurgeBelow > 0 {
		if err := c.opts.Log.Purge(ctx, t.PurgeBelow); err != nil {
			return fmt.Errorf("purging the log of %s below revision %d: %w", c.opts.Shard, t.PurgeBelow, err)
		}
	}
	for _, key := range t.Delete {
		if err := c.opts.Objects.Delete(ctx, key); err != nil {
			return fmt.Errorf("deleting %s: %w", key, err)
		}
	}
	return nil
}
