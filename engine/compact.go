package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
)

// maxCommitFailures is how often Compact tries to commit to one table in a row.
const maxCommitFailures = 5

// Compacted counts what one call of Compact did.
type Compacted struct {
	Passes int64 `json:"passes"`
	// Logs counts a log once for each pass that rewrote a part of it.
	Logs int64 `json:"logs"`
	// ReadBytes is the size of the WAL objects that were read.
	ReadBytes int64 `json:"read_bytes"`
	// Merged counts small compacted objects that larger ones took the place of.
	Merged int64 `json:"merged"`
}

// Compact rewrites what is raw in every log, merges small compacted objects and brings every table up to its log,
// and returns when nothing of that is left to do. It is for an engine that was
// opened with Observe, ErrInvalid for another, which does the same in the
// background; call it once at a time. Other instances may work meanwhile: what
// both do counts once. ErrTablesBehind names the tables that lack records, and
// why. When ctx ends, what was done stays done.
func (e *Engine) Compact(ctx context.Context) (Compacted, error) {
	if !e.opts.Observe {
		return Compacted{}, fmt.Errorf("compacting: the engine does so in the background: %w", base.ErrInvalid)
	}
	before := e.compacted()
	err := e.compact(ctx)
	after := e.compacted()
	done := Compacted{
		Passes: after.Passes - before.Passes, Logs: after.Logs - before.Logs, ReadBytes: after.ReadBytes - before.ReadBytes,
		Merged: after.Merged - before.Merged,
	}
	if err != nil {
		return done, fmt.Errorf("compacting: %w", err)
	}
	return done, nil
}

func (e *Engine) compact(ctx context.Context) error {
	alive, stop := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() { e.keepAlive(alive) })
	defer keeping.Wait()
	defer stop()
	var behind []string
	for _, s := range e.shards {
		lacking, err := s.compact(ctx)
		if err != nil {
			return fmt.Errorf("shard %s: %w", s.shard, err)
		}
		behind = append(behind, lacking...)
	}
	if len(behind) > 0 {
		return fmt.Errorf("%w: %s", ErrTablesBehind, strings.Join(behind, "; "))
	}
	return nil
}

func (e *Engine) compacted() (c Compacted) {
	for _, s := range e.shards {
		stats := s.driver.Stats()
		c.Passes += stats.Passes.Load()
		c.Logs += stats.Logs.Load()
		c.ReadBytes += stats.ReadBytes.Load()
		c.Merged += stats.MergedObjects.Load()
	}
	return c
}

// compact returns which tables of the shard are behind what its logs held at the
// start, and why.
func (s *shardEngine) compact(ctx context.Context) (behind []string, err error) {
	heads := s.heads(func(base.StreamID) bool { return true })
	if err := s.driver.Drain(ctx); err != nil {
		return nil, err
	}
	for id := range s.tableDemands() {
		if err := s.commitAll(ctx, id); err != nil {
			return nil, err
		}
	}
	for id, wanted := range heads {
		if lag := s.tableLag(id, wanted); lag > 0 {
			behind = append(behind, s.explainLag(id, lag))
		}
	}
	return behind, nil
}

// commitAll commits what is prepared for a table, until all of it is there or
// the table takes no more: its status then says why. The error is that of ctx or
// of the log.
func (s *shardEngine) commitAll(ctx context.Context, id base.StreamID) error {
	c, err := s.committer(id)
	if err != nil {
		return err
	}
	table, _ := s.tableOf(id)
	for failures := 0; failures < maxCommitFailures; {
		c.Flush()
		status, stepErr := c.Step(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.noteTable(id, table.String(), status, stepErr)
		switch {
		case status.State == commit.StateSuspended, stepErr == nil && status.Pending == 0:
			return nil
		case len(status.Missing) > 0:
			failures++
			if err := s.driver.Drain(ctx); err != nil {
				return err
			}
		case stepErr != nil:
			failures++
		}
		if status.Delay == 0 {
			continue
		}
		select {
		case <-s.engine.clock.After(status.Delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
