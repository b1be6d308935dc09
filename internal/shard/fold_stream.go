package shard

import (
	"slices"
	"strings"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

func (s *State) foldStreamCreate(p *commitpb.StreamCreate, out *Outcome) {
	name := base.StreamName{Namespace: p.GetNamespace(), Name: p.GetName()}
	if out.Rejected = s.creatable(name, p); out.Rejected != Accepted {
		if out.Rejected == StreamExists {
			out.Stream = s.names[name]
		}
		return
	}
	id := base.StreamID(out.Revision)
	st := &Stream{
		ID: id, Name: name, Version: 1, Policy: p.GetTable(), Namespace: base.NamespaceID(p.GetNamespaceId()),
		Retention: p.GetRetention(), Schema: p.GetSchema(), Properties: p.GetProperties(),
	}
	if st.Policy == nil {
		st.Policy = &commitpb.TablePolicy{}
	}
	if st.Retention == nil {
		st.Retention = &commitpb.Retention{}
	}
	s.streams[id] = st
	s.names[name] = id
	s.grow(st, p.GetPartitions())
	out.Stream = id
}

func (s *State) creatable(name base.StreamName, p *commitpb.StreamCreate) Reason {
	_, exists := s.names[name]
	_, deleted := s.tombstones[name]
	sealed, isSealed := s.sealed[name.Namespace]
	switch {
	case base.CheckName(name.Namespace) != nil, base.CheckName(name.Name) != nil,
		p.GetPartitions() == 0, p.GetPartitions() > MaxPartitions,
		!validProperties(p.GetProperties()), !validSchema(p.GetSchema()):
		return Malformed
	case exists:
		return StreamExists
	case deleted:
		return StreamDeleted
	case isSealed && base.NamespaceID(p.GetNamespaceId()) <= sealed:
		return NamespaceSealed
	case s.foldVersion >= 2 && s.logs+int(p.GetPartitions()) > MaxLogs:
		return LimitReached
	}
	return Accepted
}

// grow adds logs up to a number of them.
func (s *State) grow(st *Stream, partitions uint32) {
	for i := len(st.Logs); i < int(partitions); i++ {
		st.Logs = append(st.Logs, &Log{id: base.LogID{Stream: st.ID, Partition: base.Partition(i)}}) //nolint:gosec // at most MaxPartitions
		s.logs++
	}
}

func validSchema(schema *commitpb.StreamSchema) bool {
	return len(schema.GetType()) <= base.MaxNameBytes && len(schema.GetDefinition()) <= MaxSchemaBytes &&
		validProperties(schema.GetProperties())
}

// validProperties checks that keys ascend, so that equal properties are equal bytes.
func validProperties(properties []*commitpb.Property) bool {
	if len(properties) > MaxProperties {
		return false
	}
	for i, p := range properties {
		if p.GetKey() == "" || len(p.GetKey())+len(p.GetValue()) > MaxPropertyBytes ||
			i > 0 && properties[i-1].GetKey() >= p.GetKey() {
			return false
		}
	}
	return true
}

func (s *State) foldStreamUpdate(p *commitpb.StreamUpdate, out *Outcome) {
	st, ok := s.streams[base.StreamID(p.GetStream())]
	if !ok {
		out.Rejected = NoStream
		return
	}
	onlyProperties := p.GetTable() == nil && p.GetRetention() == nil
	switch {
	case onlyProperties && p.GetProperties() == nil, !validProperties(p.GetProperties().GetValues()):
		out.Rejected = Malformed
		return
	case st.Version != p.GetExpectedVersion() && (!onlyProperties || p.GetExpectedVersion() != 0):
		out.Rejected, out.Stream = VersionChanged, st.ID
		return
	case p.GetProperties() != nil && p.GetProperties().GetSourceRevision() <= st.PropertiesSource:
		out.Rejected, out.Stream = StaleSource, st.ID
		return
	}
	if p.GetTable() != nil {
		st.Policy = p.GetTable()
	}
	if p.GetRetention() != nil {
		st.Retention = p.GetRetention()
	}
	if p.GetProperties() != nil {
		st.Properties, st.PropertiesSource = p.GetProperties().GetValues(), p.GetProperties().GetSourceRevision()
	}
	st.Version++
	out.Stream = st.ID
}

func (s *State) foldPartitionsAdd(p *commitpb.PartitionsAdd, out *Outcome) {
	out.Stream = base.StreamID(p.GetStream())
	st, ok := s.streams[out.Stream]
	switch {
	case !ok:
		out.Rejected = NoStream
	case p.GetPartitions() == 0, p.GetPartitions() > MaxPartitions:
		out.Rejected = Malformed
	case int(p.GetPartitions()) <= len(st.Logs):
		out.Rejected = AlreadyPublished
	case s.logs+int(p.GetPartitions())-len(st.Logs) > MaxLogs:
		out.Rejected = LimitReached
	default:
		s.grow(st, p.GetPartitions())
		st.Version++
	}
}

func (s *State) foldStreamDelete(p *commitpb.StreamDelete, out *Outcome) {
	out.Stream = base.StreamID(p.GetStream())
	st, live := s.streams[out.Stream]
	if !live {
		st = s.kept[out.Stream]
	}
	switch {
	case st == nil, !live && !p.GetPurge():
		out.Rejected = NoStream
		return
	case live && len(s.tombstones) >= MaxTombstones:
		out.Rejected = LimitReached
		return
	}
	delete(s.streams, st.ID)
	delete(s.kept, st.ID)
	if live {
		delete(s.names, st.Name)
	}
	s.forgetProducers(st)
	s.tombstones[st.Name] = Tombstone{ID: st.ID, Purged: p.GetPurge()}
	if !p.GetPurge() {
		s.kept[st.ID] = st
		return
	}
	for _, l := range st.Logs {
		s.dropEntries(l, len(l.entries))
	}
	s.logs -= len(st.Logs)
}

// foldNamespaceSeal runs in a shard of streams. A seal is as good as a drop for
// whoever creates a stream: it must be refused while one is there.
func (s *State) foldNamespaceSeal(p *commitpb.NamespaceSeal, out *Outcome) {
	name, id := p.GetNamespace(), base.NamespaceID(p.GetNamespaceId())
	out.Namespace = id
	sealed, isSealed := s.sealed[name]
	inside := func(n base.StreamName) bool { return n.Namespace == name }
	switch {
	case s.shard == base.MetaShard:
		out.Rejected = WrongShard
	case base.CheckName(name) != nil:
		out.Rejected = Malformed
	case p.GetUndo():
		if !isSealed || sealed != id {
			out.Rejected = NoNamespace
			return
		}
		delete(s.sealed, name)
	case isSealed && id <= sealed:
		out.Rejected = AlreadyPublished
	case s.holdsStream(inside):
		out.Rejected = NotEmpty
	default:
		s.sealed[name] = id
	}
}

func (s *State) holdsStream(match func(base.StreamName) bool) bool {
	for name := range s.names {
		if match(name) {
			return true
		}
	}
	return false
}

// Sealed returns the newest incarnation of a namespace that takes no streams.
func (s *State) Sealed(namespace string) (base.NamespaceID, bool) {
	id, ok := s.sealed[namespace]
	return id, ok
}

// compareKeys compares the keys of two properties.
func compareKeys(a, b *commitpb.Property) int { return strings.Compare(a.GetKey(), b.GetKey()) }

// changeProperties sets and removes some properties of a sorted list.
func changeProperties(old, set []*commitpb.Property, remove []string) []*commitpb.Property {
	gone := func(p *commitpb.Property) bool {
		_, replaced := slices.BinarySearchFunc(set, p, compareKeys)
		return replaced || slices.Contains(remove, p.GetKey())
	}
	all := append(slices.DeleteFunc(slices.Clone(old), gone), set...)
	slices.SortFunc(all, compareKeys)
	return all
}
