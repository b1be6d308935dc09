package sim

import (
	"context"
	"errors"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/log"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// machine is a compaction.Pass, CatchUp or Merge.
type machine interface {
	Step(ctx context.Context) (bool, error)
	Failed() map[base.StreamID]error
}

// compactor works off what is raw, as compaction.Driver does but without a lease:
// all instances compact the same logs at once.
type compactor struct {
	instance *instance
	fetcher  *log.Fetcher
	session  *shard.Session
	machine  machine
	busy     bool
}

// step starts a pass or takes the next step of the one under way.
func (c *compactor) step() {
	if c.busy {
		return
	}
	c.busy = true
	defer func() { c.busy = false }()
	if c.machine == nil {
		c.start()
		return
	}
	done, err := c.machine.Step(c.instance.world.ctx)
	if done {
		c.instance.world.trace.add("%s is done with a pass, %d tables failed", c.instance.name, len(c.machine.Failed()))
	}
	failed := err != nil || done && len(c.machine.Failed()) > 0
	c.note(err)
	for _, id := range c.instance.world.streams {
		c.note(c.machine.Failed()[id])
	}
	if m, ok := c.machine.(*compaction.Merge); ok {
		for _, err := range m.Unmerged() {
			c.note(err)
		}
	}
	if done || failed {
		c.machine = nil
	}
	if failed {
		c.end()
	}
}

// note holds a failure against the faults: damage and absence are never the
// engine's own doing.
func (c *compactor) note(err error) {
	w := c.instance.world
	if err == nil {
		return
	}
	w.trace.add("the pass of %s failed: %v", c.instance.name, err)
	switch {
	case errors.Is(err, base.ErrUnavailable), errors.Is(err, base.ErrUnknown), errors.Is(err, base.ErrFenced):
	case errors.Is(err, base.ErrCorrupt) && w.oracle.damaged > 0:
	default:
		w.fail("invariant 4: a pass of %s failed by itself: %v", c.instance.name, err)
	}
}

// start plans work over the view, however old that is.
func (c *compactor) start() {
	w := c.instance.world
	var backlogs []compaction.Backlog
	var plan compaction.Plan
	var merge compaction.MergePlan
	limits := compaction.Limits{Bytes: w.config.passBytes}
	c.instance.Inspect(func(s *shard.State) {
		backlogs = compaction.Backlogs(s, limits)
		plan = compaction.NewPlan(s, limits)
		merge = compaction.NewMergePlan(s, w.config.merge)
	})
	catchUp := len(backlogs) > 0 && (plan.Empty() || w.rng.IntN(2) == 0)
	mergeNow := !merge.Empty() && !catchUp && (plan.Empty() || w.rng.IntN(3) == 0)
	if !catchUp && !mergeNow && plan.Empty() {
		return
	}
	if c.session == nil {
		session, err := shard.OpenSession(w.ctx, c.instance, c.instance.name, c.instance.entropy)
		if err != nil {
			return
		}
		c.session = session
	}
	env := compaction.Env{Ledger: c.instance, Session: c.session, Objects: w.objects, Tables: newMaterializer(w)}
	if w.mutant.env != nil {
		w.mutant.env(c.instance, &env)
	}
	if catchUp {
		w.trace.add("%s catches up %v", c.instance.name, backlogs)
		c.machine = compaction.NewCatchUp(w.ctx, env, backlogs, c.source)
		return
	}
	if mergeNow {
		w.trace.add("%s merges %v, writer %d", c.instance.name, merge.Logs, c.session.Writer())
		c.machine = compaction.NewMerge(env, merge, c.source)
		return
	}
	w.trace.add("%s compacts %d objects, writer %d", c.instance.name, len(plan.Objects), c.session.Writer())
	c.machine = compaction.NewPass(env, plan)
}

func (c *compactor) source(ctx context.Context, id base.LogID, r base.OffsetRange) (recordbatch.Source, error) {
	return log.NewSource(ctx, c.fetcher, log.NewIndex(c.instance.Follower), id, r)
}

// end lets go of a session that cannot be used again.
func (c *compactor) end() {
	err := c.session.Close(c.instance.world.ctx)
	c.instance.world.trace.add("%s closes writer %d: %v", c.instance.name, c.session.Writer(), err)
	c.session = nil
}

// finish works until the pass under way, or the next one, has ended.
func (c *compactor) finish() {
	const most = 200
	for range most {
		c.step()
		if c.machine == nil || c.instance.world.broken != nil {
			return
		}
	}
	c.instance.world.fail("invariant 9: a pass of %s does not end", c.instance.name)
}
