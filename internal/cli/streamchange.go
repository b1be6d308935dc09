package cli

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

// maxSettings bounds the KEY=VALUE arguments of one command.
const maxSettings = 1000

// streamChange is what a command that changes a stream did.
type streamChange struct {
	Stream     string            `json:"stream"`
	Partitions int               `json:"partitions"`
	Settings   map[string]string `json:"settings"`
}

func (in *invocation) printStreamChange(s *engine.Stream, did string) error {
	info, err := s.Info()
	if err != nil {
		return err
	}
	result := streamChange{
		Stream: s.Name(), Partitions: info.Partitions, Settings: settingsMap(info.Settings, info.Properties),
	}
	return in.print(result, func(p *page) {
		p.linef("stream %s %s", s.Name(), did)
		p.pairs(append([]string{"partitions", number(info.Partitions)}, settingsOf(info.Settings, info.Properties)...)...)
	})
}

func (a app) streamCreate() *ucli.Command {
	var partitions int
	var retention string
	return a.command(spec{
		name: "create", usage: "Create a stream, and its namespace", args: "STREAM [KEY=VALUE...]", min: 1, max: maxSettings,
		description: "A stream that exists and is what is asked for is no error. " + settingsHelp(),
		flags: []ucli.Flag{
			&ucli.IntFlag{Name: "partitions", Destination: &partitions, Value: 1, Usage: "the number of its logs, `N`"},
			&ucli.StringFlag{Name: "retention", Destination: &retention, Usage: "how long records are kept, `TIME`: short for retention.time=TIME"},
		},
		run: func(ctx context.Context, in *invocation) error {
			args := in.args[1:]
			if retention != "" {
				args = append(args, "retention.time="+retention)
			}
			assignments, err := parseAssignments(args)
			if err != nil {
				return err
			}
			settings, properties := engine.Settings{}, make(map[string]string)
			if err := applySettings(assignments, &settings); err != nil {
				return err
			}
			cfg := engine.StreamConfig{Partitions: partitions, Table: settings.Table, Retention: settings.Retention}
			if applyProperties(assignments, properties) {
				cfg.Properties = properties
			}
			if partitions < 1 {
				return usagef("--partitions %d: want 1 or more", partitions)
			}
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				s, err := e.CreateStream(ctx, in.args[0], cfg)
				if err != nil {
					return hint(err, engine.ErrAlreadyExists, "stream set and stream grow change it")
				}
				return in.printStreamChange(s, "is there")
			})
		},
	})
}

func (a app) streamSet() *ucli.Command {
	return a.command(spec{
		name: "set", usage: "Change the settings and properties of a stream", args: "STREAM KEY=VALUE...", min: 2, max: maxSettings,
		description: settingsHelp(),
		run: func(ctx context.Context, in *invocation) error {
			assignments, err := parseAssignments(in.args[1:])
			if err != nil {
				return err
			}
			if err := applySettings(assignments, &engine.Settings{}); err != nil {
				return err
			}
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				s, err := findStream(e, in.args[0])
				if err != nil {
					return err
				}
				if err := s.Update(ctx, func(settings *engine.Settings) error { return applySettings(assignments, settings) }); err != nil {
					return err
				}
				if err := setProperties(ctx, s, assignments); err != nil {
					return err
				}
				return in.printStreamChange(s, "was changed")
			})
		},
	})
}

// maxPropertyTries bounds how often properties are set again after someone else's
// change.
const maxPropertyTries = 16

// setProperties changes some properties of a stream, as the next revision of all.
func setProperties(ctx context.Context, s *engine.Stream, assignments []assignment) error {
	for range maxPropertyTries {
		info, err := s.Info()
		if err != nil {
			return err
		}
		properties := maps.Clone(info.Properties)
		if properties == nil {
			properties = make(map[string]string)
		}
		if !applyProperties(assignments, properties) || maps.Equal(properties, info.Properties) {
			return nil
		}
		replaced, err := s.ReplaceProperties(ctx, properties, info.PropertiesSource+1)
		if replaced || err != nil {
			return err
		}
	}
	return fmt.Errorf("stream %s: others keep changing its properties: %w", s.Name(), engine.ErrConflict)
}

func (a app) streamGrow() *ucli.Command {
	return a.command(spec{
		name: "grow", usage: "Give a stream more partitions", args: "STREAM N", min: 2, max: 2,
		description: "A stream never shrinks. Keys may go to other partitions afterwards.",
		run: func(ctx context.Context, in *invocation) error {
			partitions, err := strconv.Atoi(in.args[1])
			if err != nil || partitions < 1 {
				return usagef("%q: want a number of partitions", in.args[1])
			}
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				s, err := findStream(e, in.args[0])
				if err != nil {
					return err
				}
				if err := s.IncreasePartitions(ctx, partitions); err != nil {
					return err
				}
				return in.printStreamChange(s, "has them")
			})
		},
	})
}

// deletion is what a command that deletes did.
type deletion struct {
	Name    string `json:"name"`
	Deleted bool   `json:"deleted"`
	Purged  bool   `json:"purged"`
}

func (a app) streamDelete() *ucli.Command {
	var yes, purge bool
	return a.command(spec{
		name: "delete", usage: "Delete a stream, for ever", args: "STREAM", min: 1, max: 1,
		description: "The name is never used again. Without --purge the data is kept until the command is given again with it; stream ls --deleted shows what is kept. The stream's table stays.",
		flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "purge", Destination: &purge, Usage: "give up the data too"},
			&ucli.BoolFlag{Name: "yes", Destination: &yes, Usage: "do not ask"},
		},
		run: func(ctx context.Context, in *invocation) error {
			name, err := engine.ParseStreamName(in.args[0])
			if err != nil {
				return err
			}
			if !yes {
				question := fmt.Sprintf("stream delete ends stream %s for ever.", name)
				if purge {
					question = fmt.Sprintf("stream delete ends stream %s and its data for ever.", name)
				}
				if err := in.confirm(question); err != nil {
					return err
				}
			}
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				dropped, err := e.DropStream(ctx, name, purge)
				if err != nil {
					return err
				}
				return in.print(deletion{Name: name, Deleted: dropped, Purged: dropped && purge}, func(p *page) {
					switch {
					case !dropped:
						p.linef("stream %s: there was nothing to delete", name)
					case purge:
						p.linef("stream %s and its data were deleted", name)
					default:
						p.linef("stream %s was deleted; its data is kept", name)
						p.linef("next: stream delete %s --purge gives up the data", name)
					}
				})
			})
		},
	})
}
