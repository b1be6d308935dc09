package cli

import (
	"context"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

func (a app) gc() *ucli.Command {
	var opts engine.CollectOptions
	return a.command(spec{
		name: "gc", usage: "Give up old records and the objects that nothing refers to",
		description: "Does once what a running pipeline does in the background: trims what retention gives up, and deletes uploads " +
			"that no record names. Objects that died only now wait ten minutes for their readers: a pipeline that runs for longer deletes " +
			"them, or --wait does where all pipelines are short.",
		flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "dry-run", Destination: &opts.DryRun, Usage: "change nothing, tell what would be given up"},
			&ucli.DurationFlag{Name: "wait", Destination: &opts.Wait, Usage: "go on for so long until nothing dead is left, say 30m"},
		},
		timeout: time.Hour,
		run: func(ctx context.Context, in *invocation) error {
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				opts.Progress = func(c engine.Collected) {
					in.note("%s left, deleted %d so far", plural(c.Dead, "dead object"), c.Deleted)
				}
				done, err := e.Collect(ctx, opts)
				if err != nil {
					return err
				}
				return in.print(done, func(p *page) { writeCollected(p, done, opts.DryRun) })
			})
		},
	})
}

func writeCollected(p *page, done engine.Collected, dryRun bool) {
	trims, deletes := "trimmed", "deleted"
	if dryRun {
		trims, deletes = "would trim", "would delete"
	}
	for _, t := range done.Trimmed {
		p.linef("%s partition %d of %s up to offset %d", trims, t.Partition, t.Stream, t.To)
	}
	for _, h := range done.Held {
		until := "until it has them"
		if h.Until != 0 {
			until = "until " + h.Until.Time().Format(time.RFC3339)
		}
		p.linef("partition %d of %s keeps %s for %s, %s", h.Partition, h.Stream, plural(h.Records, "record"), h.For, until)
	}
	if done.Skipped > 0 {
		p.linef("%s will never be in a table: trimmed before it had them", plural(done.Skipped, "record"))
	}
	p.linef("%s %s that no record names", deletes, plural(done.Orphans, "upload"))
	if done.Deleted > 0 {
		p.linef("deleted %s", plural(done.Deleted, "dead object"))
	}
	if done.Dead > 0 {
		p.linef("%s of %s left: a running pipeline, or gc --wait 30m, deletes them when their readers are done", plural(done.Dead, "dead object"), size(done.DeadBytes))
	}
}
