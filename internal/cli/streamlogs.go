package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

const wantTrim = "want an offset, or @ and a time (RFC 3339 or milliseconds), or @-1h for a time ago"

// parseLog reads STREAM:P or, where a partition may be left out, STREAM.
func parseLog(text string) (stream string, partition *engine.Partition, err error) {
	stream, number, found := strings.Cut(text, ":")
	if !found {
		return stream, nil, nil
	}
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 0 {
		return "", nil, usagef("%q: want STREAM:PARTITION", text)
	}
	p := engine.Partition(n)
	return stream, &p, nil
}

// parseTrim reads where to trim a log: an offset, or a time.
func parseTrim(text string, now time.Time) (engine.Position, error) {
	to, err := engine.ParsePosition(text)
	to = to.Fixed(now)
	if err != nil || to.Kind != engine.AtOffset && to.Kind != engine.AtTime {
		return engine.Position{}, usagef("%q: %s", text, wantTrim)
	}
	return to, nil
}

// trimmed is what stream trim did.
type trimmed struct {
	Stream    string           `json:"stream"`
	Partition engine.Partition `json:"partition"`
	Start     engine.Offset    `json:"start"`
	Hard      bool             `json:"hard"`
}

func (a app) streamTrim() *ucli.Command {
	var yes, hard bool
	return a.command(spec{
		name: "trim", usage: "Hide the records of a partition before an offset or a time", args: "STREAM:PARTITION OFFSET|@TIME", min: 2, max: 2,
		description: "With --hard they are given up, and those that a table lacks will be missing there. Times are those of appending: " + wantTrim + ".",
		flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "hard", Destination: &hard, Usage: "give the records up"},
			&ucli.BoolFlag{Name: "yes", Destination: &yes, Usage: "do not ask"},
		},
		run: func(ctx context.Context, in *invocation) error {
			name, partition, err := parseLog(in.args[0])
			if err != nil {
				return err
			}
			if partition == nil {
				return usagef("%q: want STREAM:PARTITION", in.args[0])
			}
			to, err := parseTrim(in.args[1], a.clock.Now())
			if err != nil {
				return err
			}
			if !yes {
				if err := in.confirm(fmt.Sprintf("stream trim takes the records of %s before %s away from readers.", in.args[0], in.args[1])); err != nil {
					return err
				}
			}
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				s, err := findStream(e, name)
				if err != nil {
					return err
				}
				return in.trim(ctx, s, *partition, to, hard)
			})
		},
	})
}

func (in *invocation) trim(ctx context.Context, s *engine.Stream, p engine.Partition, to engine.Position, hard bool) (err error) {
	result := trimmed{Stream: s.Name(), Partition: p, Hard: hard}
	if to.Kind == engine.AtTime {
		result.Start, err = s.TrimBefore(ctx, p, to.Time, hard)
	} else {
		result.Start, err = s.Trim(ctx, p, to.Offset, hard)
	}
	if err != nil {
		return err
	}
	return in.print(result, func(page *page) {
		page.linef("partition %d of stream %s begins at offset %d", p, s.Name(), result.Start)
	})
}

// fenced is what stream fence and unfence did.
type fenced struct {
	Stream    string            `json:"stream"`
	Partition *engine.Partition `json:"partition,omitempty"`
	Fenced    bool              `json:"fenced"`
	Reason    string            `json:"reason,omitempty"`
}

func (a app) streamFence() *ucli.Command {
	var yes bool
	var reason string
	return a.command(spec{
		name: "fence", usage: "Close a stream, or one partition, for appends", args: "STREAM[:PARTITION]", min: 1, max: 1,
		description: "Pipelines that write to it are refused, and told the reason, until stream unfence.",
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "reason", Destination: &reason, Value: "fenced by an operator", Usage: "what those who append are told, `TEXT`"},
			&ucli.BoolFlag{Name: "yes", Destination: &yes, Usage: "do not ask"},
		},
		run: func(ctx context.Context, in *invocation) error {
			if !yes {
				if err := in.confirm(fmt.Sprintf("stream fence makes every append to %s fail.", in.args[0])); err != nil {
					return err
				}
			}
			return in.fence(ctx, reason, func(ctx context.Context, s *engine.Stream, partitions ...engine.Partition) error {
				return s.Fence(ctx, reason, partitions...)
			})
		},
	})
}

func (a app) streamUnfence() *ucli.Command {
	return a.command(spec{
		name: "unfence", usage: "Open a stream, or one partition, for appends again", args: "STREAM[:PARTITION]", min: 1, max: 1,
		run: func(ctx context.Context, in *invocation) error {
			return in.fence(ctx, "", func(ctx context.Context, s *engine.Stream, partitions ...engine.Partition) error {
				return s.Unfence(ctx, partitions...)
			})
		},
	})
}

// fence changes the fence of what the argument names; no reason lifts it.
func (in *invocation) fence(ctx context.Context, reason string, change func(context.Context, *engine.Stream, ...engine.Partition) error) error {
	name, partition, err := parseLog(in.args[0])
	if err != nil {
		return err
	}
	var partitions []engine.Partition
	if partition != nil {
		partitions = append(partitions, *partition)
	}
	return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
		s, err := findStream(e, name)
		if err != nil {
			return err
		}
		if err := change(ctx, s, partitions...); err != nil {
			return err
		}
		result := fenced{Stream: s.Name(), Partition: partition, Fenced: reason != "", Reason: reason}
		return in.print(result, func(p *page) {
			what := "stream " + s.Name()
			if partition != nil {
				what = fmt.Sprintf("partition %d of %s", *partition, what)
			}
			if reason == "" {
				p.linef("%s takes appends", what)
				return
			}
			p.linef("%s takes no appends: %s", what, reason)
		})
	})
}
