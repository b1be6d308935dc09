package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

// recoverTimeout is the default of --timeout: a large archive takes its time.
const recoverTimeout = 30 * time.Minute

func (a app) recover() *ucli.Command {
	var yes, dryRun bool
	return a.command(spec{
		name: "recover", usage: "Rebuild lost coordination from checkpoints and the commit archive", timeout: recoverTimeout,
		description: "For a cluster whose NATS data is gone and whose object store is there. Stop every instance first. " +
			"Records that were accepted after the newest archived one, seconds before the loss, are gone; the output says up to when. " +
			"Exit code 3: a part could not be recovered, or a table is ahead of its log.",
		flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "dry-run", Destination: &dryRun, Usage: "tell what would be recovered and change nothing"},
			&ucli.BoolFlag{Name: "yes", Destination: &yes, Usage: "do not ask"},
		},
		run: func(ctx context.Context, in *invocation) error {
			if !yes && !dryRun {
				if err := in.confirm("recover makes the commit logs anew; records that were not archived are given up."); err != nil {
					return err
				}
			}
			opts, err := in.options()
			if err != nil {
				return err
			}
			ctx, cancel := in.bounded(ctx)
			defer cancel()
			report, err := engine.Recover(ctx, opts, engine.RecoverOptions{
				DryRun: dryRun, Progress: func(text string) { in.note("%s", text) },
			})
			if report == nil {
				return err
			}
			err = errors.Join(err, in.print(report, func(p *page) { writeRecovery(p, report) }))
			if err == nil && !report.Whole {
				err = fmt.Errorf("%w: not everything could be recovered", errCheck)
			}
			return err
		},
	})
}

func writeRecovery(p *page, r *engine.RecoverReport) {
	what := "recovered"
	if r.DryRun {
		what = "would recover"
	}
	p.linef("%s cluster %s", what, r.Cluster)
	p.linef("")
	rows := make([][]string, len(r.Shards))
	for i, s := range r.Shards {
		until, first := stamp(s.LastRecord), number(s.First)
		switch {
		case s.Lost:
			until, first = "LOST", ""
		case s.Revision == 0:
			until, first = "empty", ""
		}
		rows[i] = []string{s.Shard, number(s.Revision), until, first, number(s.Segments), number(s.Writers), number(s.BeyondObjects)}
	}
	p.table([]string{"SHARD", "REVISION#", "RECORDS UNTIL", "GOES ON AT#", "SEGMENTS#", "WRITERS CLOSED#", "WAL OBJECTS BEYOND#"}, rows)
	for _, s := range r.Shards {
		writeRecoveredShard(p, &s)
	}
	for _, f := range r.Ahead {
		p.linef("")
		p.linef("%s:%d is fenced: its table ends at offset %d, the log at %d", f.Stream, f.Partition, f.TableEnd, f.Head)
		p.linef("next: %s", f.NextAction)
	}
	p.linef("")
	p.linef("positions of consumer groups are not archived: groups begin at their start_offset")
}

func writeRecoveredShard(p *page, s *engine.RecoverShard) {
	if s.MissingFrom > 0 {
		p.linef("%s: the archive lacks revision %d, although later ones are there", s.Shard, s.MissingFrom)
	}
	for _, damage := range s.Damaged {
		p.linef("%s: damaged: %s", s.Shard, damage)
	}
	if s.BeyondObjects == 0 {
		return
	}
	p.linef("%s: %d WAL objects (%s) are named by no archived record; some may hold acknowledged records. "+
		"Copy them before garbage collection deletes them:", s.Shard, s.BeyondObjects, size(s.BeyondBytes))
	for _, key := range s.Beyond {
		p.linef("  %s", key)
	}
}
