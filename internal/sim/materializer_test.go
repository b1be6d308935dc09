package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/materialization/prepare"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
	"github.com/lakestream-go/lakestream/internal/materialization/tablestest"
)

func newMaterializer(w *world) compaction.Materializer {
	if w.config.realTables {
		return realMaterializer{w}
	}
	return plainMaterializer{w}
}

func requestIdents(r *compaction.TableRequest) (main, dead materialization.Ident) {
	return materialization.Ident{Namespace: r.Table.Namespace, Name: r.Table.Name},
		materialization.Ident{Namespace: r.Table.Namespace, Name: r.Table.DeadLetterName()}
}

// realMaterializer prepares files as production does.
type realMaterializer struct{ world *world }

func (m realMaterializer) Prepare(ctx context.Context, r compaction.TableRequest) ([]materialization.Prepared, error) {
	main, dead := requestIdents(&r)
	request := prepare.Request{
		Owner: compaction.TableOwner(r.Cluster, r.Shard, r.Stream), Main: main, DeadLetter: dead,
		System: schema.DefaultSystemColumns(), FilePrefix: fmt.Sprintf("%s-%d-%d", r.Shard, r.Writer, r.Seq), Clock: m.world.clock,
	}
	for _, s := range r.Sources {
		request.Sources = append(request.Sources, prepare.Source{Log: s.Log, Records: s.Source})
	}
	return prepare.Prepare(ctx, m.world.tables, request)
}

// plainMaterializer prepares files of text, each line of which is a partition and
// an offset. It also leaves records out, which production does not do yet.
type plainMaterializer struct{ world *world }

func (m plainMaterializer) Prepare(ctx context.Context, r compaction.TableRequest) ([]materialization.Prepared, error) {
	main, dead := requestIdents(&r)
	mainTable, err := m.table(ctx, &r, main, commit.RoleMain)
	if err != nil {
		return nil, err
	}
	var all []materialization.Prepared
	for _, s := range r.Sources {
		rows, err := m.sort(s)
		if err != nil {
			return nil, err
		}
		p := materialization.Prepared{
			Log: s.Log, Range: s.Source.Range(), TableUUID: mainTable.UUID, SchemaID: mainTable.Schema.ID,
			Filtered: int64(len(rows[leftOut])),
		}
		if p.Main, err = m.write(ctx, &r, mainTable, &p, rows[inTable]); err != nil {
			return nil, err
		}
		if len(rows[deadLetter]) > 0 {
			deadTable, err := m.table(ctx, &r, dead, commit.RoleDeadLetter)
			if err != nil {
				return nil, err
			}
			p.DeadLetterUUID = deadTable.UUID
			if p.DeadLetter, err = m.write(ctx, &r, deadTable, &p, rows[deadLetter]); err != nil {
				return nil, err
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// sort tells the records of a source apart by what becomes of them.
func (m plainMaterializer) sort(s compaction.TableSource) (map[verdict][]base.Offset, error) {
	rows := make(map[verdict][]base.Offset)
	next := s.Source.Range().Start
	err := s.Source.Each(func(p *recordbatch.Positioned) error {
		if p.Offset != next {
			return fmt.Errorf("offset %d where %d should be: %w", p.Offset, next, base.ErrCorrupt)
		}
		next++
		v := m.world.oracle.verdictOf(p.Value)
		rows[v] = append(rows[v], p.Offset)
		return nil
	})
	if err == nil && next != s.Source.Range().End {
		err = fmt.Errorf("the source ends at offset %d: %w", next, base.ErrCorrupt)
	}
	return rows, err
}

// table loads a table, or creates it.
func (m plainMaterializer) table(ctx context.Context, r *compaction.TableRequest, ident materialization.Ident, role string) (*materialization.Table, error) {
	tables := m.world.tables
	loaded, err := tables.Load(ctx, ident)
	if !errors.Is(err, base.ErrNotFound) {
		return loaded, err
	}
	_, err = tables.Create(ctx, ident, tablestest.Schema(), map[string]string{
		materialization.PropertyOwner: compaction.TableOwner(r.Cluster, r.Shard, r.Stream),
		materialization.PropertyRole:  role,
	})
	if err != nil && !errors.Is(err, base.ErrExists) {
		return nil, err
	}
	return tables.Load(ctx, ident)
}

// write makes one file of rows, or none when there are none.
func (m plainMaterializer) write(ctx context.Context, r *compaction.TableRequest, table *materialization.Table, p *materialization.Prepared, rows []base.Offset) ([]materialization.DataFile, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	path := fmt.Sprintf("%s/data/%d-%d-%s-%d-%d.txt", table.Location, r.Writer, r.Seq, p.Log, p.Range.Start, p.Range.End)
	file, err := m.world.tables.CreateFile(ctx, path)
	if err != nil {
		return nil, err
	}
	var text []byte
	for _, offset := range rows {
		text = fmt.Appendf(text, "%d %d\n", p.Log.Partition, offset)
	}
	if _, err := file.Write(text); err != nil {
		return nil, err
	}
	return []materialization.DataFile{{Path: path, Size: int64(len(text)), Rows: int64(len(rows))}}, file.Close()
}
