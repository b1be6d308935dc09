package cli

import (
	"context"
	"errors"
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

// tableEntry is a table in a list.
type tableEntry struct {
	engine.TableStatus

	Stream string `json:"stream"`
}

// tableDescription is a table with its columns.
type tableDescription struct {
	tableEntry

	Columns []engine.Column `json:"columns"`
}

func (a app) tableList() *ucli.Command {
	return a.command(spec{
		name: "ls", usage: "List tables",
		run: func(ctx context.Context, in *invocation) error {
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				tables := []tableEntry{}
				for _, s := range e.Status(ctx).Streams {
					if s.Table == nil {
						continue
					}
					tables = append(tables, tableEntry{TableStatus: *s.Table, Stream: s.Name})
					if s.Table.DeadLetterTable != nil {
						tables = append(tables, tableEntry{TableStatus: deadLetters(s.Table), Stream: s.Name})
					}
				}
				return in.print(tables, func(p *page) { writeTables(p, tables) })
			})
		},
	})
}

// deadLetters shows the dead-letter table of a table as one in its own right.
func deadLetters(t *engine.TableStatus) engine.TableStatus {
	shown := engine.TableStatus{Name: t.Name, State: t.State, Reason: t.Reason, NextAction: t.NextAction, Behind: t.Behind}
	if d := t.DeadLetterTable; d != nil {
		shown.Name, shown.Snapshot, shown.Rows = d.Name, d.Snapshot, d.Rows
		shown.UUID, shown.Location, shown.Metadata = d.UUID, d.Location, d.Metadata
	}
	return shown
}

func writeTables(p *page, tables []tableEntry) {
	if len(tables) == 0 {
		p.linef("no tables yet")
		return
	}
	rows := make([][]string, len(tables))
	for i, t := range tables {
		rows[i] = []string{t.Name, t.Stream, t.State, number(t.Rows), number(t.DeadLetters), number(t.Behind)}
	}
	p.table([]string{"TABLE", "STREAM", "STATE", "ROWS#", "DEAD LETTERS#", "BEHIND#"}, rows)
}

func (a app) tableDescribe() *ucli.Command {
	return a.command(spec{
		name: "describe", usage: "Show a table and its columns", args: "TABLE", min: 1, max: 1,
		run: func(ctx context.Context, in *invocation) error {
			return in.withTable(ctx, func(ctx context.Context, e *engine.Engine, t *engine.Table) error {
				stream, err := streamStatus(ctx, e, t.Stream())
				if err != nil {
					return err
				}
				if stream.Table == nil {
					return fmt.Errorf("table %s: it was switched off just now: %w", t.Name(), engine.ErrNotFound)
				}
				columns, err := t.Columns(ctx)
				if err != nil && !errors.Is(err, engine.ErrNotFound) {
					return err
				}
				if columns == nil {
					columns = []engine.Column{} // it was not created yet
				}
				d := tableDescription{tableEntry: tableEntry{TableStatus: *stream.Table, Stream: stream.Name}, Columns: columns}
				if t.IsDeadLetters() {
					d.TableStatus = deadLetters(stream.Table)
					d.Name = t.Name() // also before it is created
				}
				return in.print(d, func(p *page) { writeTable(p, &d) })
			})
		},
	})
}

func writeTable(p *page, t *tableDescription) {
	p.pairs(
		"table", t.Name, "stream", t.Stream, "state", t.State, "reason", t.Reason, "next", t.NextAction,
		"rows", number(t.Rows), "dead letters", number(t.DeadLetters), "behind", plural(t.Behind, "record"),
		"snapshot", number(t.Snapshot), "location", t.Location, "metadata", t.Metadata,
	)
	if len(t.Columns) == 0 {
		p.linef("\nit is created with its first record")
		return
	}
	p.linef("")
	rows := make([][]string, len(t.Columns))
	for i, c := range t.Columns {
		rows[i] = []string{c.Name, c.Type}
		if c.Required {
			rows[i][1] += " required"
		}
	}
	p.table([]string{"COLUMN", "TYPE"}, rows)
}

// withTable opens the engine for the table that the first argument names.
func (in *invocation) withTable(ctx context.Context, do func(context.Context, *engine.Engine, *engine.Table) error) error {
	return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
		table, err := e.Table(in.args[0])
		if errors.Is(err, engine.ErrNotFound) {
			return fmt.Errorf("%w; table ls shows those that are", err)
		}
		if err != nil {
			return err
		}
		return do(ctx, e, table)
	})
}

// streamStatus returns the status of one stream by its full name.
func streamStatus(ctx context.Context, e *engine.Engine, name string) (engine.StreamStatus, error) {
	for _, s := range e.Status(ctx).Streams {
		if s.Name == name {
			return s, nil
		}
	}
	return engine.StreamStatus{}, fmt.Errorf("stream %s: %w", name, engine.ErrNotFound)
}
