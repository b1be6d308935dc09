package plugin

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

// partition is one log to read.
type partition struct {
	stream *engine.Stream
	number engine.Partition
	log    *engine.Log // used by the partition's reader alone
	from   engine.Offset
	end    engine.Offset // where to stop; endless to go on
}

// endless is the end of a partition that is followed as it grows.
const endless engine.Offset = -1

// partitions resolves what the configuration selects to logs and offsets.
func (in *input) partitions(ctx context.Context, streams []*engine.Stream) ([]*partition, error) {
	var parts []*partition
	for i, selection := range in.conf.Streams {
		s := streams[i]
		first, last := selection.First, selection.Last
		if selection.All {
			first, last = 0, engine.Partition(s.Partitions()-1) //nolint:gosec // at most MaxPartitions
		}
		start := in.conf.Start
		if selection.Start != nil {
			start = *selection.Start
		}
		for number := first; number <= last; number++ {
			p, err := in.partition(ctx, s, number, start)
			if err != nil {
				return nil, fmt.Errorf("streams: %w", err)
			}
			parts = append(parts, p)
		}
	}
	return parts, nil
}

func (in *input) partition(ctx context.Context, s *engine.Stream, number engine.Partition, start config.Position) (*partition, error) {
	log, err := s.Log(number)
	if err != nil {
		return nil, err
	}
	first, head, err := log.Bounds()
	if err != nil {
		return nil, err
	}
	p := &partition{stream: s, number: number, log: log, end: endless}
	if in.conf.StopAtEnd {
		p.end = head
	}
	switch start.Kind {
	case config.Earliest:
		p.from = first
	case config.Latest:
		p.from = head
	case config.AtOffset:
		p.from = start.Offset
		if p.from > head {
			return nil, fmt.Errorf("start offset %d of partition %d of %s, which ends at %d: %w", p.from, number, s.Name(), head, engine.ErrInvalid)
		}
	case config.AtTime:
		p.from, err = log.OffsetAt(ctx, start.Time)
	case config.Ago:
		p.from, err = log.OffsetAt(ctx, in.clock.Now().Add(-start.Ago))
	}
	p.from = max(p.from, first)
	return p, err
}

// label tells a partition in the log.
func (p *partition) label() slog.Attr {
	return slog.Group("", slog.String("stream", p.stream.Name()), slog.Int("partition", int(p.number)))
}
