package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/worker"
)

// superviseTables runs a committer for each stream that has a table, and wakes it
// when more is prepared.
func (s *shardEngine) superviseTables(ctx context.Context, leases worker.Leases) {
	var committers sync.WaitGroup
	defer committers.Wait()
	prepared := make(map[base.StreamID]base.Offset)
	running := make(map[base.StreamID]bool)
	for {
		changed := s.view.Changed()
		for id, sum := range s.preparedSums() {
			if prepared[id] == sum && !s.draining.Load() {
				continue
			}
			prepared[id] = sum
			c, err := s.committer(id)
			if err != nil {
				s.engine.logger.Error("a table has no committer", "stream", uint64(id), "reason", err.Error())
				continue
			}
			if !running[id] {
				running[id] = true
				name := fmt.Sprintf("table.%s-%d", s.shard, id)
				committers.Go(func() { leases.Run(ctx, name, func(ctx context.Context) { _ = c.Run(ctx) }) })
			}
			if s.draining.Load() {
				c.Flush()
			}
			c.Wake()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// preparedSums returns, for each stream that is bound to a table, a number that
// grows with what is prepared.
func (s *shardEngine) preparedSums() map[base.StreamID]base.Offset {
	sums := make(map[base.StreamID]base.Offset)
	s.view.Inspect(func(st *shard.State) {
		for _, stream := range st.Streams() {
			if stream.Table.UUID == "" {
				continue
			}
			for _, l := range stream.Logs {
				sums[stream.ID] += l.Prepared()
			}
		}
	})
	return sums
}

// committer returns the committer of a stream's table, made at the first call.
func (s *shardEngine) committer(id base.StreamID) (*commit.Committer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.committers[id]; c != nil {
		return c, nil
	}
	table, ok := s.tableOf(id)
	if !ok {
		return nil, fmt.Errorf("stream %d: %w", id, base.ErrNotFound)
	}
	main, dead := tableIdents(table)
	c, err := commit.New(commit.Options{
		Table: main, DeadLetter: dead, Tables: s.engine.tables, Source: compaction.NewTableSource(s.view, id),
		Clock: s.engine.clock, Entropy: rand.Reader, Interval: table.CommitInterval, CrashPoint: s.engine.opts.CrashPoint,
		OnStatus: func(status commit.Status, err error) { s.noteTable(id, main.String(), status, err) },
	})
	if err != nil {
		return nil, err
	}
	s.committers[id] = c
	return c, nil
}

func (s *shardEngine) tableOf(id base.StreamID) (table catalog.Table, ok bool) {
	s.view.Inspect(func(st *shard.State) {
		var stream *shard.Stream
		if stream, ok = st.Stream(id); ok {
			table = catalog.Resolve(stream.Name, stream.Policy)
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
