package sim

import (
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// committer steps the commits of one stream's table. No lease keeps the committers
// of the instances apart.
type committer struct {
	instance *instance
	machine  *commit.Committer
	busy     bool
}

func newCommitter(i *instance, stream base.StreamID) *committer {
	main, dead := i.world.oracle.tablesOf(stream)
	options := commit.Options{
		Table: main, DeadLetter: dead, Tables: i.world.tables, Source: compaction.NewTableSource(i, stream),
		Clock: i.world.clock, Entropy: i.entropy,
		Interval: 400 * time.Millisecond, Retry: 100 * time.Millisecond, MaxFiles: 6,
	}
	if i.world.mutant.commit != nil {
		i.world.mutant.commit(&options)
	}
	machine, err := commit.New(options)
	if err != nil {
		i.world.fail("starting a committer: %v", err)
	}
	return &committer{instance: i, machine: machine}
}

func (c *committer) step() {
	if c.busy {
		return
	}
	c.busy = true
	defer func() { c.busy = false }()
	w := c.instance.world
	status, err := c.machine.Step(w.ctx)
	if err != nil {
		w.trace.add("the commit of %s failed: %v", c.instance.name, err)
	}
	if status.State == commit.StateSuspended || len(status.Missing) > 0 {
		w.fail("invariant 6: nobody touched the table, and the committer of %s says: %s", c.instance.name, status.Reason)
	}
}

// tableIdents names the tables of a stream.
func tableIdents(st *shard.Stream) (main, dead materialization.Ident) {
	t := catalog.Resolve(st.Name, st.Policy)
	return materialization.Ident{Namespace: t.Namespace, Name: t.Name},
		materialization.Ident{Namespace: t.Namespace, Name: t.DeadLetterName()}
}
