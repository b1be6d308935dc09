package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/cursor"
	"github.com/lakestream-go/lakestream/internal/gc"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// newCollector returns what gives up the shard's old records and objects.
func (s *shardEngine) newCollector() *gc.Collector {
	e := s.engine
	return gc.NewCollector(gc.Options{
		View: s.view, Objects: e.objects, Covered: s.covered, Resolve: s.keeps, Consumed: s.consumed,
		Grace: e.opts.Reclaim.Grace, Interval: e.opts.Reclaim.Interval, SweepEvery: e.opts.Reclaim.SweepEvery,
		Clock: e.clock, Logger: e.logger.With("shard", s.shard.String()),
	})
}

// collect gives up what is old, round by round, until ctx ends.
func (s *shardEngine) collect(ctx context.Context) {
	collector := s.newCollector()
	collector.Run(ctx, func(round gc.Round, err error) {
		s.noteRound(round, collector.Skew(), err)
		if err != nil {
			s.engine.logger.Warn("old records and objects could not all be given up; it is tried again",
				"shard", s.shard.String(), "reason", err.Error())
		}
	})
	s.noteRound(gc.Round{}, 0, nil) // it is another instance's to tell from now on
}

// keeps returns what the logs of a stream keep, and whether it has a table.
func (s *shardEngine) keeps(st *shard.Stream) (catalog.LogRetention, bool) {
	inherited := s.engine.catalog.Inherited()
	return inherited.Retention(st), inherited.Table(st).Enabled
}

// consumed returns how far consumer groups have read the logs of some streams.
func (s *shardEngine) consumed(ctx context.Context, streams []gc.Stream) (func(base.LogID) (base.Offset, string, bool), error) {
	behind := make(map[base.LogID]cursor.Commit)
	for _, st := range streams {
		commits, err := cursor.Commits(ctx, s.engine.coordination.Documents(), cursor.Stream{Shard: s.shard, ID: st.ID, Name: st.Name})
		if err != nil {
			return nil, err
		}
		for _, c := range commits {
			id := base.LogID{Stream: st.ID, Partition: c.Partition}
			if least, known := behind[id]; !known || c.Next < least.Next {
				behind[id] = c
			}
		}
	}
	return func(id base.LogID) (base.Offset, string, bool) {
		c, ok := behind[id]
		return c.Next, c.Group, ok
	}, nil
}

// covered returns the revision of the checkpoint before the newest.
func (s *shardEngine) covered(ctx context.Context) (base.Revision, error) {
	return s.engine.loader(s.shard).Covered(ctx)
}

// heldPatience is how long a stream may keep more than its retention says until that
// is a problem: a table is always a little behind.
const heldPatience = 10 * time.Minute

// collection is what the newest round of a shard's collector left to tell.
type collection struct {
	skew time.Duration
	err  error
	held map[base.StreamID][]gc.Held
	// since is when each stream of held was first in it.
	since map[base.StreamID]time.Time
}

func (s *shardEngine) noteRound(round gc.Round, skew time.Duration, err error) {
	now := s.engine.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := collection{skew: skew, err: err, held: make(map[base.StreamID][]gc.Held), since: make(map[base.StreamID]time.Time)}
	for _, h := range round.Held {
		id := h.Log.Stream
		c.held[id] = append(c.held[id], h)
		c.since[id] = now
		if before, ok := s.collection.since[id]; ok {
			c.since[id] = before
		}
	}
	s.collection = c
}

// collectionProblems tells what keeps records and objects from being given up.
func (s *shardEngine) collectionProblems() (all []Problem) {
	s.mu.Lock()
	c := s.collection
	s.mu.Unlock()
	if c.err != nil && !errors.Is(c.err, context.Canceled) {
		all = append(all, Problem{
			What: "giving up old data of shard " + s.shard.String(), Reason: c.err.Error(),
			NextAction: "see the reason; storage grows until it is gone, and nothing is lost",
		})
	}
	if c.skew != 0 {
		all = append(all, Problem{
			What:       "clock of this machine",
			Reason:     fmt.Sprintf("it differs by %s from the coordination store's, so nothing is trimmed by age", c.skew),
			NextAction: "set the clocks right (NTP) here and on the NATS servers",
		})
	}
	for _, id := range slices.Sorted(maps.Keys(c.held)) {
		if s.engine.clock.Now().Sub(c.since[id]) >= heldPatience {
			all = append(all, s.heldProblem(id, c.held[id]))
		}
	}
	return all
}

// heldProblem tells what a stream keeps longer than its retention says.
func (s *shardEngine) heldProblem(id base.StreamID, held []gc.Held) Problem {
	name, records, until := fmt.Sprintf("%d", id), int64(0), base.Millis(0)
	s.view.Inspect(func(st *shard.State) {
		if found, ok := st.Stream(id); ok {
			name = found.Name.String()
		}
	})
	for _, h := range held {
		records += h.Records
		if until == 0 || h.Until != 0 && h.Until < until {
			until = h.Until
		}
	}
	p := Problem{
		What:       "retention of stream " + name,
		Reason:     fmt.Sprintf("%d records are kept beyond it because %s lacks them", records, held[0].By),
		NextAction: "see why it is behind: lakestream table describe, or lakestream group describe",
	}
	if until != 0 {
		p.Reason += fmt.Sprintf("; from %s on they go all the same", until.Time().Format(time.RFC3339))
	}
	return p
}
