package memtables

import (
	"fmt"
	"maps"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// Append commits files as another writer does, without a mark of ours.
func (t *Tables) Append(ident materialization.Ident, files ...materialization.DataFile) error {
	return t.change(ident, func(table *state) error {
		t.append(table, materialization.Update{Files: files})
		return nil
	})
}

// Rollback points the table's head to the snapshot that is steps before it, as
// an operator does. Properties stay, as they do in Iceberg.
func (t *Tables) Rollback(ident materialization.Ident, steps int) error {
	return t.change(ident, func(table *state) error {
		head := table.head
		for range steps {
			head = table.snapshots[head].parent
		}
		if head == 0 {
			return fmt.Errorf("%w: no snapshot %d steps back", base.ErrInvalid, steps)
		}
		table.head = head
		return nil
	})
}

// Drop removes the table from the catalog and leaves its files.
func (t *Tables) Drop(ident materialization.Ident) error {
	return t.change(ident, func(*state) error {
		delete(t.tables, ident)
		return nil
	})
}

// Strip removes properties from the table.
func (t *Tables) Strip(ident materialization.Ident, keys ...string) error {
	return t.change(ident, func(table *state) error {
		maps.DeleteFunc(table.properties, func(key, _ string) bool { return slices.Contains(keys, key) })
		return nil
	})
}

// Expire forgets all snapshots but the newest keep ancestors of the head. Their
// files stay the table's.
func (t *Tables) Expire(ident materialization.Ident, keep int) error {
	return t.change(ident, func(table *state) error {
		kept := map[int64]snapshot{}
		oldest := table.head
		for id := table.head; id != 0 && len(kept) < keep; id = table.snapshots[id].parent {
			kept[id] = table.snapshots[id]
			oldest = id
		}
		all := table.version().files()
		newer := 0
		for id, s := range kept {
			if id != oldest {
				newer += len(s.added)
			}
		}
		last := kept[oldest]
		last.added = all[:len(all)-newer]
		kept[oldest] = last
		table.snapshots = kept
		return nil
	})
}

// Files returns the data files of the table's head snapshot, oldest first.
func (t *Tables) Files(ident materialization.Ident) []materialization.DataFile {
	t.mu.Lock()
	defer t.mu.Unlock()
	table, found := t.tables[ident]
	if !found {
		return nil
	}
	return table.version().files()
}

// Paths returns the paths of all files, in order.
func (t *Tables) Paths() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.files))
}

func (t *Tables) change(ident materialization.Ident, do func(*state) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	table, err := t.find(ident)
	if err != nil {
		return fmt.Errorf("changing table %s: %w", ident, err)
	}
	return do(table)
}
