package cli

import (
	"context"
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

// resetResult is what table reset did.
type resetResult struct {
	Table  string `json:"table"`
	Stream string `json:"stream"`
	Reset  bool   `json:"reset"`
}

func (a app) tableReset() *ucli.Command {
	var yes bool
	return a.command(spec{
		name: "reset", usage: "Forget a table that is gone, and fill a new one from the log", args: "TABLE", min: 1, max: 1,
		description: "The table and its dead-letter table must be gone from the catalog: drop or rename them first. The new one holds what the log still holds.",
		flags:       []ucli.Flag{&ucli.BoolFlag{Name: "yes", Destination: &yes, Usage: "do not ask"}},
		run: func(ctx context.Context, in *invocation) error {
			if !yes {
				if err := in.confirm(fmt.Sprintf("table reset forgets what table %s held.", in.args[0])); err != nil {
					return err
				}
			}
			return in.withTable(ctx, func(ctx context.Context, _ *engine.Engine, t *engine.Table) error {
				if err := t.Reset(ctx); err != nil {
					return err
				}
				result := resetResult{Table: t.Name(), Stream: t.Stream(), Reset: true}
				return in.print(result, func(p *page) {
					p.linef("table %s was forgotten", t.Name())
					p.linef("next: run a pipeline, or compact --once, to fill a new one from stream %s", t.Stream())
				})
			})
		},
	})
}
