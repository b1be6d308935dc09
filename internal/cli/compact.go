package cli

import (
	"context"
	"errors"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

func (a app) compact() *ucli.Command {
	var once bool
	return a.command(spec{
		name: "compact", usage: "Compact logs and fill tables without a pipeline",
		description: "Works off what the logs hold now. It may run beside pipelines: what both do counts once. Exit code 4 says that a table could not take everything yet.",
		flags:       []ucli.Flag{&ucli.BoolFlag{Name: "once", Destination: &once, Usage: "end when nothing is left to do"}},
		timeout:     10 * time.Minute,
		run: func(ctx context.Context, in *invocation) error {
			if !once {
				return usagef("compact: want --once")
			}
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				done, err := e.Compact(ctx)
				if err != nil && !errors.Is(err, engine.ErrTablesBehind) {
					return err
				}
				return errors.Join(err, in.print(done, func(p *page) { writeCompaction(p, done) }))
			})
		},
	})
}

func writeCompaction(p *page, done engine.Compacted) {
	if done.Passes == 0 {
		p.linef("nothing was left to compact")
		return
	}
	p.linef("compacted %s of objects in %s, rewriting %s", size(done.ReadBytes), plural(done.Passes, "pass"), plural(done.Logs, "log"))
}
