package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/prepare"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// errTableReplaced says that the table is not the one that the stream was bound
// to. Only a person knows which of the two is meant.
var errTableReplaced = errors.New("it is not the table that the stream fills")

// materializer lets a compaction pass prepare table files.
type materializer struct {
	view   *shard.View
	tables materialization.Tables
	clock  base.Clock
	crash  func(name string)
}

func (m materializer) Prepare(ctx context.Context, r compaction.TableRequest) ([]materialization.Prepared, error) {
	system, err := schema.ParseSystemColumns(r.Table.SystemColumns)
	if err != nil {
		return nil, err
	}
	main, dead := tableIdents(r.Table)
	owner := compaction.TableOwner(r.Cluster, r.Shard, r.Stream)
	if err := m.checkBinding(ctx, r.Stream, owner, main); err != nil {
		return nil, err
	}
	request := prepare.Request{
		Owner: owner, Main: main, DeadLetter: dead, System: system,
		FilePrefix: fmt.Sprintf("%s-%d-%d", r.Shard, r.Writer, r.Seq), Clock: m.clock, CrashPoint: m.crash,
	}
	for _, s := range r.Sources {
		request.Sources = append(request.Sources, prepare.Source{Log: s.Log, Records: s.Source})
	}
	return prepare.Prepare(ctx, m.tables, request)
}

// checkBinding refuses a table that was dropped or replaced before anything is
// written for it: what takes its place must be asked for.
func (m materializer) checkBinding(ctx context.Context, stream base.StreamID, owner string, main materialization.Ident) error {
	bound := ""
	m.view.Inspect(func(s *shard.State) {
		if found, ok := s.Stream(stream); ok {
			bound = found.Table.UUID
		}
	})
	if bound == "" {
		return nil
	}
	table, err := m.tables.Load(ctx, main)
	switch {
	case errors.Is(err, base.ErrNotFound):
		return fmt.Errorf("%w: it is not in the catalog: it was dropped or renamed, or another catalog is configured: %w", errTableReplaced, base.ErrConflict)
	case err != nil:
		return err
	case table.UUID != bound:
		return fmt.Errorf("%w: it was replaced: its uuid is %s, not %s: %w", errTableReplaced, table.UUID, bound, base.ErrConflict)
	case table.Properties[materialization.PropertyOwner] != owner:
		return fmt.Errorf("%w: its property %s was changed or removed: %w", errTableReplaced, materialization.PropertyOwner, base.ErrConflict)
	}
	return nil
}

func tableIdents(t catalog.Table) (main, dead materialization.Ident) {
	return materialization.Ident{Namespace: t.Namespace, Name: t.Name},
		materialization.Ident{Namespace: t.Namespace, Name: t.DeadLetterName()}
}
