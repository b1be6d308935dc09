package shard

import (
	"maps"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Clone returns a copy that later records do not change. Messages are shared: a
// fold replaces them and never changes one. It costs about as much as copying the
// memory of the index, so it may be made inside Follower.Inspect.
func (s *State) Clone() *State {
	c := *s
	c.streams = cloneValues(s.streams, (*Stream).clone)
	c.kept = cloneValues(s.kept, (*Stream).clone)
	c.names = maps.Clone(s.names)
	c.writers = cloneValues(s.writers, func(w *Writer) *Writer { copied := *w; return &copied })
	c.tokens = maps.Clone(s.tokens)
	c.objects = objectTable{all: slices.Clone(s.objects.all), free: slices.Clone(s.objects.free)}
	c.dead = maps.Clone(s.dead)
	c.tombstones = maps.Clone(s.tombstones)
	c.sealed = maps.Clone(s.sealed)
	c.meta.namespaces = cloneValues(s.meta.namespaces, func(n *Namespace) *Namespace { copied := *n; return &copied })
	c.meta.catalogs = maps.Clone(s.meta.catalogs)
	return &c
}

func (st *Stream) clone() *Stream {
	c := *st
	c.Former = slices.Clone(st.Former)
	c.Logs = make([]*Log, len(st.Logs))
	for i, l := range st.Logs {
		copied := *l
		copied.entries = slices.Clone(l.entries)
		copied.table.pending = slices.Clone(l.table.pending)
		copied.table.pendingSince = slices.Clone(l.table.pendingSince)
		c.Logs[i] = &copied
	}
	if st.producers != nil {
		c.producers = cloneValues(st.producers, func(w *window) *window {
			return &window{intervals: slices.Clone(w.intervals)}
		})
	}
	return &c
}

func cloneValues[K comparable, V any](m map[K]*V, clone func(*V) *V) map[K]*V {
	c := make(map[K]*V, len(m))
	for k, v := range m {
		c[k] = clone(v)
	}
	return c
}

// Snapshot returns a copy of the newest state, with the hash of its last record.
// Applying waits while the copy is made.
func (f *Follower) Snapshot() Snapshot {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return Snapshot{State: f.state.Clone(), Record: f.lastRecordLocked()}
}

// Snapshot is a state that nothing changes any more, and the SHA-256 of its last
// record: zeros where there is none.
type Snapshot struct {
	State  *State
	Record base.Hash
}
