package plugin

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

// origin is where the partitions stood that existed when the input connected.
type origin struct {
	// heads are their ends then.
	heads map[engine.Place]engine.Offset
	// positions are where to begin in each without a commit of the group.
	positions map[engine.Place]engine.Position
}

// survey looks at every partition that is selected, and refuses a place to begin
// that does not exist. What a group will find committed is not known yet.
func (in *input) survey(ctx context.Context) (*origin, error) {
	o := &origin{heads: make(map[engine.Place]engine.Offset), positions: make(map[engine.Place]engine.Position)}
	e := in.connection.engine
	for _, s := range e.Streams() {
		for _, selection := range in.conf.Streams {
			if selection.Matches(s.Name()) {
				if err := in.surveyStream(ctx, o, s, selection); err != nil {
					return nil, fmt.Errorf("streams: %w", err)
				}
				if selection.All {
					break
				}
			}
		}
	}
	return o, nil
}

func (in *input) surveyStream(ctx context.Context, o *origin, s *engine.Stream, selection config.Selection) error {
	first, last := selection.First, selection.Last
	if selection.All {
		first, last = 0, engine.Partition(s.Partitions()-1) //nolint:gosec // at most MaxPartitions
	}
	position := in.conf.Start
	if selection.Start != nil {
		position = *selection.Start
	}
	position = position.Fixed(in.clock.Now())
	for number := first; number <= last; number++ {
		log, err := s.Log(number)
		if err != nil {
			return err
		}
		_, head, err := log.Bounds()
		if err != nil {
			return err
		}
		place := s.Place(number)
		o.heads[place], o.positions[place] = head, position
		if in.conf.Group.Group != "" {
			continue
		}
		at, err := log.Resolve(ctx, position)
		if err != nil {
			return fmt.Errorf("start offset in %s: %w", place, err)
		}
		o.positions[place] = engine.Position{Kind: engine.AtOffset, Offset: at}
	}
	return nil
}

// start returns where to begin in a partition without a commit. One that came later
// is read from its first record: all of it was appended since.
func (o *origin) start(ctx context.Context, log *engine.Log, place engine.Place) (engine.Offset, error) {
	position, known := o.positions[place]
	switch {
	case !known:
		position = engine.Position{Kind: engine.Earliest}
	case position.Kind == engine.Latest: // what was appended since is not skipped
		position = engine.Position{Kind: engine.AtOffset, Offset: o.heads[place]}
	case position.Kind == engine.Committed:
		return 0, fmt.Errorf("%s has no commit of the group any more: choose another start_offset: %w", place, engine.ErrInvalid)
	}
	return log.Resolve(ctx, position)
}

// refuseUncommitted looks whether the group has committed in every partition, where
// it shall begin nowhere else.
func (in *input) refuseUncommitted(ctx context.Context, subscription *engine.Subscription, o *origin) error {
	for place, position := range o.positions {
		if position.Kind != engine.Committed {
			continue
		}
		_, committed, err := subscription.Committed(ctx, place)
		if err != nil {
			return err
		}
		if !committed {
			return fmt.Errorf("start_offset committed: group %s has committed nothing in %s: choose another start_offset: %w",
				in.conf.Group.Group, place, engine.ErrInvalid)
		}
	}
	return nil
}

// label tells a partition in the log.
func label(place engine.Place) slog.Attr {
	return slog.Group("", slog.String("stream", place.Stream.Name.String()), slog.Int("partition", int(place.Partition)))
}
