package prepare

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/iceberg-go"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

// Values of materialization.PropertyRole.
const (
	roleMain       = "main"
	roleDeadLetter = "dead-letter"
)

// maxEvolveAttempts bounds how often others may change a table first.
const maxEvolveAttempts = 16

// load reads a table and makes sure that it is ours to fill.
func (p *preparer) load(ctx context.Context, ident materialization.Ident, role string) (*materialization.Table, error) {
	table, err := p.tables.Load(ctx, ident)
	if err != nil {
		return nil, fmt.Errorf("loading table %s: %w", ident, err)
	}
	owner, hasRole := table.Properties[materialization.PropertyOwner], table.Properties[materialization.PropertyRole]
	switch {
	case owner == "" && table.Head == 0:
		return table, nil
	case owner == "":
		return nil, fmt.Errorf("%w: table %s holds rows that no stream wrote: choose another table name, or drop the table",
			base.ErrForeign, ident)
	case owner != p.request.Owner:
		return nil, fmt.Errorf("%w: table %s is filled by another stream (%s, not %s): choose another table name, or drop the table",
			base.ErrForeign, ident, owner, p.request.Owner)
	case hasRole != "" && hasRole != role:
		return nil, fmt.Errorf("%w: table %s is the stream's %s table: choose another name for its %s table",
			base.ErrInvalid, ident, hasRole, role)
	default:
		return table, nil
	}
}

// create makes a table of ours, or loads the one that someone else made first.
func (p *preparer) create(ctx context.Context, ident materialization.Ident, role string, columns *iceberg.Schema) (*materialization.Table, error) {
	_, err := p.tables.Create(ctx, ident, columns, map[string]string{
		materialization.PropertyOwner: p.request.Owner,
		materialization.PropertyRole:  role,
	})
	if err != nil && !errors.Is(err, base.ErrExists) && !errors.Is(err, base.ErrUnknown) {
		return nil, fmt.Errorf("creating table %s: %w", ident, err)
	}
	created, loadErr := p.load(ctx, ident, role)
	if errors.Is(loadErr, base.ErrNotFound) && err != nil {
		return nil, fmt.Errorf("creating table %s: %w", ident, err)
	}
	return created, loadErr
}

// land makes sure that the table, which is nil when there is none, has a column
// for all that was inferred, and returns it as it landed. When someone else
// evolves it first, it unions again with what they made of it.
func (p *preparer) land(ctx context.Context, table *materialization.Table, inferred *schema.Inference) (*materialization.Table, error) {
	var err error
	if table == nil {
		table, err = p.create(ctx, p.request.Main, roleMain, schema.New(p.request.System, inferred))
		if err != nil {
			return nil, err
		}
	}
	for range maxEvolveAttempts {
		union, changed, err := schema.Union(table.Schema, table.LastColumnID, p.request.System, inferred)
		if err != nil {
			return nil, fmt.Errorf("evolving table %s: %w", table.Ident, err)
		}
		if !changed {
			return table, nil
		}
		if table, err = p.evolve(ctx, table, union); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("evolving table %s: %w: %d times in a row", table.Ident, base.ErrConflict, maxEvolveAttempts)
}

// evolve tries to replace the schema and returns the table as it is afterwards.
func (p *preparer) evolve(ctx context.Context, table *materialization.Table, union *iceberg.Schema) (*materialization.Table, error) {
	_, err := p.tables.Evolve(ctx, table, union)
	if err != nil && !errors.Is(err, base.ErrConflict) && !errors.Is(err, base.ErrUnknown) {
		return nil, fmt.Errorf("evolving table %s: %w", table.Ident, err)
	}
	after, err := p.load(ctx, table.Ident, roleMain)
	if err != nil {
		return nil, err
	}
	if after.UUID != table.UUID {
		return nil, fmt.Errorf("evolving table %s: %w: it was dropped and created again", table.Ident, base.ErrConflict)
	}
	return after, nil
}

// deadLetter returns the dead-letter table, which it creates when absent.
func (p *preparer) deadLetter(ctx context.Context) (*materialization.Table, error) {
	if p.dead != nil {
		return p.dead, nil
	}
	ident := p.request.DeadLetter
	table, err := p.load(ctx, ident, roleDeadLetter)
	if errors.Is(err, base.ErrNotFound) {
		table, err = p.create(ctx, ident, roleDeadLetter, schema.DeadLetter())
	}
	if err != nil {
		return nil, err
	}
	if !schema.Fits(table.Schema, schema.DeadLetter()) {
		return nil, fmt.Errorf("%w: table %s lacks columns of a dead-letter table: choose another name, or drop the table",
			base.ErrInvalid, ident)
	}
	p.dead = table
	return table, nil
}
