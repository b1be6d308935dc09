package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// publish writes one record about a stream. Outcomes other than accepted are an
// error, unless they are among those that the caller expects.
func (c *Catalog) publish(ctx context.Context, st Stream, record commitrecord.Payload, expected ...shard.Reason) (shard.Outcome, error) {
	ledger := c.shards[st.Shard]
	if err := needVersion(commitrecord.Since(record), ledger); err != nil {
		return shard.Outcome{}, fmt.Errorf("stream %s: %w", st.Name, err)
	}
	out, err := ledger.Publish(ctx, record)
	if err == nil && !out.OK() && !slices.Contains(expected, out.Rejected) {
		err = refusal(out.Rejected)
		if out.Rejected == shard.NoStream {
			_, err = c.Refresh(st)
			return out, err
		}
	}
	if err != nil {
		return out, fmt.Errorf("stream %s: %w", st.Name, err)
	}
	return out, nil
}

// IncreasePartitions lets a stream grow to a number of partitions, all visible at
// once. That it has them already is no error; fewer than it has are
// base.ErrInvalid. Keys go to other partitions afterwards.
func (c *Catalog) IncreasePartitions(ctx context.Context, st Stream, partitions int) (Stream, error) {
	now, err := c.Refresh(st)
	switch {
	case err != nil:
		return Stream{}, err
	case partitions < 1 || partitions > shard.MaxPartitions:
		return Stream{}, fmt.Errorf("stream %s: partitions %d: want 1 to %d: %w", st.Name, partitions, shard.MaxPartitions, base.ErrInvalid)
	case partitions < now.Partitions:
		return Stream{}, fmt.Errorf("stream %s: partitions %d: it has %d and never shrinks: %w", st.Name, partitions, now.Partitions, base.ErrInvalid)
	case partitions == now.Partitions:
		return now, nil
	}
	record := &commitpb.PartitionsAdd{Stream: uint64(st.ID), Partitions: uint32(partitions)}
	if _, err := c.publish(ctx, st, record, shard.AlreadyPublished); err != nil {
		return Stream{}, err
	}
	return c.Refresh(st)
}

// ReplaceProperties makes properties all that the stream has, as of a revision of
// whatever they come from, from 1 on. An older or equal revision than that of the
// properties that the stream has changes nothing and reports false.
func (c *Catalog) ReplaceProperties(ctx context.Context, st Stream, properties map[string]string, source uint64) (replaced bool, err error) {
	if err := checkProperties(properties); err != nil {
		return false, fmt.Errorf("stream %s: %w", st.Name, err)
	}
	out, err := c.publish(ctx, st, &commitpb.StreamUpdate{
		Stream: uint64(st.ID), Properties: &commitpb.Properties{Values: encodeProperties(properties), SourceRevision: source},
	}, shard.StaleSource)
	return out.OK() && err == nil, err
}

// Drop deletes the stream of a name, for ever: a tombstone keeps the name from
// being used again. With purge its data is given up, else it is kept until Drop is
// called with purge. It reports false when nothing was there to be deleted.
func (c *Catalog) Drop(ctx context.Context, name base.StreamName, purge bool) (dropped bool, err error) {
	sh, ledger := c.shardOf(name)
	st := Stream{Name: name, Shard: sh}
	ledger.Inspect(func(s *shard.State) {
		if live, ok := s.StreamByName(name); ok {
			st.ID = live.ID
		} else if t, ok := s.Tombstone(name); ok && purge && !t.Purged {
			st.ID = t.ID
		}
	})
	if st.ID == 0 {
		return false, nil
	}
	out, err := c.publish(ctx, st, &commitpb.StreamDelete{Stream: uint64(st.ID), Purge: purge}, shard.NoStream)
	return out.OK() && err == nil, err
}

// Trim hides what lies before an offset of one partition, or with hard gives it up,
// and returns the first live offset. The mark never moves back: less than what is
// trimmed already changes nothing. An offset beyond the head is base.ErrInvalid.
func (c *Catalog) Trim(ctx context.Context, st Stream, p base.Partition, to base.Offset, hard bool) (start base.Offset, err error) {
	if to < 0 {
		return 0, fmt.Errorf("stream %s: trimming to %d: want an offset from 0 on: %w", st.Name, to, base.ErrInvalid)
	}
	out, err := c.publish(ctx, st, &commitpb.Trim{
		Stream: uint64(st.ID), Partition: []uint32{uint32(p)}, Offset: []uint64{uint64(to)}, Hard: hard, //nolint:gosec // checked
	})
	if err != nil {
		return 0, err
	}
	var head base.Offset
	c.shards[st.Shard].Inspect(func(s *shard.State) {
		if l, ok := s.Log(base.LogID{Stream: st.ID, Partition: p}); ok {
			start, head = l.Start(), l.Head()
		}
	})
	switch why := out.Logs[0].Rejected; why {
	case shard.Accepted, shard.TrimmedAlready:
		return start, nil
	case shard.BeyondHead:
		return 0, fmt.Errorf("stream %s: trimming partition %d to %d: it ends at %d: %w", st.Name, p, to, head, base.ErrInvalid)
	default:
		return 0, fmt.Errorf("stream %s: trimming partition %d: %w", st.Name, p, refusal(why))
	}
}

// Fence closes partitions for appends, for a reason that those who append are told;
// Unfence opens them again. No partitions means all that the stream has. That one is
// fenced already, for whatever reason, is no error.
func (c *Catalog) Fence(ctx context.Context, st Stream, reason string, partitions ...base.Partition) error {
	if reason == "" || len(reason) > maxReasonBytes {
		return fmt.Errorf("stream %s: fencing: want a reason of 1 to %d bytes: %w", st.Name, maxReasonBytes, base.ErrInvalid)
	}
	list, err := c.partitions(st, partitions)
	if err != nil {
		return err
	}
	return c.setFence(ctx, st, &commitpb.LogFence{Stream: uint64(st.ID), Partition: list, Reason: reason})
}

// maxReasonBytes bounds the reason of a fence.
const maxReasonBytes = 1024

// Unfence undoes Fence.
func (c *Catalog) Unfence(ctx context.Context, st Stream, partitions ...base.Partition) error {
	list, err := c.partitions(st, partitions)
	if err != nil {
		return err
	}
	return c.setFence(ctx, st, &commitpb.LogUnfence{Stream: uint64(st.ID), Partition: list})
}

func (c *Catalog) setFence(ctx context.Context, st Stream, record commitrecord.Payload) error {
	out, err := c.publish(ctx, st, record)
	if err != nil {
		return err
	}
	for _, l := range out.Logs {
		if l.Rejected != shard.Accepted && l.Rejected != shard.AlreadyPublished {
			return fmt.Errorf("stream %s: partition %d: %w", st.Name, l.Log.Partition, refusal(l.Rejected))
		}
	}
	return nil
}

// partitions returns the chosen partitions, or all of a stream.
func (c *Catalog) partitions(st Stream, chosen []base.Partition) ([]uint32, error) {
	now, err := c.Refresh(st)
	if err != nil {
		return nil, err
	}
	var list []uint32
	for _, p := range chosen {
		if p < 0 || int(p) >= now.Partitions {
			return nil, fmt.Errorf("stream %s: partition %d: it has %d: %w", st.Name, p, now.Partitions, base.ErrNotFound)
		}
		list = append(list, uint32(p))
	}
	for p := range now.Partitions {
		if len(chosen) == 0 {
			list = append(list, uint32(p))
		}
	}
	return list, nil
}
