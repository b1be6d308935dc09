// Package icebergtables implements the table seam over Iceberg catalogs.
//
// A Tables never retries a commit and never hides one: each change is one
// catalog transaction that asserts what it was built on, and each error tells
// whether the change is known not to have happened (base.ErrConflict,
// base.ErrUnavailable, base.ErrNotFound) or may have (base.ErrUnknown).
//
// Files under file:// are durable, with each directory entry that leads to them,
// before anything names them, which the library's own local file system does
// not promise; Open replaces it for the whole process.
//
// To add a kind of catalog, open it in Open and teach classify its errors, then
// run the acceptance suite of package tablestest over it.
package icebergtables

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// DefaultName is the name under which a SQL catalog keeps its tables. A reader
// of the same database must use the same name; PyIceberg's load_catalog() does
// when it is called without one.
const DefaultName = "default"

// Config says where a catalog is.
type Config struct {
	// Type is the kind of catalog: sql.
	Type string
	// Name distinguishes catalogs in one database; DefaultName when empty.
	Name string
	// URI is the address: for sql the path of a SQLite file, plain or as
	// sqlite:///path, made on demand and readable by its owner only.
	URI string
	// Warehouse is the location under which tables are created, as a URL:
	// file:///path, mem://name, or one below StoreLocation.
	Warehouse string
	// Store, where set, keeps the files whose locations lie below StoreLocation,
	// such as s3://bucket/prefix. The caller closes it, after the catalog.
	Store         blob.Store
	StoreLocation string
	// Properties are further Iceberg catalog properties.
	Properties map[string]string
}

// Tables is a catalog of Iceberg tables. It is safe for concurrent use, also by
// several processes on one catalog.
type Tables struct {
	catalog    catalog.Catalog
	properties iceberg.Properties
	close      io.Closer
	store      string // the value of propertyStore, or empty
}

var (
	_ materialization.Tables  = (*Tables)(nil)
	_ materialization.Scanner = (*Tables)(nil)
)

// Open opens a catalog, creating what it keeps its state in when absent. A
// configuration that cannot work is base.ErrInvalid. The caller closes it.
func Open(ctx context.Context, config Config) (*Tables, error) {
	if config.Warehouse == "" {
		return nil, fmt.Errorf("%w: catalog warehouse is empty: want a URL such as file:///data/warehouse", base.ErrInvalid)
	}
	registerDurableFiles()
	config.Properties = maps.Clone(config.Properties)
	id := ""
	if config.Store != nil {
		if config.Properties == nil {
			config.Properties = make(map[string]string, 1)
		}
		id = addStore(config.Store, config.StoreLocation)
		config.Properties[propertyStore] = id
	}
	opened, err := openType(ctx, config)
	if err != nil {
		stores.Delete(id)
		return nil, err
	}
	opened.store = id
	return opened, nil
}

func openType(ctx context.Context, config Config) (*Tables, error) {
	switch config.Type {
	case "sql":
		return openSQL(ctx, config)
	default:
		return nil, fmt.Errorf("%w: catalog type %q: want sql", base.ErrInvalid, config.Type)
	}
}

// Close releases the catalog. Calls under way may fail.
func (t *Tables) Close() error {
	stores.Delete(t.store)
	return t.close.Close()
}

// Load implements materialization.Tables.
func (t *Tables) Load(ctx context.Context, ident materialization.Ident) (*materialization.Table, error) {
	loaded, err := t.catalog.LoadTable(ctx, identifier(ident))
	if err != nil {
		return nil, fmt.Errorf("loading table %s: %w", ident, classifyRead(err))
	}
	return view(ident, loaded), nil
}

func identifier(ident materialization.Ident) table.Identifier {
	return table.Identifier{ident.Namespace, ident.Name}
}

// view shows a table of the library as the engine sees one.
func view(ident materialization.Ident, loaded *table.Table) *materialization.Table {
	metadata := loaded.Metadata()
	shown := &materialization.Table{
		Ident:            ident,
		UUID:             metadata.TableUUID().String(),
		Location:         loaded.Location(),
		Schema:           loaded.Schema(),
		LastColumnID:     metadata.LastColumnID(),
		SpecID:           metadata.DefaultPartitionSpec(),
		Properties:       maps.Clone(map[string]string(loaded.Properties())),
		Metadata:         loaded.MetadataLocation(),
		AncestryComplete: true,
		Handle:           loaded,
	}
	head := loaded.CurrentSnapshot()
	if head == nil {
		return shown
	}
	shown.Head = head.SnapshotID
	if head.Summary != nil {
		shown.Rows, _ = strconv.ParseInt(head.Summary.Properties["total-records"], 10, 64)
	}
	ancestors, complete := table.AncestorsOfChecked(head.SnapshotID, metadata.SnapshotByID)
	shown.AncestryComplete = complete
	for _, ancestor := range ancestors {
		if ancestor.Summary == nil {
			continue
		}
		if id := ancestor.Summary.Properties[materialization.PropertyCommitID]; id != "" {
			shown.CommitIDs = append(shown.CommitIDs, id)
		}
	}
	return shown
}

// handle returns the library's table behind a table that this package loaded.
func handle(shown *materialization.Table) (*table.Table, error) {
	loaded, ok := shown.Handle.(*table.Table)
	if !ok {
		return nil, fmt.Errorf("%w: table %s was loaded from another catalog", base.ErrInvalid, shown.Ident)
	}
	return loaded, nil
}
