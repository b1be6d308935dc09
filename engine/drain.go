package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// ErrTablesBehind says that every acknowledged record is durable in the log, and
// that a table did not hold all of them when the engine closed. Any engine on the
// cluster goes on with it.
var ErrTablesBehind = errors.New("tables are behind the log")

// drain makes what was appended durable, and waits for the tables of the streams
// that this engine wrote to; both together take at most DrainTimeout. The end of ctx
// cuts short the wait for tables only.
func (e *Engine) drain(ctx context.Context) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.opts.DrainTimeout)
	defer cancel()
	errs := []error{e.eachShard(func(s *shardEngine) error { return s.flushWriter(limit) })}
	if e.opts.Observe || e.opts.Compaction.Disabled {
		return errors.Join(errs...)
	}
	end, _ := limit.Deadline()
	ctx, stop := context.WithDeadline(ctx, end)
	defer stop()
	for _, s := range e.shards {
		s.draining.Store(true)
		s.driver.Hurry()
	}
	var behind []string
	for _, s := range e.shards {
		behind = append(behind, s.awaitTables(ctx)...)
	}
	if len(behind) > 0 {
		errs = append(errs, fmt.Errorf("%w: %s", ErrTablesBehind, strings.Join(behind, "; ")))
	}
	return errors.Join(errs...)
}

// eachShard calls fn for all shards at once, so that one that hangs takes no time
// from the others.
func (e *Engine) eachShard(fn func(*shardEngine) error) error {
	errs := make([]error, len(e.shards))
	var calls sync.WaitGroup
	for i, s := range e.shards {
		calls.Go(func() { errs[i] = fn(s) })
	}
	calls.Wait()
	return errors.Join(errs...)
}

// awaitTables waits until the tables hold what the logs hold now, and returns
// which do not and why.
func (s *shardEngine) awaitTables(ctx context.Context) (behind []string) {
	for id, heads := range s.writtenHeads() {
		for {
			changed := s.view.Changed()
			lag := s.tableLag(id, heads)
			if lag == 0 {
				break
			}
			if c, err := s.committer(id); err == nil {
				c.Flush()
			}
			if s.suspended(id) || !waitFor(ctx, changed) {
				behind = append(behind, s.explainLag(id, lag))
				break
			}
		}
	}
	return behind
}

func waitFor(ctx context.Context, changed <-chan struct{}) bool {
	select {
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}

// writtenHeads returns the heads of the streams that this engine wrote to and
// that have a table.
func (s *shardEngine) writtenHeads() map[base.StreamID][]base.Offset {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heads(func(id base.StreamID) bool { return s.wrote[id] })
}

// heads returns the heads of the chosen streams that have a table.
func (s *shardEngine) heads(chosen func(base.StreamID) bool) map[base.StreamID][]base.Offset {
	all := make(map[base.StreamID][]base.Offset)
	inherited := s.engine.catalog.Inherited()
	s.view.Inspect(func(st *shard.State) {
		for _, stream := range st.Streams() {
			if !chosen(stream.ID) || !inherited.Table(stream).Enabled {
				continue
			}
			heads := make([]base.Offset, len(stream.Logs))
			for i, l := range stream.Logs {
				heads[i] = l.Head()
			}
			all[stream.ID] = heads
		}
	})
	return all
}

// tableLag returns how many of the records below heads the table does not hold.
func (s *shardEngine) tableLag(id base.StreamID, heads []base.Offset) (lag base.Offset) {
	s.view.Inspect(func(st *shard.State) {
		stream, ok := st.Stream(id)
		if !ok {
			return
		}
		for i, l := range stream.Logs {
			if i < len(heads) {
				lag += max(0, heads[i]-l.Materialized())
			}
		}
	})
	return lag
}

// suspended reports whether only a person can make the table go on.
func (s *shardEngine) suspended(id base.StreamID) bool {
	trouble, _ := s.tableTrouble(id, "")
	return trouble.State == string(commit.StateSuspended)
}

func (s *shardEngine) explainLag(id base.StreamID, lag base.Offset) string {
	table, _ := s.tableOf(id)
	trouble, _ := s.tableTrouble(id, table.String())
	why := cmp.Or(trouble.Reason, "the time was too short (drain_timeout)")
	return fmt.Sprintf("table %s lacks %d of the log's records: %s", table, lag, why)
}
