package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

func (a app) tableVerify() *ucli.Command {
	var wait time.Duration
	var complete bool
	return a.command(spec{
		name: "verify", usage: "Prove that a table holds each record exactly once", args: "TABLE", min: 1, max: 1,
		description: "The proof covers what the log says is in the table; the rest is counted. Exit code 3 says that the table does not hold each record once, or with --complete that there is a rest.",
		flags: []ucli.Flag{
			&ucli.DurationFlag{Name: "wait", Destination: &wait, Usage: "first wait up to `DURATION` until the table holds what the log holds now"},
			&ucli.BoolFlag{Name: "complete", Destination: &complete, Usage: "fail when a part of the log is not in the table yet"},
		},
		timeout: 5 * time.Minute,
		run: func(ctx context.Context, in *invocation) error {
			if wait < 0 {
				return usagef("verify: --wait %s: want 0 or more", wait)
			}
			if in.common.timeout > 0 {
				in.common.timeout += wait
			}
			return in.withTable(ctx, func(ctx context.Context, _ *engine.Engine, t *engine.Table) error {
				if err := in.awaitTable(ctx, t, wait); err != nil {
					return err
				}
				return in.verify(ctx, t, complete)
			})
		},
	})
}

// awaitTable waits until the table has caught up, or the time for it is over.
func (in *invocation) awaitTable(ctx context.Context, t *engine.Table, wait time.Duration) error {
	behind := t.Lag()
	if wait == 0 || behind == 0 {
		return nil
	}
	in.note("waiting up to %s for %s to reach table %s", wait, plural(behind, "record"), t.Name())
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := t.WaitCaughtUp(waiting)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil // the proof says what is lacking
	}
	return err
}

func (in *invocation) verify(ctx context.Context, t *engine.Table, complete bool) error {
	report, err := t.Verify(ctx)
	if errors.Is(err, engine.ErrNotFound) && t.Lag() > 0 {
		missing := fmt.Errorf("table %s does not exist yet, %s of the log lie ahead: %w", t.Name(), plural(t.Lag(), "record"), err)
		if complete {
			return fmt.Errorf("%w: %w", engine.ErrIncomplete, missing)
		}
		return missing
	}
	if err != nil {
		return err
	}
	if err := in.print(report, func(p *page) { writeReport(p, report) }); err != nil {
		return err
	}
	if complete {
		return report.Complete()
	}
	return report.Proven()
}

func writeReport(p *page, r *engine.VerifyReport) {
	rows := make([][]string, len(r.Partitions))
	for i, v := range r.Partitions {
		rows[i] = []string{
			number(v.Partition), fmt.Sprintf("%d-%d", v.Start, v.Materialized), number(v.Rows), number(v.DeadLetters), number(v.LeftOut),
			number(v.Missing), number(v.Duplicated), number(v.Unexpected), number(v.Rest),
		}
	}
	p.pairs("table", r.Table, "snapshot", number(r.SnapshotID), "dead letters", r.DeadLetterTable)
	p.linef("")
	p.table([]string{"PARTITION#", "OFFSETS", "ROWS#", "DEAD LETTERS#", "LEFT OUT#", "MISSING#", "DUPLICATED#", "UNEXPECTED#", "REST#"}, rows)
	p.linef("")
	for _, f := range r.Findings {
		where := ""
		if f.Table != "" {
			where = " in " + f.Table
		}
		p.linef("! %s: partition %d, offsets %d to %d%s", f.Kind, f.Partition, f.Start, f.End-1, where)
	}
	switch {
	case !r.OK:
		p.linef("NOT PROVEN: the table does not hold each record exactly once")
		p.linef("next: see the findings; table reset fills a new table from the log")
	case r.Rest > 0:
		p.linef("proven: each record is there exactly once, up to the offsets above; %s of the log are still to come", plural(r.Rest, "record"))
		p.linef("next: wait with --wait while a pipeline runs, or compact --once")
	default:
		p.linef("proven: each record of the log is there exactly once")
	}
}
