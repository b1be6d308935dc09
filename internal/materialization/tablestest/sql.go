package tablestest

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	sqlcatalog "github.com/apache/iceberg-go/catalog/sql"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver that OpenSQLAdmin names

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// SQLAdmin is another user of a SQLite catalog: the library as it comes, on a
// connection of its own.
type SQLAdmin struct {
	Catalog catalog.Catalog
	ctx     context.Context // a test's, for the whole of it
}

// OpenSQLAdmin opens the catalog in a SQLite file, under the default name, with
// further properties where there are any.
func OpenSQLAdmin(t testing.TB, path, warehouse string, further ...iceberg.Properties) *SQLAdmin {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	properties := iceberg.Properties{}
	for _, p := range further {
		maps.Copy(properties, p)
	}
	properties["warehouse"] = warehouse
	opened, err := sqlcatalog.NewCatalog("default", db, sqlcatalog.SQLite, properties)
	require.NoError(t, err)
	return &SQLAdmin{Catalog: opened, ctx: t.Context()}
}

// Append implements Admin.
func (a *SQLAdmin) Append(ident materialization.Ident, files ...materialization.DataFile) error {
	paths := make([]string, len(files))
	for i, file := range files {
		paths[i] = file.Path
	}
	return a.Change(ident, func(tx *table.Transaction, _ *table.Table) error {
		return tx.AddFiles(a.ctx, paths, nil, false)
	})
}

// Rollback implements Admin.
func (a *SQLAdmin) Rollback(ident materialization.Ident, steps int) error {
	return a.Change(ident, func(tx *table.Transaction, loaded *table.Table) error {
		snapshot := loaded.CurrentSnapshot()
		for range steps {
			if snapshot.ParentSnapshotID == nil {
				return fmt.Errorf("%w: no snapshot %d steps back", base.ErrInvalid, steps)
			}
			snapshot = loaded.SnapshotByID(*snapshot.ParentSnapshotID)
		}
		return tx.RollbackToSnapshot(snapshot.SnapshotID)
	})
}

// Drop implements Admin.
func (a *SQLAdmin) Drop(ident materialization.Ident) error {
	return a.Catalog.DropTable(a.ctx, table.Identifier{ident.Namespace, ident.Name})
}

// Strip implements Admin.
func (a *SQLAdmin) Strip(ident materialization.Ident, keys ...string) error {
	return a.Change(ident, func(tx *table.Transaction, _ *table.Table) error {
		return tx.RemoveProperties(keys)
	})
}

// Change commits what do puts into a transaction on the table's current state.
func (a *SQLAdmin) Change(ident materialization.Ident, do func(*table.Transaction, *table.Table) error) error {
	loaded, err := a.Catalog.LoadTable(a.ctx, table.Identifier{ident.Namespace, ident.Name})
	if err != nil {
		return err
	}
	tx := loaded.NewTransaction()
	if err := do(tx, loaded); err != nil {
		return err
	}
	_, err = tx.Commit(a.ctx)
	return err
}
