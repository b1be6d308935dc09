package shard

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/checkpoint"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// The sections of a checkpoint, in their order. What only counts or finds what is
// elsewhere is not stored.
const (
	sectionShard checkpoint.SectionID = iota + 1
	sectionStreams
	sectionFormer
	sectionStreamProperties
	sectionLogs
	sectionObjects
	sectionEntries
	sectionPending
	sectionWriters
	sectionDead
	sectionTombstones
	sectionSealed
	sectionProducers
	sectionIntervals
	sectionCluster
	sectionNamespaces
	sectionNamespaceProperties
	sectionCatalogs
	sectionCatalogProperties
)

const (
	num = checkpoint.Numbers
	txt = checkpoint.Texts
)

// sectionColumns are the columns of each section, in their order.
var sectionColumns = map[checkpoint.SectionID][]checkpoint.Kind{
	// created, shards, fold version, foreign, epoch
	sectionShard: {num, num, num, num, num},
	// id, kept, namespace, name, version, namespace id, properties source,
	// partitions, policy, retention, has schema, schema, table uuid, dead-letter
	// uuid, snapshot, dead-letter snapshot, commit id, dead-letter commit id
	sectionStreams: {num, num, txt, txt, num, num, num, num, txt, txt, num, txt, txt, txt, num, num, txt, txt},
	// stream, uuid
	sectionFormer: {num, txt},
	// stream, key, value
	sectionStreamProperties: {num, txt, txt},
	// stream, partition, start, floor, head, bytes, fence, prepared,
	// materialized, left out, skipped, entries, pending
	sectionLogs: {num, num, num, num, num, num, txt, num, num, num, num, num, num},
	// writer, seq, size, revision, append time, storage
	sectionObjects: {num, num, num, num, num, num},
	// of the logs in their order: base, records, object, position, length
	sectionEntries: {num, num, num, num, num},
	// of the logs in their order: since, range
	sectionPending: {num, txt},
	// id, next, instance, token
	sectionWriters: {num, num, txt, txt},
	// key, since, size
	sectionDead: {txt, num, num},
	// namespace, name, stream, purged
	sectionTombstones: {txt, txt, num, num},
	// namespace, incarnation
	sectionSealed: {txt, num},
	// stream, name, intervals
	sectionProducers: {num, txt, num},
	// of the producers in their order: first, end
	sectionIntervals: {num, num},
	// version, policy, retention
	sectionCluster: {num, txt, txt},
	// id, version, name, policy, retention
	sectionNamespaces: {num, num, txt, txt, txt},
	// namespace, key, value
	sectionNamespaceProperties: {num, txt, txt},
	// name, type
	sectionCatalogs: {txt, txt},
	// catalog, 0 connection or 1 properties, key, value
	sectionCatalogProperties: {txt, num, txt, txt},
}

// Encode returns the checkpoint of the snapshot. Equal states give equal bytes.
func (sn Snapshot) Encode() ([]byte, error) {
	s := sn.State
	e := &stateEncoder{Encoder: checkpoint.NewEncoder(checkpoint.Header{
		Cluster: s.cluster, Shard: s.shard, Revision: s.revision, Time: s.time,
		Chain: s.hash, State: s.Hash(), Record: sn.Record,
	})}
	e.streams = slices.Concat(s.Streams(), s.Kept())
	e.shard(s)
	e.allStreams(s)
	e.index(s)
	e.lists(s)
	e.producers()
	e.meta(&s.meta)
	if e.err != nil {
		return nil, fmt.Errorf("encoding the state of %s: %w", s.shard, e.err)
	}
	data, err := e.Finish()
	if err != nil {
		return nil, fmt.Errorf("encoding the state of %s: %w", s.shard, err)
	}
	return data, nil
}

type stateEncoder struct {
	*checkpoint.Encoder
	// streams are the live ones, then the kept ones.
	streams []*Stream
	err     error
}

func (e *stateEncoder) begin(id checkpoint.SectionID) { e.Section(id, sectionColumns[id]...) }

func (e *stateEncoder) signed(values ...int64) {
	for _, v := range values {
		e.Number(uint64(v)) //nolint:gosec // two's complement
	}
}

func (e *stateEncoder) message(m proto.Message) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.Text(string(data))
}

func (e *stateEncoder) shard(s *State) {
	e.begin(sectionShard)
	e.Number(flag(s.created))
	e.signed(int64(s.shards), int64(s.foldVersion), s.foreign)
	e.Number(s.epoch)
}

func (e *stateEncoder) allStreams(s *State) {
	e.begin(sectionStreams)
	for i, st := range e.streams {
		e.stream(st, i >= len(s.streams))
	}
	e.begin(sectionFormer)
	for _, st := range e.streams {
		for _, uuid := range st.Former {
			e.Number(uint64(st.ID))
			e.Text(uuid)
		}
	}
	e.begin(sectionStreamProperties)
	for _, st := range e.streams {
		for _, p := range st.Properties {
			e.Number(uint64(st.ID))
			e.property(p)
		}
	}
}

func (e *stateEncoder) stream(st *Stream, kept bool) {
	e.Number(uint64(st.ID))
	e.Number(flag(kept))
	e.Text(st.Name.Namespace)
	e.Text(st.Name.Name)
	e.Number(st.Version)
	e.Number(uint64(st.Namespace))
	e.Number(st.PropertiesSource)
	e.Number(uint64(len(st.Logs)))
	e.message(st.Policy)
	e.message(st.Retention)
	e.Number(flag(st.Schema != nil))
	e.message(st.Schema)
	e.Text(st.Table.UUID)
	e.Text(st.Table.DeadLetterUUID)
	e.signed(st.Table.Snapshot, st.Table.DeadLetterSnapshot)
	e.Text(st.Table.CommitID)
	e.Text(st.Table.DeadLetterCommitID)
}

func (e *stateEncoder) property(p *commitpb.Property) {
	e.Text(p.GetKey())
	e.Text(p.GetValue())
}

// index writes the logs, the objects in the order in which the logs first name
// them, and the entries with those places.
func (e *stateEncoder) index(s *State) {
	e.begin(sectionLogs)
	for _, st := range e.streams {
		for _, l := range st.Logs {
			e.log(l)
		}
	}
	places := make([]uint32, len(s.objects.all)) // from 1; 0 is none yet
	var order []objectRef
	for l := range e.logs() {
		for _, entry := range l.entries {
			if places[entry.object] == 0 {
				order = append(order, entry.object)
				places[entry.object] = uint32(len(order)) //nolint:gosec // a place for each ref
			}
		}
	}
	e.begin(sectionObjects)
	for _, ref := range order {
		o := s.objects.get(ref)
		e.Number(uint64(o.writer))
		e.Number(uint64(o.seq))
		e.signed(o.size)
		e.Number(uint64(o.revision))
		e.signed(int64(o.appendTime), int64(o.storage))
	}
	e.begin(sectionEntries)
	for l := range e.logs() {
		for _, entry := range l.entries {
			e.signed(int64(entry.base), int64(entry.records), int64(places[entry.object]-1), int64(entry.pos), int64(entry.len))
		}
	}
	e.begin(sectionPending)
	for l := range e.logs() {
		for i, p := range l.table.pending {
			e.signed(int64(l.table.pendingSince[i]))
			e.message(p)
		}
	}
}

func (e *stateEncoder) log(l *Log) {
	e.Number(uint64(l.id.Stream))
	e.signed(int64(l.id.Partition), int64(l.start), int64(l.floor), int64(l.head), l.bytes)
	e.Text(l.fence)
	t := &l.table
	e.signed(int64(t.prepared), int64(t.materialized), t.leftOut, t.skipped, int64(len(l.entries)), int64(len(t.pending)))
}

// logs yields the logs of all streams, in order.
func (e *stateEncoder) logs() func(yield func(*Log) bool) {
	return func(yield func(*Log) bool) {
		for _, st := range e.streams {
			for _, l := range st.Logs {
				if !yield(l) {
					return
				}
			}
		}
	}
}

func (e *stateEncoder) lists(s *State) {
	e.begin(sectionWriters)
	for _, w := range s.Writers() {
		e.Number(uint64(w.ID))
		e.Number(uint64(w.Next))
		e.Text(w.Instance)
		e.Text(w.token)
	}
	e.begin(sectionDead)
	for _, d := range s.Dead() {
		e.Text(d.Key)
		e.Number(uint64(d.Since))
		e.signed(d.Size)
	}
	e.begin(sectionTombstones)
	for _, name := range slices.SortedFunc(maps.Keys(s.tombstones), base.StreamName.Compare) {
		e.Text(name.Namespace)
		e.Text(name.Name)
		e.Number(uint64(s.tombstones[name].ID))
		e.Number(flag(s.tombstones[name].Purged))
	}
	e.begin(sectionSealed)
	for _, name := range slices.Sorted(maps.Keys(s.sealed)) {
		e.Text(name)
		e.Number(uint64(s.sealed[name]))
	}
}

func (e *stateEncoder) producers() {
	e.begin(sectionProducers)
	for _, st := range e.streams {
		for _, name := range slices.Sorted(maps.Keys(st.producers)) {
			e.Number(uint64(st.ID))
			e.Text(name)
			e.Number(uint64(len(st.producers[name].intervals)))
		}
	}
	e.begin(sectionIntervals)
	for _, st := range e.streams {
		for _, w := range sortedValues(st.producers) {
			for _, q := range w.intervals {
				e.Number(q.first)
				e.Number(q.end)
			}
		}
	}
}

func (e *stateEncoder) meta(m *metaState) {
	e.begin(sectionCluster)
	e.Number(m.cluster.Version)
	e.message(m.cluster.Policy)
	e.message(m.cluster.Retention)
	namespaces := sortedValues(m.namespaces)
	e.begin(sectionNamespaces)
	for _, n := range namespaces {
		e.Number(uint64(n.ID))
		e.Number(n.Version)
		e.Text(n.Name)
		e.message(n.Policy)
		e.message(n.Retention)
	}
	e.begin(sectionNamespaceProperties)
	for _, n := range namespaces {
		for _, p := range n.Properties {
			e.Number(uint64(n.ID))
			e.property(p)
		}
	}
	catalogs := sortedValues(m.catalogs)
	e.begin(sectionCatalogs)
	for _, c := range catalogs {
		e.Text(c.Name)
		e.Text(c.Type)
	}
	e.begin(sectionCatalogProperties)
	for _, c := range catalogs {
		for which, properties := range [][]*commitpb.Property{c.Connection, c.Properties} {
			for _, p := range properties {
				e.Text(c.Name)
				e.signed(int64(which))
				e.property(p)
			}
		}
	}
}
