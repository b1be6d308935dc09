package gc

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// skipReason is why a table does not get records.
const skipReason = "trimmed before the table had them"

// trimRecords returns one record for each stream.
func trimRecords(trims []LogTrim) (records []*commitpb.Trim) {
	trims = slices.SortedFunc(slices.Values(trims), func(a, b LogTrim) int { return a.Log.Compare(b.Log) })
	for _, t := range trims {
		n := len(records)
		if n == 0 || records[n-1].GetStream() != uint64(t.Log.Stream) {
			records = append(records, &commitpb.Trim{Stream: uint64(t.Log.Stream), Hard: true})
			n++
		}
		r := records[n-1]
		r.Partition = append(r.Partition, uint32(t.Log.Partition)) //nolint:gosec // never negative
		r.Offset = append(r.Offset, uint64(t.To))                  //nolint:gosec // never negative
	}
	return records
}

func skipRecords(skips map[base.LogID]base.OffsetRange) (records []*commitpb.Skip) {
	for _, id := range slices.SortedFunc(maps.Keys(skips), base.LogID.Compare) {
		r := skips[id]
		records = append(records, &commitpb.Skip{
			Stream: uint64(id.Stream), Partition: uint32(id.Partition), //nolint:gosec // never negative
			Start: uint64(r.Start), End: uint64(r.End), Reason: skipReason, //nolint:gosec // never negative
		})
	}
	return records
}

func reclaimedRecord(keys []string) *commitpb.Reclaimed {
	return &commitpb.Reclaimed{Keys: slices.SortedFunc(slices.Values(keys), cmp.Compare[string])}
}

// rules collects what a round of retention goes by.
func (c *Collector) rules(ctx context.Context) (Rules, error) {
	var waiting []Stream
	c.opts.View.Inspect(func(s *shard.State) {
		for _, st := range s.Streams() {
			if keep, _ := c.opts.Resolve(st); keep.WaitForGroups {
				waiting = append(waiting, Stream{ID: st.ID, Name: st.Name})
			}
		}
	})
	consumed, err := c.opts.Consumed(ctx, waiting)
	if err != nil {
		return Rules{}, fmt.Errorf("asking how far consumer groups are: %w", err)
	}
	return Rules{
		Now: base.MillisOf(c.opts.Clock.Now()), Resolve: c.opts.Resolve, Consumed: consumed, Hidden: c.hiding.of,
	}, nil
}

// probe publishes a record that changes nothing, and returns its outcome.
func (c *Collector) probe(ctx context.Context) (shard.Outcome, error) {
	return c.opts.View.Publish(ctx, &commitpb.WriterFence{})
}

// nudge lets the log of a shard where nothing happens go on once in a grace, so that
// checkpoints are made that know what is dead.
func (c *Collector) nudge(ctx context.Context) error {
	now := c.opts.Clock.Now()
	if !c.nudged.IsZero() && now.Sub(c.nudged) < c.opts.Grace {
		return nil
	}
	c.nudged = now
	if _, err := c.probe(ctx); err != nil {
		return fmt.Errorf("asking for a checkpoint: %w", err)
	}
	return nil
}

// checkClock compares this machine's clock with the coordination store's, as it
// stamps a record.
func (c *Collector) checkClock(ctx context.Context) error {
	out, err := c.probe(ctx)
	if err != nil {
		return err
	}
	skew := c.opts.Clock.Now().Sub(out.Time.Time()).Round(time.Second)
	if skew.Abs() <= clockTolerance {
		c.skewed = 0
		return nil
	}
	if c.skewed == 0 {
		c.opts.Logger.Warn("nothing is trimmed by age while this machine's clock and the coordination store's differ",
			"difference", skew.String())
	}
	c.skewed = skew
	return nil
}

// Skew returns by how much this machine's clock is ahead of the coordination
// store's, while that keeps records from being trimmed by age; else 0.
func (c *Collector) Skew() time.Duration { return c.skewed }
