package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/verify"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Types of table operations.
type (
	// Row is one row of a table: each column's value as JSON.
	Row = materialization.Row
	// VerifyReport is the outcome of a proof.
	VerifyReport = verify.Report
)

// Errors of a proof.
var (
	// ErrNotProven says that a table does not hold each record exactly once.
	ErrNotProven = verify.ErrNotProven
	// ErrIncomplete says that a part of the log is not in the table yet.
	ErrIncomplete = verify.ErrIncomplete
)

// Table is the table that a stream fills, with its dead-letter table; or that
// dead-letter table itself, to be looked at. It is safe for concurrent use.
type Table struct {
	shard       *shardEngine
	stream      catalog.Stream
	deadLetters bool
}

// Table returns the stream's table, which may not exist in the catalog yet.
func (s *Stream) Table() *Table { return &Table{shard: s.shard, stream: s.info} }

// Table returns the table of this name (namespace.name), or ErrNotFound when no
// stream fills one. The name of a stream (namespace/name) serves as well, and a
// name alone is in the namespace "default". The name of a dead-letter table gives
// one that can be looked at, and neither verified nor reset.
func (e *Engine) Table(name string) (*Table, error) {
	wanted := []string{name}
	if !strings.ContainsAny(name, "./") {
		wanted = []string{base.DefaultNamespace + "." + name, base.DefaultNamespace + "/" + name}
	}
	for _, info := range e.catalog.List() {
		if !info.Table.Enabled {
			continue
		}
		main, dead := tableIdents(info.Table)
		isMain := slices.Contains(wanted, main.String()) || slices.Contains(wanted, info.Name.String())
		if isMain || slices.Contains(wanted, dead.String()) {
			return &Table{shard: e.shards[info.Shard], stream: info, deadLetters: !isMain}, nil
		}
	}
	return nil, fmt.Errorf("table %s: no stream fills it: %w", name, base.ErrNotFound)
}

// ident names the table that is looked at.
func (t *Table) ident() materialization.Ident {
	main, dead := tableIdents(t.stream.Table)
	if t.deadLetters {
		return dead
	}
	return main
}

// IsDeadLetters reports whether this is the dead-letter table of its stream.
func (t *Table) IsDeadLetters() bool { return t.deadLetters }

// Name returns the table's full name.
func (t *Table) Name() string { return t.ident().String() }

// Stream returns the name of the stream that fills the table.
func (t *Table) Stream() string { return t.stream.Name.String() }

// Column is one top-level column of a table.
type Column struct {
	Name string `json:"name"`
	// Type is the column's Iceberg type, as in list<string>.
	Type     string `json:"type"`
	Required bool   `json:"required"`
}

// Columns returns the columns of the table's current schema, in its order. A
// table that was not created yet is ErrNotFound.
func (t *Table) Columns(ctx context.Context) ([]Column, error) {
	loaded, err := t.shard.engine.tables.Load(ctx, t.ident())
	if err != nil {
		return nil, err
	}
	columns := []Column{}
	for _, f := range loaded.Schema.Fields() {
		columns = append(columns, Column{Name: f.Name, Type: f.Type.String(), Required: f.Required})
	}
	return columns, nil
}

// Head returns up to limit rows of the current snapshot, with the chosen top-level
// columns or all. A table that was not created yet is ErrNotFound, a column that
// it does not have ErrInvalid.
func (t *Table) Head(ctx context.Context, columns []string, limit int) ([]Row, error) {
	tables := t.shard.engine.tables
	loaded, err := tables.Load(ctx, t.ident())
	if errors.Is(err, base.ErrNotFound) {
		return nil, fmt.Errorf("table %s has no rows yet: %w", t.Name(), err)
	}
	if err != nil {
		return nil, err
	}
	if err := checkColumns(loaded, columns); err != nil {
		return nil, err
	}
	return materialization.Head(ctx, tables, loaded, columns, limit)
}

// maxColumnsNamed bounds what an error lists.
const maxColumnsNamed = 40

// checkColumns refuses a column that is none of the table's, which it lists.
func checkColumns(t *materialization.Table, columns []string) error {
	var names []string
	for _, f := range t.Schema.Fields() {
		names = append(names, f.Name)
	}
	for _, column := range columns {
		if slices.Contains(names, column) {
			continue
		}
		listed := strings.Join(names[:min(len(names), maxColumnsNamed)], ", ")
		if more := len(names) - maxColumnsNamed; more > 0 {
			listed += fmt.Sprintf(" and %d more", more)
		}
		return fmt.Errorf("%w: table %s has no column %q at the top: want one of %s", base.ErrInvalid, t.Ident, column, listed)
	}
	return nil
}

// Verify proves, up to the materialized end, that the table and its dead-letter
// table hold each record of the stream exactly once. The report says what was
// found; the error only that the proof could not be made.
func (t *Table) Verify(ctx context.Context) (*VerifyReport, error) {
	if err := t.mustBeMain("verify"); err != nil {
		return nil, err
	}
	logs, err := t.logs()
	if err != nil {
		return nil, err
	}
	tables := t.shard.engine.tables
	main, dead := tableIdents(t.stream.Table)
	loaded, err := tables.Load(ctx, main)
	if err != nil {
		return nil, fmt.Errorf("verifying: %w", err)
	}
	letters, err := tables.Load(ctx, dead)
	if err != nil && !errors.Is(err, base.ErrNotFound) {
		return nil, fmt.Errorf("verifying: %w", err)
	}
	return verify.Run(ctx, tables, verify.Input{Table: loaded, DeadLetter: letters, Logs: logs})
}

// mustBeMain refuses what can be done only with both tables of a stream.
func (t *Table) mustBeMain(action string) error {
	if !t.deadLetters {
		return nil
	}
	return fmt.Errorf("%w: %s is a dead-letter table: %s table %s, which includes it", base.ErrInvalid, t.Name(), action, t.stream.Table)
}

func (t *Table) logs() (logs []verify.Log, err error) {
	err = fmt.Errorf("stream %s: %w", t.Stream(), base.ErrNotFound)
	t.shard.view.Inspect(func(s *shard.State) {
		stream, ok := s.Stream(t.stream.ID)
		if !ok {
			return
		}
		err = nil
		for _, l := range stream.Logs {
			logs = append(logs, verify.Log{
				Partition: l.ID().Partition, Materialized: l.Materialized(), Head: l.Head(), LeftOut: l.LeftOut(),
			})
		}
	})
	return logs, err
}

// Lag returns how many records the log holds and the table does not.
func (t *Table) Lag() int64 {
	logs, err := t.logs()
	if err != nil {
		return 0
	}
	var lag int64
	for _, l := range logs {
		lag += int64(l.Head - l.Materialized)
	}
	return lag
}

// WaitCaughtUp blocks until the table holds what the log holds now, or ctx ends.
func (t *Table) WaitCaughtUp(ctx context.Context) error {
	logs, err := t.logs()
	if err != nil {
		return err
	}
	heads := make([]base.Offset, len(logs))
	for i, l := range logs {
		heads[i] = l.Head
	}
	return t.shard.view.WaitUntil(ctx, func(s *shard.State) bool {
		stream, ok := s.Stream(t.stream.ID)
		if !ok {
			return true
		}
		for i, l := range stream.Logs {
			if i < len(heads) && l.Materialized() < heads[i] {
				return false
			}
		}
		return true
	})
}

// Reset forgets the table that the stream was bound to, so that a new one is
// filled from the first live record on. The old table and its dead-letter table
// must be gone from the catalog, dropped or renamed: ErrExists otherwise, since
// what they hold would be doubled. A stream that was bound to none is ErrNotFound,
// one that is bound to another by now ErrConflict.
func (t *Table) Reset(ctx context.Context) error {
	if err := t.mustBeMain("reset"); err != nil {
		return err
	}
	if t.stream.TableUUID == "" {
		return fmt.Errorf("resetting table %s: nothing was prepared for it yet: %w", t.Name(), base.ErrNotFound)
	}
	main, dead := tableIdents(t.stream.Table)
	for _, ident := range []materialization.Ident{main, dead} {
		_, err := t.shard.engine.tables.Load(ctx, ident)
		if err == nil {
			return fmt.Errorf("table %s is still in the catalog: drop or rename it first: %w", ident, base.ErrExists)
		}
		if !errors.Is(err, base.ErrNotFound) {
			return fmt.Errorf("resetting table %s: %w", ident, err)
		}
	}
	out, err := t.shard.view.Publish(ctx, &commitpb.TableReset{Stream: uint64(t.stream.ID), TableUuid: t.stream.TableUUID})
	if err != nil {
		return fmt.Errorf("resetting table %s: %w", t.Name(), err)
	}
	if !out.OK() {
		return fmt.Errorf("resetting table %s: %s: %w", t.Name(), out.Rejected, base.ErrConflict)
	}
	return nil
}
