package gc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/shard"
)

const (
	// clockTolerance is by how much this machine's clock may differ from the
	// coordination store's while records are trimmed by their age.
	clockTolerance = time.Minute
	// maxDeletes bounds the objects that one round deletes, and a Reclaimed record.
	maxDeletes = 1000
	// listPage is how many objects are listed and judged at once.
	listPage = 1000
)

// View is what a collector needs of a shard's view.
type View interface {
	Inspect(fn func(*shard.State))
	Publish(ctx context.Context, payload commitrecord.Payload) (shard.Outcome, error)
	Err() error
}

// Options are what a Collector works with. All fields are required.
type Options struct {
	View    View
	Objects blob.Store
	// Covered returns the revision of the checkpoint before the newest, 0 for none:
	// only what was dead in it is deleted.
	Covered func(ctx context.Context) (base.Revision, error)
	// Resolve returns what the logs of a stream keep, and whether it has a table. It
	// is called while View is inspected and must not look at View itself.
	Resolve func(*shard.Stream) (catalog.LogRetention, bool)
	// Consumed returns how far the consumer groups of streams have read, by log, as
	// Rules.Consumed does.
	Consumed func(ctx context.Context, streams []Stream) (func(base.LogID) (base.Offset, string, bool), error)
	// Grace is how long what is dead or hidden is kept for readers; Interval is how
	// often a round begins, SweepEvery how often orphans are looked for.
	Grace, Interval, SweepEvery time.Duration
	Clock                       base.Clock
	Logger                      *slog.Logger
}

// Stream names a stream and its incarnation.
type Stream struct {
	ID   base.StreamID
	Name base.StreamName
}

// Round is what one round did, or what it would do.
type Round struct {
	// Trims are the logs that were trimmed for good; Held what waits, and for what.
	Trims []LogTrim
	Held  []Held
	// Skipped counts the records that tables will never get.
	Skipped int64
	// Deleted are the dead objects that were deleted, Orphans the uploads.
	Deleted, Orphans []string
	// Dead and DeadBytes are the dead objects that are left.
	Dead      int
	DeadBytes int64
}

// Collector gives up what one shard need not keep. It is for one goroutine at a
// time; two collectors of one shard do no harm.
type Collector struct {
	opts   Options
	graves *graves
	hiding *hiding
	swept  time.Time
	nudged time.Time
	// skewed is set while the clocks were last seen to differ.
	skewed time.Duration
}

// NewCollector returns a collector that has not seen anything dead yet.
func NewCollector(opts Options) *Collector {
	return &Collector{opts: opts, graves: newGraves(opts.Grace), hiding: newHiding(opts.Grace)}
}

// Run does a round every interval until ctx ends, and tells observe what came of
// it. A round that fails is done again: what it left undone is found again.
func (c *Collector) Run(ctx context.Context, observe func(Round, error)) {
	for {
		round, err := c.Round(ctx)
		if ctx.Err() != nil {
			return
		}
		observe(round, err)
		select {
		case <-c.opts.Clock.After(c.opts.Interval):
		case <-ctx.Done():
			return
		}
	}
}

// Round trims, skips, deletes what is dead for long enough and, once in a while,
// orphans. What it did before an error stays done.
func (c *Collector) Round(ctx context.Context) (round Round, err error) {
	err = errors.Join(c.retain(ctx, &round), c.skip(ctx, &round), c.reclaim(ctx, &round))
	now := c.opts.Clock.Now()
	if err == nil && (c.swept.IsZero() || now.Sub(c.swept) >= c.opts.SweepEvery) {
		round.Orphans, err = c.Sweep(ctx)
		if err == nil {
			c.swept = now
		}
	}
	c.opts.View.Inspect(func(s *shard.State) {
		round.Dead = len(s.Dead())
		_, round.DeadBytes = s.ObjectBytes()
	})
	if err != nil {
		return round, fmt.Errorf("collecting: %w", err)
	}
	return round, nil
}

// Plan tells what retention would trim now, and changes nothing.
func (c *Collector) Plan(ctx context.Context) (Retention, error) {
	rules, err := c.rules(ctx)
	if err != nil {
		return Retention{}, fmt.Errorf("planning retention: %w", err)
	}
	return c.plan(rules), nil
}

func (c *Collector) plan(rules Rules) (plan Retention) {
	c.opts.View.Inspect(func(s *shard.State) {
		c.hiding.observe(c.opts.Clock.Now(), s)
		plan = PlanRetention(s, rules)
	})
	return plan
}

// retain trims what retention gives up, after it asked the coordination store for
// the time where age matters.
func (c *Collector) retain(ctx context.Context, round *Round) error {
	rules, err := c.rules(ctx)
	if err != nil {
		return fmt.Errorf("planning retention: %w", err)
	}
	plan := c.plan(rules)
	if len(plan.Trims) > 0 {
		if err := c.checkClock(ctx); err != nil {
			return fmt.Errorf("comparing clocks: %w", err)
		}
		if rules.Ageless = c.skewed != 0; rules.Ageless {
			plan = c.plan(rules)
		}
	}
	round.Held = plan.Held
	for _, record := range trimRecords(plan.Trims) {
		out, err := c.opts.View.Publish(ctx, record)
		if err != nil {
			return fmt.Errorf("trimming stream %d: %w", record.GetStream(), err)
		}
		for _, l := range out.Logs {
			if l.Rejected == shard.Accepted {
				round.Trims = append(round.Trims, LogTrim{Log: l.Log, To: l.Base})
			}
		}
	}
	return nil
}

// skip tells tables of the records that they will never get.
func (c *Collector) skip(ctx context.Context, round *Round) error {
	var skips map[base.LogID]base.OffsetRange
	c.opts.View.Inspect(func(s *shard.State) {
		skips = Skips(s, func(st *shard.Stream) bool {
			_, table := c.opts.Resolve(st)
			return table
		})
	})
	for _, record := range skipRecords(skips) {
		out, err := c.opts.View.Publish(ctx, record)
		if err != nil {
			return fmt.Errorf("skipping records of stream %d: %w", record.GetStream(), err)
		}
		if out.OK() {
			n := int64(record.GetEnd() - record.GetStart()) //nolint:gosec // a count of records
			round.Skipped += n
			c.opts.Logger.Warn("a table will never have records that were trimmed before it got them",
				"stream", record.GetStream(), "partition", record.GetPartition(), "from", record.GetStart(), "records", n)
		}
	}
	return nil
}

// reclaim deletes what has been dead for long enough, and says so in the log.
func (c *Collector) reclaim(ctx context.Context, round *Round) error {
	covered, err := c.opts.Covered(ctx)
	if err != nil {
		return fmt.Errorf("asking for the checkpoint: %w", err)
	}
	var dead []shard.Dead
	c.opts.View.Inspect(func(s *shard.State) { dead = s.Dead() })
	if err := c.opts.View.Err(); err != nil {
		return err // what is dead in a history that is not the others' may live in theirs
	}
	keys, uncovered := c.graves.due(c.opts.Clock.Now(), dead, covered, maxDeletes)
	if uncovered {
		if err := c.nudge(ctx); err != nil {
			return err
		}
	}
	deleted, err := c.delete(ctx, keys)
	if len(deleted) > 0 {
		// Whether a record is refused makes no difference: another collector
		// reclaimed the same.
		if _, publishErr := c.opts.View.Publish(ctx, reclaimedRecord(deleted)); publishErr != nil {
			return errors.Join(err, fmt.Errorf("recording what was deleted: %w", publishErr))
		}
	}
	round.Deleted = deleted
	return err
}

// delete removes objects, and returns those that are gone and why others are not.
func (c *Collector) delete(ctx context.Context, keys []string) (deleted []string, err error) {
	for _, key := range keys {
		if ctx.Err() != nil {
			return deleted, errors.Join(err, ctx.Err())
		}
		if failed := c.opts.Objects.Delete(ctx, key); failed != nil {
			err = fmt.Errorf("deleting %s: %w", key, failed)
			continue
		}
		deleted = append(deleted, key)
	}
	return deleted, err
}

// Sweep deletes the orphans: uploads of closed writers that no record names.
func (c *Collector) Sweep(ctx context.Context) (deleted []string, err error) {
	err = c.EachOrphan(ctx, func(keys []string) error {
		gone, err := c.delete(ctx, keys)
		deleted = append(deleted, gone...)
		return err
	})
	if err != nil {
		return deleted, fmt.Errorf("sweeping orphans: %w", err)
	}
	return deleted, nil
}

// EachOrphan calls found with the orphans, a page of the listing at a time.
func (c *Collector) EachOrphan(ctx context.Context, found func(keys []string) error) error {
	var name base.Shard
	c.opts.View.Inspect(func(s *shard.State) { name = s.Shard() })
	for _, prefix := range []string{base.WALPrefix, base.CompactedPrefix} {
		if err := c.eachOrphan(ctx, prefix+name.String()+"/", found); err != nil {
			return err
		}
	}
	return nil
}

func (c *Collector) eachOrphan(ctx context.Context, prefix string, found func(keys []string) error) error {
	for after := ""; ; {
		page, err := c.opts.Objects.List(ctx, prefix, after, listPage)
		if err != nil {
			return err
		}
		keys := make([]string, len(page))
		for i, o := range page {
			keys[i] = o.Key
		}
		var orphans []string
		c.opts.View.Inspect(func(s *shard.State) { orphans = s.Orphans(keys) })
		if err := c.opts.View.Err(); err != nil {
			return err // what a stopped view shows may not be the last word
		}
		if len(orphans) > 0 {
			if err := found(orphans); err != nil {
				return err
			}
		}
		if len(page) < listPage {
			return nil
		}
		after = keys[len(keys)-1]
	}
}
