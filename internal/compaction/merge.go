package compaction

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/compacted"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Merge carries out one merge plan, a step at a time. The records are streamed from
// the old objects into one new object a log, row by row as they are; then one
// Compact record puts the new ones into the index. The old ones stay readable until
// they are reclaimed. Dropping a Merge at any step loses nothing.
type Merge struct {
	env  Env
	plan MergePlan
	open OpenSource
	next int // of the plan's logs

	written   []LogMerge
	sizes     []int64
	published bool
	stats     MergeStats
	failed    map[base.LogID]error
}

// MergeStats count what one merge did.
type MergeStats struct {
	// Logs whose index names fewer objects now.
	Logs int
	// Objects that were replaced, and ReadBytes their size.
	Objects   int
	ReadBytes int64
}

// NewMerge returns the step machine that carries out a plan.
func NewMerge(env Env, plan MergePlan, open OpenSource) *Merge {
	return &Merge{env: env, plan: plan, open: open, failed: make(map[base.LogID]error)}
}

// Step writes the next log's object or, when all are written, publishes them, and
// reports whether nothing is left. An error ends the merge; its session must not be
// used again.
func (m *Merge) Step(ctx context.Context) (done bool, err error) {
	switch {
	case m.next < len(m.plan.Logs):
		return false, m.writeNext(ctx)
	case m.published || len(m.written) == 0:
		return true, nil
	default:
		return false, m.publish(ctx)
	}
}

// Failed returns nothing: a merge touches no table.
func (m *Merge) Failed() map[base.StreamID]error { return nil }

// Unreadable returns nothing: a log whose objects cannot be read is left unmerged,
// and others go on; see Unmerged.
func (m *Merge) Unreadable() []base.LogID { return nil }

// Unmerged returns the logs whose objects could not be read, and why.
func (m *Merge) Unmerged() map[base.LogID]error { return m.failed }

// Stats returns what was done so far.
func (m *Merge) Stats() MergeStats { return m.stats }

// writeNext writes the object of the next log, unless the log was trimmed or dropped
// meanwhile, or cannot be read.
func (m *Merge) writeNext(ctx context.Context) error {
	w := m.plan.Logs[m.next]
	m.next++
	size, err := m.write(ctx, w)
	switch {
	case err == nil:
		m.written, m.sizes = append(m.written, w), append(m.sizes, size)
		m.env.crash(AfterCompacted)
		return nil
	case errors.Is(err, base.ErrCorrupt):
		m.failed[w.Log] = err
		return nil
	case errors.Is(err, base.ErrTrimmed), errors.Is(err, base.ErrNotFound):
		return nil
	default:
		return err
	}
}

func (m *Merge) write(ctx context.Context, w LogMerge) (size int64, err error) {
	source, err := m.open(ctx, w.Log, w.Range)
	if err == nil {
		key := base.CompactedKey(m.plan.Shard, m.env.Session.Writer(), w.Log, w.Range, m.env.Session.Next())
		meta := compacted.Meta{Cluster: m.plan.Cluster, Shard: m.plan.Shard, Log: w.Log, Range: w.Range}
		size, err = writeCompacted(ctx, m.env.Objects, key, meta, source)
	}
	if err != nil {
		return 0, fmt.Errorf("merging %d objects of log %s %s: %w", w.Objects, w.Log, w.Range, err)
	}
	return size, nil
}

// publish puts the new objects into the index. What the fold rejects was changed by
// someone else since it was planned, and is dead.
func (m *Merge) publish(ctx context.Context) error {
	record := newCompact(m.env.Session, m.plan.Read)
	for i, w := range m.written {
		addCompacted(record, w.Log, w.Range, m.sizes[i])
	}
	m.env.crash(BeforeCompact)
	out, err := m.env.Session.Publish(ctx, record)
	if err != nil {
		return fmt.Errorf("publishing merged objects: %w", err)
	}
	m.env.crash(AfterCompact)
	m.published = true
	for i, l := range out.Logs {
		if l.Rejected == shard.Accepted {
			m.stats.Logs++
			m.stats.Objects += m.written[i].Objects
			m.stats.ReadBytes += m.written[i].Bytes
		}
	}
	return nil
}
