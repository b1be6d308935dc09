package shard

import (
	"maps"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// hashVersion2 adds what fold version 2 brought, so that states of version 1 keep
// their hashes.
func (s *State) hashVersion2(w *canonical) {
	w.numbers(s.epoch, uint64(s.logs), uint64(s.intervals), uint64(s.entries)) //nolint:gosec // canonical form only
	for _, st := range s.Streams() {
		hashStreamVersion2(w, st)
	}
	w.numbers(uint64(len(s.kept)))
	for _, st := range s.Kept() {
		s.hashStream(w, st)
		hashStreamVersion2(w, st)
	}
	w.numbers(uint64(len(s.tombstones)))
	for _, name := range slices.SortedFunc(maps.Keys(s.tombstones), base.StreamName.Compare) {
		t := s.tombstones[name]
		w.text(name.String())
		w.numbers(uint64(t.ID), flag(t.Purged))
	}
	w.numbers(uint64(len(s.sealed)))
	for _, name := range slices.Sorted(maps.Keys(s.sealed)) {
		w.text(name)
		w.numbers(uint64(s.sealed[name]))
	}
	s.meta.hash(w)
}

func hashStreamVersion2(w *canonical, st *Stream) {
	w.numbers(uint64(st.Namespace), st.PropertiesSource, flag(st.Schema != nil))
	w.message(st.Retention)
	if st.Schema != nil {
		w.message(st.Schema)
	}
	w.properties(st.Properties)
	for _, l := range st.Logs {
		w.numbers(uint64(l.floor), uint64(l.table.skipped)) //nolint:gosec // canonical form only
		w.text(l.fence)
	}
	w.numbers(uint64(len(st.producers)))
	for _, name := range slices.Sorted(maps.Keys(st.producers)) {
		w.text(name)
		for _, q := range st.producers[name].intervals {
			w.numbers(q.first, q.end)
		}
		w.numbers(0, 0) // ends the list: no interval is empty
	}
}

func (m *metaState) hash(w *canonical) {
	w.numbers(m.cluster.Version, uint64(len(m.namespaces)), uint64(len(m.catalogs)))
	w.message(m.cluster.Policy)
	w.message(m.cluster.Retention)
	for _, n := range sortedValues(m.namespaces) {
		w.numbers(uint64(n.ID), n.Version)
		w.text(n.Name)
		w.message(n.Policy)
		w.message(n.Retention)
		w.properties(n.Properties)
	}
	for _, c := range sortedValues(m.catalogs) {
		w.text(c.Name)
		w.text(c.Type)
		w.properties(c.Connection)
		w.properties(c.Properties)
	}
}

func (w *canonical) properties(all []*commitpb.Property) {
	w.numbers(uint64(len(all)))
	for _, p := range all {
		w.text(p.GetKey())
		w.text(p.GetValue())
	}
}
