package engine

import (
	"context"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/prepare"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

// materializer lets a compaction pass prepare table files.
type materializer struct {
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
	request := prepare.Request{
		Owner: compaction.TableOwner(r.Cluster, r.Shard, r.Stream), Main: main, DeadLetter: dead, System: system,
		FilePrefix: fmt.Sprintf("%s-%d-%d", r.Shard, r.Writer, r.Seq), Clock: m.clock, CrashPoint: m.crash,
	}
	for _, s := range r.Sources {
		request.Sources = append(request.Sources, prepare.Source{Log: s.Log, Records: s.Source})
	}
	return prepare.Prepare(ctx, m.tables, request)
}

func tableIdents(t catalog.Table) (main, dead materialization.Ident) {
	return materialization.Ident{Namespace: t.Namespace, Name: t.Name},
		materialization.Ident{Namespace: t.Namespace, Name: t.DeadLetterName()}
}
