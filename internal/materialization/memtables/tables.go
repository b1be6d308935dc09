// Package memtables implements the table seam in memory, deterministically: the
// simulator and tests step an engine over it and replay a run exactly.
//
// Beyond the seam it offers what a test needs to be cruel: a hook that fails
// operations before or after their effect or holds them back, and what other
// users of a catalog do to a table (admin.go). It is not for production: nothing
// is durable.
package memtables

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/apache/iceberg-go"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// Tables is a catalog of tables and a file system in memory. It is safe for
// concurrent use.
type Tables struct {
	mu     sync.Mutex
	tables map[materialization.Ident]*state // guarded by mu
	files  map[string][]byte                // guarded by mu
	held   []func() error                   // guarded by mu
	hook   Hook                             // guarded by mu
	lastID int64                            // guarded by mu
}

var (
	_ materialization.Tables  = (*Tables)(nil)
	_ materialization.Scanner = (*Tables)(nil)
)

// New returns an empty catalog. Its identifiers come from a counter.
func New() *Tables {
	return &Tables{tables: map[materialization.Ident]*state{}, files: map[string][]byte{}}
}

// state is a table as the catalog holds it now.
type state struct {
	uuid         string
	schema       *iceberg.Schema
	lastColumnID int
	properties   map[string]string
	snapshots    map[int64]snapshot
	head         int64
}

// snapshot is what one commit added.
type snapshot struct {
	parent  int64
	summary map[string]string
	added   []materialization.DataFile
}

// version is what a loaded table was, for the assertions of a later change.
type version struct {
	uuid         string
	schema       *iceberg.Schema
	lastColumnID int
	head         int64
	// snapshots only grows; what an expiry keeps is another map.
	snapshots map[int64]snapshot
}

// files returns those of the head snapshot, oldest first. The catalog's lock
// must be held: commits add to the map.
func (v version) files() []materialization.DataFile {
	var files []materialization.DataFile
	for id := v.head; id != 0; {
		ancestor, found := v.snapshots[id]
		if !found {
			break
		}
		files = append(files, ancestor.added...)
		id = ancestor.parent
	}
	slices.Reverse(files)
	return files
}

// Load implements materialization.Tables.
func (t *Tables) Load(_ context.Context, ident materialization.Ident) (*materialization.Table, error) {
	var loaded *materialization.Table
	err := t.run(Op{Kind: OpLoad, Ident: ident}, func() error {
		table, err := t.find(ident)
		if err == nil {
			loaded = table.view(ident)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("loading table %s: %w", ident, err)
	}
	return loaded, nil
}

// Create implements materialization.Tables. The schema's field ids are assigned
// anew, from 1.
func (t *Tables) Create(_ context.Context, ident materialization.Ident, schema *iceberg.Schema, properties map[string]string) (*materialization.Table, error) {
	var created *materialization.Table
	err := t.run(Op{Kind: OpCreate, Ident: ident}, func() error {
		if _, found := t.tables[ident]; found {
			return base.ErrExists
		}
		fresh, err := iceberg.AssignFreshSchemaIDs(schema, nil)
		if err != nil {
			return base.WithClass(base.ErrInvalid, err)
		}
		table := &state{
			uuid:         fmt.Sprintf("00000000-0000-4000-8000-%012d", t.nextID()),
			schema:       fresh,
			lastColumnID: fresh.HighestFieldID(),
			properties:   maps.Clone(properties),
			snapshots:    map[int64]snapshot{},
		}
		t.tables[ident] = table
		created = table.view(ident)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("creating table %s: %w", ident, err)
	}
	return created, nil
}

// Evolve implements materialization.Tables.
func (t *Tables) Evolve(_ context.Context, shown *materialization.Table, schema *iceberg.Schema) (*materialization.Table, error) {
	before, err := loadedVersion(shown)
	if err != nil {
		return nil, err
	}
	if err := materialization.CheckEvolution(before.schema, before.lastColumnID, schema); err != nil {
		return nil, fmt.Errorf("evolving table %s: %w", shown.Ident, err)
	}
	var evolved *materialization.Table
	err = t.run(Op{Kind: OpEvolve, Ident: shown.Ident}, func() error {
		table, err := t.find(shown.Ident)
		if err != nil {
			return err
		}
		if table.uuid != before.uuid || table.schema.ID != before.schema.ID || table.lastColumnID != before.lastColumnID {
			return base.ErrConflict
		}
		if !table.schema.Equals(schema) {
			table.schema = iceberg.NewSchema(table.schema.ID+1, schema.Fields()...)
			table.lastColumnID = max(table.lastColumnID, schema.HighestFieldID())
		}
		evolved = table.view(shown.Ident)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("evolving table %s: %w", shown.Ident, err)
	}
	return evolved, nil
}

// Commit implements materialization.Tables.
func (t *Tables) Commit(_ context.Context, shown *materialization.Table, update materialization.Update) (*materialization.Table, error) {
	before, err := loadedVersion(shown)
	if err != nil {
		return nil, err
	}
	var committed *materialization.Table
	err = t.run(Op{Kind: OpCommit, Ident: shown.Ident}, func() error {
		table, err := t.find(shown.Ident)
		if err != nil {
			return err
		}
		if table.uuid != before.uuid || table.head != before.head {
			return base.ErrConflict
		}
		for _, file := range update.Files {
			if _, found := t.files[file.Path]; !found {
				return fmt.Errorf("%w: file %s", base.ErrNotFound, file.Path)
			}
		}
		t.append(table, update)
		committed = table.view(shown.Ident)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("committing to table %s: %w", shown.Ident, err)
	}
	return committed, nil
}

// append makes a snapshot on the table's head.
func (t *Tables) append(table *state, update materialization.Update) {
	id := t.nextID()
	table.snapshots[id] = snapshot{
		parent:  table.head,
		summary: maps.Clone(update.Summary),
		added:   slices.Clone(update.Files),
	}
	table.head = id
	if table.properties == nil {
		table.properties = map[string]string{}
	}
	maps.Copy(table.properties, update.Properties)
}

func (t *Tables) nextID() int64 {
	t.lastID++
	return t.lastID
}

func (t *Tables) find(ident materialization.Ident) (*state, error) {
	table, found := t.tables[ident]
	if !found {
		return nil, base.ErrNotFound
	}
	return table, nil
}

func loadedVersion(shown *materialization.Table) (version, error) {
	loaded, ok := shown.Handle.(version)
	if !ok {
		return version{}, fmt.Errorf("%w: table %s was loaded from another catalog", base.ErrInvalid, shown.Ident)
	}
	return loaded, nil
}

func (s *state) view(ident materialization.Ident) *materialization.Table {
	shown := &materialization.Table{
		Ident:            ident,
		UUID:             s.uuid,
		Location:         "mem://warehouse/" + ident.Namespace + "/" + ident.Name + "/" + s.uuid,
		Schema:           s.schema,
		LastColumnID:     s.lastColumnID,
		Head:             s.head,
		Properties:       maps.Clone(s.properties),
		AncestryComplete: true,
	}
	for id := s.head; id != 0; {
		ancestor, found := s.snapshots[id]
		if !found {
			shown.AncestryComplete = false
			break
		}
		if commitID := ancestor.summary[materialization.PropertyCommitID]; commitID != "" {
			shown.CommitIDs = append(shown.CommitIDs, commitID)
		}
		id = ancestor.parent
	}
	shown.Handle = s.version()
	return shown
}

func (s *state) version() version {
	return version{
		uuid: s.uuid, schema: s.schema, lastColumnID: s.lastColumnID, head: s.head, snapshots: s.snapshots,
	}
}
