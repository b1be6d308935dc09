package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Inventory compares what the object store holds under wal/ and compacted/ with what
// the commit logs say of it.
type Inventory struct {
	// Live counts the objects that index entries lie in, Dead those that nothing
	// references any more and that were not reclaimed yet, Open the uploads of
	// writers that are open, which may yet be committed.
	Live int `json:"live"`
	Dead int `json:"dead"`
	Open int `json:"open"`
	// Orphans are the keys of objects that no record names and none ever will,
	// Strange those that this software never writes.
	Orphans []string `json:"orphans"`
	Strange []string `json:"strange"`
	// Missing are the keys of live objects that are not there: records are lost.
	Missing []string `json:"missing"`
}

// inventoryPage is how many objects are listed at a time.
const inventoryPage = 1000

// Inventory looks at every object. It takes a listing of the whole store, and memory
// for each key. What is written or deleted meanwhile may be counted or not; Missing
// and Orphans are certain.
func (e *Engine) Inventory(ctx context.Context) (Inventory, error) {
	listed := make(map[string]bool)
	for _, prefix := range []string{base.WALPrefix, base.CompactedPrefix} {
		if err := e.listObjects(ctx, prefix, listed); err != nil {
			return Inventory{}, fmt.Errorf("listing %s: %w", prefix, err)
		}
	}
	inv := Inventory{Orphans: []string{}, Strange: []string{}, Missing: []string{}}
	var absent []string
	for _, s := range e.shards {
		if err := s.view.Err(); err != nil {
			return Inventory{}, fmt.Errorf("looking at shard %s: %w", s.shard, err)
		}
		s.view.Inspect(func(state *shard.State) { absent = append(absent, inv.count(state, listed)...) })
	}
	for key := range listed {
		inv.Strange = append(inv.Strange, key) // no shard knew it
	}
	slices.Sort(inv.Strange)
	slices.Sort(inv.Orphans)
	return inv, e.confirmMissing(ctx, &inv, absent)
}

func (e *Engine) listObjects(ctx context.Context, prefix string, listed map[string]bool) error {
	for after := ""; ; {
		page, err := e.objects.List(ctx, prefix, after, inventoryPage)
		if err != nil {
			return err
		}
		for _, o := range page {
			listed[o.Key] = true
			after = o.Key
		}
		if len(page) < inventoryPage {
			return nil
		}
	}
}

// count takes what one shard knows out of the listing. It returns the live objects
// that were not listed: they may have been written since.
func (inv *Inventory) count(state *shard.State, listed map[string]bool) (absent []string) {
	for key := range state.LiveObjects() {
		inv.Live++
		if !listed[key] {
			absent = append(absent, key)
		}
		delete(listed, key)
	}
	for _, d := range state.Dead() {
		inv.Dead++
		delete(listed, d.Key)
	}
	for key := range listed {
		sh, writer, err := base.WriterOfKey(key)
		if err != nil || sh != state.Shard() {
			continue
		}
		if _, open := state.Writer(writer); open || base.Revision(writer) > state.Revision() {
			inv.Open++
		} else {
			inv.Orphans = append(inv.Orphans, key)
		}
		delete(listed, key)
	}
	return absent
}

// confirmMissing asks for each live object that was not listed.
func (e *Engine) confirmMissing(ctx context.Context, inv *Inventory, absent []string) error {
	slices.Sort(absent)
	for _, key := range absent {
		switch _, err := e.objects.Stat(ctx, key); {
		case errors.Is(err, base.ErrNotFound):
			inv.Missing = append(inv.Missing, key)
		case err != nil:
			return fmt.Errorf("looking for %s: %w", key, err)
		}
	}
	return nil
}
