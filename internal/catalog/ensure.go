package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// maxChanges bounds how often a change is tried again after someone else's.
const maxChanges = 16

// Ledger is what the catalog needs of a shard's view: to look at its state and to
// publish a record and learn its outcome.
type Ledger interface {
	Inspect(fn func(*shard.State))
	Publish(ctx context.Context, payload commitrecord.Payload) (shard.Outcome, error)
}

// StreamConfig is what a caller wants of a stream. The zero value wants the
// defaults at creation and changes nothing later.
type StreamConfig struct {
	// Partitions is the number of logs; 0 means 1 at creation and whatever
	// the stream has later.
	Partitions int
	Table      TablePolicy
}

// Stream is a stream as one read of its shard showed it.
type Stream struct {
	ID         base.StreamID
	Shard      base.Shard
	Name       base.StreamName
	Version    uint64
	Partitions int
	Table      Table
	// TableUUID is empty until the table's first range was prepared.
	TableUUID string
}

// Catalog is the streams of a cluster. It is safe for concurrent use.
type Catalog struct {
	ledgers []Ledger
	logger  *slog.Logger
}

// New returns the catalog over the views of all shards, in their order.
func New(ledgers []Ledger, logger *slog.Logger) *Catalog {
	return &Catalog{ledgers: ledgers, logger: logger}
}

// Load returns a stream, or base.ErrNotFound.
func (c *Catalog) Load(name base.StreamName) (Stream, error) {
	sh := base.ShardOf(name, len(c.ledgers))
	var found Stream
	c.ledgers[sh].Inspect(func(s *shard.State) {
		if st, ok := s.StreamByName(name); ok {
			found = describe(sh, st)
		}
	})
	if found.ID == 0 {
		return Stream{}, fmt.Errorf("stream %s: %w", name, base.ErrNotFound)
	}
	return found, nil
}

// List returns every stream, by name.
func (c *Catalog) List() []Stream {
	var all []Stream
	for sh, l := range c.ledgers {
		l.Inspect(func(s *shard.State) {
			for _, st := range s.Streams() {
				all = append(all, describe(base.Shard(sh), st)) //nolint:gosec // at most MaxShards
			}
		})
	}
	slices.SortFunc(all, func(a, b Stream) int {
		return slices.Compare([]string{a.Name.Namespace, a.Name.Name}, []string{b.Name.Namespace, b.Name.Name})
	})
	return all
}

func describe(sh base.Shard, st *shard.Stream) Stream {
	return Stream{
		ID: st.ID, Shard: sh, Name: st.Name, Version: st.Version, Partitions: len(st.Logs),
		Table: Resolve(st.Name, st.Policy), TableUUID: st.Table.UUID,
	}
}

// Ensure returns a stream of this name that satisfies cfg: it creates the stream,
// or adopts the one that exists and applies the table fields that cfg sets. Fewer
// partitions than the stream has, or a table identity that can no longer change,
// is base.ErrInvalid; more partitions than it has are ignored with a warning. Of
// instances that create at once one wins and the others adopt.
func (c *Catalog) Ensure(ctx context.Context, name base.StreamName, cfg StreamConfig) (Stream, error) {
	if err := cfg.validate(name); err != nil {
		return Stream{}, fmt.Errorf("stream %s: %w", name, err)
	}
	ledger := c.ledgers[base.ShardOf(name, len(c.ledgers))]
	for range maxChanges {
		out, settled, err := c.propose(ctx, ledger, name, cfg)
		if err != nil {
			return Stream{}, fmt.Errorf("stream %s: %w", name, err)
		}
		if settled {
			return c.Load(name)
		}
		if !out.OK() && out.Rejected != shard.StreamExists && out.Rejected != shard.VersionChanged {
			return Stream{}, fmt.Errorf("stream %s: %s: %w", name, out.Rejected, base.ErrInvalid)
		}
	}
	return Stream{}, fmt.Errorf("stream %s: others keep changing it: %w", name, base.ErrConflict)
}

func (cfg StreamConfig) validate(name base.StreamName) error {
	for _, part := range []string{name.Namespace, name.Name} {
		if err := base.CheckName(part); err != nil {
			return err
		}
	}
	if cfg.Partitions < 0 || cfg.Partitions > shard.MaxPartitions {
		return fmt.Errorf("partitions %d: want 1 to %d: %w", cfg.Partitions, shard.MaxPartitions, base.ErrInvalid)
	}
	return cfg.Table.Validate()
}

// propose publishes the one record that brings the stream nearer to cfg, or
// reports that nothing is left to do.
func (c *Catalog) propose(ctx context.Context, ledger Ledger, name base.StreamName, cfg StreamConfig) (out shard.Outcome, settled bool, err error) {
	policy, _ := cfg.Table.merge(&commitpb.TablePolicy{})
	var record commitrecord.Payload = &commitpb.StreamCreate{
		Namespace: name.Namespace, Name: name.Name, Table: policy,
		Partitions: uint32(max(1, cfg.Partitions)), //nolint:gosec // validated
	}
	ledger.Inspect(func(s *shard.State) {
		if st, ok := s.StreamByName(name); ok {
			policy, record, err = c.adopt(st, cfg)
		}
	})
	if err != nil || record == nil {
		return out, true, err
	}
	if err := c.checkCollision(name, Resolve(name, policy)); err != nil {
		return out, false, err
	}
	out, err = ledger.Publish(ctx, record)
	return out, false, err
}

// adopt compares an existing stream with cfg and returns the policy it then has
// and the record that changes it, or nil.
func (c *Catalog) adopt(st *shard.Stream, cfg StreamConfig) (*commitpb.TablePolicy, commitrecord.Payload, error) {
	switch has := len(st.Logs); {
	case cfg.Partitions == 0, cfg.Partitions == has:
	case cfg.Partitions < has:
		return nil, nil, fmt.Errorf("partitions %d: the stream has %d and never shrinks; set partitions to %d or leave it out: %w",
			cfg.Partitions, has, has, base.ErrInvalid)
	default:
		c.logger.Warn("the stream keeps its partitions", "stream", st.Name.String(), "partitions", has, "configured", cfg.Partitions)
	}
	merged, changed := cfg.Table.merge(st.Policy)
	if !changed {
		return merged, nil, nil
	}
	before, after := Resolve(st.Name, st.Policy), Resolve(st.Name, merged)
	if st.Table.UUID != "" && (before.String() != after.String() || !slices.Equal(before.SystemColumns, after.SystemColumns)) {
		return nil, nil, fmt.Errorf("table %s with system columns %v is filled already and cannot become %s with %v: %w",
			before, before.SystemColumns, after, after.SystemColumns, base.ErrInvalid)
	}
	return merged, &commitpb.StreamUpdate{Stream: uint64(st.ID), ExpectedVersion: st.Version, Table: merged}, nil
}

// checkCollision refuses a table name that another stream's table or dead-letter
// table has: one source stream a table. Streams created at the same moment in two shards can
// pass; the second then finds a table that is not its own and is suspended.
func (c *Catalog) checkCollision(name base.StreamName, table Table) error {
	if !table.Enabled {
		return nil
	}
	for _, other := range c.List() {
		if other.Name != name && other.Table.Enabled && table.overlaps(other.Table) {
			return fmt.Errorf("table %s, or its dead-letter table, is that of stream %s already; set table.name: %w", table, other.Name, base.ErrInvalid)
		}
	}
	return nil
}
