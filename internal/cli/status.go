package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

// watchEvery is how often status --watch looks again.
const watchEvery = 2 * time.Second

func (a app) status() *ucli.Command {
	var check, watch bool
	return a.command(spec{
		name: "status", usage: "Show streams, tables, instances, and what is wrong",
		flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "check", Destination: &check, Usage: "exit with 3 unless everything is healthy"},
			&ucli.BoolFlag{Name: "watch", Destination: &watch, Usage: "look again every 2 seconds until interrupted"},
		},
		run: func(ctx context.Context, in *invocation) error {
			switch {
			case watch && check:
				return usagef("status: --check ends at once and --watch does not: give one of them")
			case watch:
				return in.watchStatus(ctx)
			}
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				status, err := in.printStatus(ctx, e, false)
				if err == nil && check && len(status.Problems) > 0 {
					err = fmt.Errorf("%w: %s", errCheck, plural(len(status.Problems), "problem"))
				}
				return err
			})
		},
	})
}

// clearScreen makes room for the next look where a person watches.
func (in *invocation) clearScreen() {
	if file, ok := in.stdout.(*os.File); ok && isTerminal(file) && !in.common.json {
		_, _ = io.WriteString(file, "\x1b[H\x1b[2J") // the print that follows returns the error
	}
}

func (in *invocation) printStatus(ctx context.Context, e *engine.Engine, redraw bool) (engine.Status, error) {
	status := e.Status(ctx)
	if err := ctx.Err(); err != nil {
		return status, fmt.Errorf("looking at everything: %w", err)
	}
	if redraw {
		in.clearScreen()
	}
	return status, in.print(status, func(p *page) { writeStatus(p, &status) })
}

// watchStatus prints the status again and again. --timeout bounds each look.
func (in *invocation) watchStatus(ctx context.Context) error {
	each := *in
	in.common = &commonFlags{config: in.common.config, dataDir: in.common.dataDir, json: in.common.json}
	err := in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
		for {
			looking, cancel := each.bounded(ctx)
			_, err := in.printStatus(looking, e, true)
			cancel()
			if err != nil {
				return err
			}
			select {
			case <-in.app.clock.After(watchEvery):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	if errors.Is(err, context.Canceled) {
		return nil // that is how watching ends
	}
	return err
}

func writeStatus(p *page, status *engine.Status) {
	p.pairs(
		"time", status.Time.Format(time.RFC3339),
		"cluster", fmt.Sprintf("%s, %s", status.Cluster, plural(len(status.Shards), "shard")),
		"coordination", status.Coordination,
		"objects", status.Storage,
		"holding", describeObjects(status.Shards),
		"history", describeHistory(status),
		"catalog", status.Catalog,
		"warehouse", status.Warehouse,
		"instances", countMembers(status),
		"fold version", describeFold(status.FoldVersion),
	)
	writeMembers(p, status.Members)
	p.linef("")
	writeStreams(p, status.Streams)
	writeDeadLetters(p, status.Streams)
	if len(status.Groups) > 0 {
		p.linef("")
		writeGroups(p, status.Groups)
	}
	p.linef("")
	writeHealth(p, status)
}

// describeObjects says what the object store holds and how fast objects come.
// describeHistory says what a lost commit log could be rebuilt from.
func describeHistory(status *engine.Status) string {
	var lag uint64
	var oldest time.Time
	without := 0
	for _, s := range status.Shards {
		if s.History == nil {
			return "not known"
		}
		lag += s.History.Lag
		switch {
		case s.History.Checkpoint == 0:
			without++
		case oldest.IsZero() || s.History.CheckpointTime.Before(oldest):
			oldest = s.History.CheckpointTime
		}
	}
	text := fmt.Sprintf("%d commit records not archived", lag)
	if without < len(status.Shards) {
		text += ", oldest checkpoint of " + stamp(oldest)
	}
	if without > 0 {
		text += fmt.Sprintf(", no checkpoint of %s yet", plural(without, "shard"))
	}
	return text
}

func describeObjects(shards []engine.ShardStatus) string {
	var all engine.ShardStatus
	for _, s := range shards {
		all.Objects += s.Objects
		all.Dead += s.Dead
		all.ObjectBytes += s.ObjectBytes
		all.DeadBytes += s.DeadBytes
		all.PutsPerSecond += s.PutsPerSecond
	}
	return fmt.Sprintf("%s in %s, %s in %d that nothing needs, %.1f puts a second",
		size(all.ObjectBytes), plural(all.Objects, "object"), size(all.DeadBytes), all.Dead, all.PutsPerSecond)
}

func writeStreams(p *page, streams []engine.StreamStatus) {
	if len(streams) == 0 {
		p.linef("no streams yet")
		return
	}
	rows := make([][]string, len(streams))
	for i, s := range streams {
		row := []string{s.Name, number(s.Partitions), number(s.Records), size(s.Bytes), "-", "", "", "", ""}
		if t := s.Table; t != nil {
			copy(row[4:], []string{t.Name, t.State, number(t.Rows), number(t.DeadLetters), number(t.Behind)})
		}
		rows[i] = row
	}
	p.table([]string{"STREAM", "PARTITIONS#", "RECORDS#", "SIZE#", "TABLE", "STATE", "ROWS#", "DEAD LETTERS#", "BEHIND#"}, rows)
}

// maxDeadLetterTables bounds the dead-letter tables that a status points to.
const maxDeadLetterTables = 10

// writeDeadLetters says where the records are that could not become rows.
func writeDeadLetters(p *page, streams []engine.StreamStatus) {
	found := 0
	for _, s := range streams {
		if s.Table == nil || s.Table.DeadLetters == 0 {
			continue
		}
		if found++; found == 1 {
			p.linef("")
		}
		if found <= maxDeadLetterTables {
			p.linef("%s of %s: see lakestream table head %s", plural(s.Table.DeadLetters, "dead letter"), s.Table.Name, s.Table.DeadLetterTable.Name)
		}
	}
	if found > maxDeadLetterTables {
		p.linef("and %s with dead letters: see table ls", plural(found-maxDeadLetterTables, "more table"))
	}
}

// writeHealth says what is wrong and what to do next.
func writeHealth(p *page, status *engine.Status) {
	for _, problem := range status.Problems {
		p.linef("! %s: %s", problem.What, problem.Reason)
		if problem.NextAction != "" {
			p.linef("  next: %s", problem.NextAction)
		}
	}
	if len(status.Problems) > 0 {
		return
	}
	var behind int64
	for _, s := range status.Streams {
		if s.Table != nil {
			behind += s.Table.Behind
		}
	}
	switch {
	case behind == 0:
		p.linef("healthy")
	case len(status.Instances) == 0:
		p.linef("healthy; tables are %s behind and no instance is running", plural(behind, "record"))
		p.linef("next: run a pipeline, or compact --once")
	default:
		p.linef("healthy; tables are %s behind and catch up", plural(behind, "record"))
	}
}

func plural[T int | int64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
