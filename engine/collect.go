package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/gc"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Collected is what one call of Collect gave up, or would give up.
type Collected struct {
	// Trimmed are the logs that retention trims, Held those that keep more than it
	// says, for their table or a consumer group.
	Trimmed []TrimmedLog `json:"trimmed"`
	Held    []HeldLog    `json:"held"`
	// Skipped counts the records that tables will never get, because they were
	// trimmed first.
	Skipped int64 `json:"skipped"`
	// Deleted counts the dead objects, Orphans the uploads that no record names.
	Deleted int `json:"deleted"`
	Orphans int `json:"orphans"`
	// Dead and DeadBytes are the dead objects that are left: they go when every
	// reader has let go of them and two checkpoints know them dead.
	Dead      int   `json:"dead"`
	DeadBytes int64 `json:"dead_bytes"`
}

// TrimmedLog is a log of which everything before an offset is given up.
type TrimmedLog struct {
	Stream    string    `json:"stream"`
	Partition Partition `json:"partition"`
	To        Offset    `json:"to"`
}

// HeldLog is a log that keeps records beyond its retention.
type HeldLog struct {
	Stream    string    `json:"stream"`
	Partition Partition `json:"partition"`
	Records   int64     `json:"records"`
	// For is what has not got the records yet: its table, or a consumer group.
	For string `json:"for"`
	// Until is when they go all the same; 0 for never.
	Until Millis `json:"until,omitempty"`
}

// CollectOptions say how Collect goes about it.
type CollectOptions struct {
	// DryRun changes nothing and tells what would be done.
	DryRun bool
	// Wait is how long Collect goes on until nothing dead is left. An object that
	// died is deleted after a grace (ReclaimOptions.Grace) that this engine has
	// waited itself, so without a wait none is.
	Wait time.Duration
	// Progress, when set, is told what is left, now and then.
	Progress func(Collected)
}

// Collect does what an engine does in the background: trim what retention gives up,
// delete what was dead for long enough and the uploads that no record names. It is
// for an engine that was opened with Observe, ErrInvalid for another. Pipelines may
// run meanwhile. When ctx ends, what was done stays done.
func (e *Engine) Collect(ctx context.Context, opts CollectOptions) (Collected, error) {
	if !e.opts.Observe {
		return Collected{}, fmt.Errorf("collecting: the engine does so in the background: %w", base.ErrInvalid)
	}
	collectors := make([]*gc.Collector, len(e.shards))
	for i, s := range e.shards {
		collectors[i] = s.newCollector()
	}
	until := e.clock.Now().Add(opts.Wait)
	total := Collected{Trimmed: []TrimmedLog{}, Held: []HeldLog{}}
	for {
		total.Held, total.Dead, total.DeadBytes = total.Held[:0], 0, 0
		for i, s := range e.shards {
			if err := s.collectWith(ctx, collectors[i], opts.DryRun, &total); err != nil {
				return total, fmt.Errorf("shard %s: %w", s.shard, err)
			}
		}
		if opts.DryRun || total.Dead == 0 || !e.clock.Now().Before(until) {
			return total, nil
		}
		if opts.Progress != nil {
			opts.Progress(total)
		}
		if err := e.betweenRounds(ctx); err != nil {
			return total, err
		}
	}
}

// betweenRounds makes the checkpoints that deletes wait for, and lets time pass.
func (e *Engine) betweenRounds(ctx context.Context) error {
	for _, s := range e.shards {
		if err := e.checkpointNow(ctx, s.shard); err != nil {
			return fmt.Errorf("collecting: %w", err)
		}
	}
	select {
	case <-e.clock.After(e.opts.Reclaim.Interval):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("collecting: waiting for the grace: %w", context.Cause(ctx))
	}
}

func (s *shardEngine) collectWith(ctx context.Context, collector *gc.Collector, dryRun bool, c *Collected) error {
	if dryRun {
		return s.planCollection(ctx, collector, c)
	}
	return s.collectOnce(ctx, collector, c)
}

func (s *shardEngine) collectOnce(ctx context.Context, collector *gc.Collector, c *Collected) error {
	round, err := collector.Round(ctx)
	s.addRetention(c, round.Trims, round.Held)
	c.Skipped += round.Skipped
	c.Deleted += len(round.Deleted)
	c.Orphans += len(round.Orphans)
	c.Dead += round.Dead
	c.DeadBytes += round.DeadBytes
	return err
}

func (s *shardEngine) planCollection(ctx context.Context, collector *gc.Collector, c *Collected) error {
	plan, err := collector.Plan(ctx)
	if err != nil {
		return err
	}
	s.addRetention(c, plan.Trims, plan.Held)
	s.view.Inspect(func(st *shard.State) {
		c.Dead += len(st.Dead())
		_, bytes := st.ObjectBytes()
		c.DeadBytes += bytes
	})
	return collector.EachOrphan(ctx, func(keys []string) error {
		c.Orphans += len(keys)
		return nil
	})
}

func (s *shardEngine) addRetention(c *Collected, trims []gc.LogTrim, held []gc.Held) {
	s.view.Inspect(func(st *shard.State) {
		name := func(id base.LogID) string {
			if stream, ok := st.Stream(id.Stream); ok {
				return stream.Name.String()
			}
			return id.String()
		}
		for _, t := range trims {
			c.Trimmed = append(c.Trimmed, TrimmedLog{Stream: name(t.Log), Partition: t.Log.Partition, To: t.To})
		}
		for _, h := range held {
			c.Held = append(c.Held, HeldLog{
				Stream: name(h.Log), Partition: h.Log.Partition, Records: h.Records, For: h.By, Until: h.Until,
			})
		}
	})
}
