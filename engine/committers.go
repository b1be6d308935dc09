package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/worker"
)

// committer commits the table of one stream, as the stream's policy names it.
type committer struct {
	*commit.Committer
	table catalog.Table
	// outdated closes when the policy names another table or another interval.
	outdated chan struct{}
}

// serves reports whether the committer is one for a table as it is now.
func (c *committer) serves(t catalog.Table) bool {
	return c.table.String() == t.String() && c.table.CommitInterval == t.CommitInterval
}

// tableDemand is what makes a table's committer look again when it changes.
type tableDemand struct {
	// prepared grows with what is prepared, and version with each change of the
	// stream's policy.
	prepared base.Offset
	version  uint64
	// table and interval are what the policies resolve to.
	table    string
	interval time.Duration
}

// superviseEvery bounds how often what committers have to do is looked for.
const superviseEvery = 20 * time.Millisecond

// superviseTables runs a committer for each stream that has a table, and wakes it
// when more is prepared, until the stream is deleted, ctx ends or the view stops:
// another instance may be able to commit.
func (s *shardEngine) superviseTables(ctx context.Context, leases worker.Leases) {
	var committers sync.WaitGroup
	defer committers.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(map[base.StreamID]tableDemand)
	running := make(map[base.StreamID]context.CancelFunc)
	for {
		changed, inherited := s.view.Changed(), s.engine.meta.Changed()
		if ctx.Err() != nil || s.view.Err() != nil {
			return
		}
		if s.engine.meta.Err() != nil {
			inherited = nil // it changes no more
		}
		demands := s.tableDemands()
		for id, demand := range demands {
			if served[id] == demand && !s.draining.Load() {
				continue
			}
			served[id] = demand
			if !s.wakeCommitter(id) || running[id] != nil {
				continue
			}
			work, end := context.WithCancel(ctx)
			running[id] = end
			name := fmt.Sprintf("table.%s-%d", s.shard, id)
			committers.Go(func() { leases.Run(work, name, func(ctx context.Context) { s.runCommitter(ctx, id) }) })
		}
		s.endDeleted(running, demands)
		select {
		case <-changed:
		case <-inherited:
		case <-ctx.Done():
		}
		// Each look goes over every stream, and records come by the hundred.
		select {
		case <-s.engine.clock.After(superviseEvery):
		case <-ctx.Done():
		}
	}
}

// endDeleted ends the committers of streams that were deleted, and forgets what they
// said. A stream that has a demand is there.
func (s *shardEngine) endDeleted(running map[base.StreamID]context.CancelFunc, demands map[base.StreamID]tableDemand) {
	for id, end := range running {
		if _, bound := demands[id]; bound {
			continue
		}
		if _, live := s.tableOf(id); live {
			continue // its table was reset
		}
		end()
		delete(running, id)
		s.mu.Lock()
		delete(s.committers, id)
		delete(s.tables, id)
		s.mu.Unlock()
	}
}

// wakeCommitter makes a stream's committer look at what there is to do, or reports
// that it has none.
func (s *shardEngine) wakeCommitter(id base.StreamID) bool {
	c, err := s.committer(id)
	if err != nil {
		s.engine.logger.Error("a table has no committer", "stream", uint64(id), "reason", err.Error())
		return false
	}
	if s.draining.Load() {
		c.Flush()
	}
	c.Wake()
	return true
}

// runCommitter runs a stream's committer, and the one that takes its place when the
// policy changes, until ctx ends.
func (s *shardEngine) runCommitter(ctx context.Context, id base.StreamID) {
	for ctx.Err() == nil {
		c, err := s.committer(id)
		if err != nil {
			return // said when it was woken
		}
		running, stop := context.WithCancel(ctx)
		go func() {
			select {
			case <-c.outdated:
				stop()
			case <-running.Done():
			}
		}()
		_ = c.Run(running) // ends with its context only
		stop()
	}
}

// tableDemands returns what there is to do for each stream that is bound to a table.
func (s *shardEngine) tableDemands() map[base.StreamID]tableDemand {
	demands := make(map[base.StreamID]tableDemand)
	inherited := s.engine.catalog.Inherited()
	s.view.Inspect(func(st *shard.State) {
		for _, stream := range st.Streams() {
			if stream.Table.UUID == "" {
				continue
			}
			table := inherited.Table(stream)
			demand := tableDemand{version: stream.Version, table: table.String(), interval: table.CommitInterval}
			for _, l := range stream.Logs {
				demand.prepared += l.Prepared()
			}
			demands[stream.ID] = demand
		}
	})
	return demands
}

// committer returns the committer of a stream's table, made at the first call and
// after each change of what it works on.
func (s *shardEngine) committer(id base.StreamID) (*committer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	table, ok := s.tableOf(id)
	if !ok {
		return nil, fmt.Errorf("stream %d: %w", id, base.ErrNotFound)
	}
	before := s.committers[id]
	if before != nil && before.serves(table) {
		return before, nil
	}
	options := s.committerOptions(id, table)
	options.OnStatus = func(status commit.Status, err error) { s.noteTable(id, table.String(), status, err) }
	made, err := commit.New(options)
	if err != nil {
		return nil, err
	}
	if before != nil {
		close(before.outdated)
	}
	c := &committer{Committer: made, table: table, outdated: make(chan struct{})}
	s.committers[id] = c
	return c, nil
}

// committerOptions are those of whoever commits to a stream's table, or only looks.
func (s *shardEngine) committerOptions(id base.StreamID, table catalog.Table) commit.Options {
	main, dead := tableIdents(table)
	return commit.Options{
		Table: main, DeadLetter: dead, Tables: s.engine.tables, Source: compaction.NewTableSource(s.view, id),
		Clock: s.engine.clock, Entropy: rand.Reader, Interval: table.CommitInterval, CrashPoint: s.engine.opts.CrashPoint,
	}
}

func (s *shardEngine) tableOf(id base.StreamID) (table catalog.Table, ok bool) {
	inherited := s.engine.catalog.Inherited()
	s.view.Inspect(func(st *shard.State) {
		var stream *shard.Stream
		if stream, ok = st.Stream(id); ok {
			table = inherited.Table(stream)
		}
	})
	return table, ok
}

// noteTable keeps a committer's status for people, logs each change of state once,
// and has lost files written again.
func (s *shardEngine) noteTable(id base.StreamID, table string, status commit.Status, err error) {
	s.mu.Lock()
	before := s.tables[id]
	s.tables[id] = status
	s.mu.Unlock()
	for _, m := range status.Missing {
		s.driver.Redecode(m.Log, m.Range, m.Path)
	}
	if status.State == before.State && status.Reason == before.Reason {
		return
	}
	switch status.State {
	case commit.StateDegraded, commit.StateSuspended:
		s.engine.logger.Warn("the table is "+string(status.State), "table", table, "reason", status.Reason, "next", status.NextAction, "error", err)
	case commit.StateRunning, commit.StatePending:
		if before.State == commit.StateDegraded || before.State == commit.StateSuspended {
			s.engine.logger.Info("the table is "+string(status.State)+" again", "table", table)
		}
	}
}

// tableStatus returns what the committer of this instance last said.
func (s *shardEngine) tableStatus(id base.StreamID) (commit.Status, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, ok := s.tables[id]
	return status, ok
}
