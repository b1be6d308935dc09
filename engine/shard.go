package engine

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/wal"
	"github.com/lakestream-go/lakestream/internal/worker"
)

// passMemoryShare is the part of compaction.max_memory_bytes that WAL objects of
// a pass may fill; row groups and decoded batches take the rest.
const passMemoryShare = 4

// shardEngine is what an instance runs for one shard.
type shardEngine struct {
	engine *Engine
	shard  base.Shard
	view   *shard.View
	driver *compaction.Driver

	mu sync.Mutex
	// All below are guarded by mu.
	writer     *wal.Writer
	committers map[base.StreamID]*committer
	tables     map[base.StreamID]commit.Status
	wrote      map[base.StreamID]bool
	closed     bool
	collection collection

	draining atomic.Bool
	// waiting counts appends that wait for the index to become shorter.
	waiting atomic.Int64
}

func newShardEngine(e *Engine, sh base.Shard, view *shard.View) *shardEngine {
	s := &shardEngine{
		engine: e, shard: sh, view: view,
		committers: make(map[base.StreamID]*committer),
		tables:     make(map[base.StreamID]commit.Status),
		wrote:      make(map[base.StreamID]bool),
	}
	s.driver = compaction.NewDriver(compaction.DriverOptions{
		View: view, Objects: e.objects, Tables: materializer{view, e.tables, e.clock, e.opts.CrashPoint}, Open: s.openSource,
		Inherited: func() catalog.Inherited { return e.catalog.Inherited() },
		Due:       compaction.Due{Age: e.opts.Compaction.Interval, Bytes: e.opts.Compaction.TargetBytes},
		Bytes:     e.opts.Compaction.MaxMemoryBytes / passMemoryShare, TargetBytes: e.opts.Compaction.TargetBytes, Instance: e.instance,
		Clock: e.clock, Entropy: rand.Reader, Logger: e.logger.With("shard", sh.String()), CrashPoint: e.opts.CrashPoint,
	})
	return s
}

// startJobs runs what an instance does in the background, until running ends.
func (e *Engine) startJobs(running context.Context) {
	leases := e.leases()
	e.jobs.Go(func() { e.keepAlive(running) })
	e.jobs.Go(func() { leases.FenceDead(running, e.shardLedgers(), e.coordination.Reconnects) })
	e.jobs.Go(func() { leases.Upgrade(running, e.allLedgers(), e.coordination.Reconnects) })
	e.jobs.Go(func() { e.publishProblems(running) })
	e.startHistory(running, leases)
	if e.opts.Compaction.Disabled {
		return
	}
	for _, s := range e.shards {
		e.jobs.Go(func() { leases.Run(running, "compact."+s.shard.String(), s.driver.Run) })
		e.jobs.Go(func() { s.superviseTables(running, leases) })
		e.jobs.Go(func() { leases.Run(running, "gc."+s.shard.String(), s.collect) })
	}
}

// leases are those that this instance holds.
func (e *Engine) leases() worker.Leases {
	return worker.Leases{
		Documents: e.coordination.Documents(), Clock: e.clock, Holder: e.instance, TTL: e.opts.LeaseTTL, Logger: e.logger,
		FoldVersion: e.opts.hooks.newestFold(),
	}
}
