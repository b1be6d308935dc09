package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// checkAhead returns an error when a fenced partition's table ends beyond its log: a
// recovery lost records that the table holds. Appends would give their offsets again,
// and the table would pass over what comes there. A log that takes appends is not
// looked at: its table may be ahead of what this view has seen so far, while the head
// of one whose fence was seen is final.
func (e *Engine) checkAhead(ctx context.Context, info catalog.Stream, chosen ...Partition) error {
	fenced := make(map[base.Partition]base.Offset)
	e.shards[info.Shard].view.Inspect(func(state *shard.State) {
		stream, ok := state.Stream(info.ID)
		if !ok {
			return
		}
		for _, l := range stream.Logs {
			if p := l.ID().Partition; l.Fence() != "" && (len(chosen) == 0 || slices.Contains(chosen, p)) {
				fenced[p] = l.Head()
			}
		}
	})
	if len(fenced) == 0 || !info.Table.Enabled && info.TableUUID == "" {
		return nil
	}
	main, dead := tableIdents(info.Table)
	ends, err := furthestEnds(ctx, e.tables, main, dead)
	if err != nil {
		return fmt.Errorf("stream %s: comparing its table with the log: %w", info.Name, err)
	}
	var ahead []error
	for _, p := range slices.Sorted(maps.Keys(fenced)) {
		if head := fenced[p]; ends[p] > head {
			ahead = append(ahead, fmt.Errorf("stream %s: partition %d ends at offset %d in its table, at %d in the log: %w",
				info.Name, p, ends[p], head, ErrTableAhead))
		}
	}
	return errors.Join(ahead...)
}

// aheadAction says what to do about a table that is ahead of its log.
func aheadAction(stream string) string {
	return "the table holds records that the log lost: read them from the table, then drop or rename it, " +
		"run lakestream table reset, and lakestream stream unfence " + stream
}
