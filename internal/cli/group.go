package cli

import (
	"context"
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

func (a app) groupList() *ucli.Command {
	return a.command(spec{
		name: "ls", usage: "List consumer groups",
		run: func(ctx context.Context, in *invocation) error {
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				groups, err := e.Groups(ctx)
				if err != nil {
					return err
				}
				return in.print(groups, func(p *page) { writeGroups(p, groups) })
			})
		},
	})
}

func (a app) groupDescribe() *ucli.Command {
	return a.command(spec{
		name: "describe", usage: "Show a consumer group, its members, and how far it is in each partition", args: "GROUP", min: 1, max: 1,
		run: func(ctx context.Context, in *invocation) error {
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				g, err := e.Group(ctx, in.args[0])
				if err != nil {
					return noGroup(err)
				}
				return in.print(g, func(p *page) { writeGroup(p, &g) })
			})
		},
	})
}

// groupResult is what a command did to a group.
type groupResult struct {
	Group string `json:"group"`
	// Deleted says that it is gone, Moved how many partitions go on elsewhere.
	Deleted bool `json:"deleted,omitempty"`
	Moved   int  `json:"moved,omitempty"`
}

func (a app) groupDelete() *ucli.Command {
	var yes bool
	return a.command(spec{
		name: "delete", usage: "Delete a consumer group that has no members, and what it has committed", args: "GROUP", min: 1, max: 1,
		flags: []ucli.Flag{&ucli.BoolFlag{Name: "yes", Destination: &yes, Usage: "do not ask"}},
		run: func(ctx context.Context, in *invocation) error {
			if !yes {
				if err := in.confirm(fmt.Sprintf("group delete forgets how far group %s is.", in.args[0])); err != nil {
					return err
				}
			}
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				if err := e.DeleteGroup(ctx, in.args[0]); err != nil {
					return noGroup(err)
				}
				return in.print(groupResult{Group: in.args[0], Deleted: true}, func(p *page) { p.linef("group %s was deleted", in.args[0]) })
			})
		},
	})
}

func (a app) groupSeek() *ucli.Command {
	var yes bool
	var to string
	return a.command(spec{
		name: "seek", usage: "Make a consumer group that has no members go on elsewhere", args: "GROUP", min: 1, max: 1,
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "to", Destination: &to, Usage: "`POSITION`: earliest, latest, an offset, or @ and a time, as @2026-11-01T00:00:00Z or @-1h"},
			&ucli.BoolFlag{Name: "yes", Destination: &yes, Usage: "do not ask"},
		},
		run: func(ctx context.Context, in *invocation) error {
			position, err := engine.ParsePosition(to)
			if err != nil || position.Kind == engine.Committed {
				return usagef("seek: --to %q: want earliest, latest, an offset, @ and a time (RFC 3339 or milliseconds), or @-1h for a time ago", to)
			}
			if !yes {
				if err := in.confirm(fmt.Sprintf("group seek makes group %s go on at %s: it reads again, or skips, what lies between.", in.args[0], to)); err != nil {
					return err
				}
			}
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				moved, err := e.SeekGroup(ctx, in.args[0], position)
				if err != nil {
					return noGroup(err)
				}
				return in.print(groupResult{Group: in.args[0], Moved: moved}, func(p *page) {
					p.linef("group %s goes on at %s in %s", in.args[0], to, plural(moved, "partition"))
				})
			})
		},
	})
}

// noGroup says where to look when there is no group of a name.
func noGroup(err error) error {
	return hint(err, engine.ErrNotFound, "group ls shows those that are")
}

func writeGroups(p *page, groups []engine.GroupStatus) {
	if len(groups) == 0 {
		p.linef("no consumer groups yet")
		return
	}
	rows := make([][]string, len(groups))
	for i, g := range groups {
		rows[i] = []string{g.Name, g.State, number(len(g.Members)), number(len(g.Partitions)), number(g.Lag), number(g.Stuck)}
	}
	p.table([]string{"GROUP", "STATE", "MEMBERS#", "PARTITIONS#", "LAG#", "STUCK#"}, rows)
}

func writeGroup(p *page, g *engine.GroupStatus) {
	p.pairs("group", g.Name, "state", g.State, "generation", number(g.Generation), "lag", plural(g.Lag, "record"))
	p.linef("")
	members := make([][]string, len(g.Members))
	for i, m := range g.Members {
		state := "live"
		if !m.Live {
			state = "gone"
		}
		members[i] = []string{m.Name, m.Host, state, number(m.Partitions)}
	}
	p.table([]string{"MEMBER", "HOST", "STATE", "PARTITIONS#"}, members)
	p.linef("")
	rows := make([][]string, len(g.Partitions))
	for i, s := range g.Partitions {
		committed, stuck := "-", ""
		if s.Committed != nil {
			committed = number(*s.Committed)
		}
		if s.Stuck {
			stuck = "stuck"
		}
		rows[i] = []string{s.Stream, number(s.Partition), s.Member, committed, number(s.Head), number(s.Lag), stuck}
	}
	p.table([]string{"STREAM", "PARTITION#", "MEMBER", "COMMITTED#", "HEAD#", "LAG#", ""}, rows)
}
