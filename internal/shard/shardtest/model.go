// Package shardtest helps to test what folds commit records: a generator of
// histories that no correct set of writers would produce and that a shard must
// survive, and a model of the fold that is simple enough to be believed.
//
// The model keeps one place for each record of each log in plain slices, without
// an index, reference counts or marks that could disagree. To add a record kind,
// teach Model.fold its rule and the Generator a draw.
package shardtest

import (
	"maps"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// Model is a shard as a reader of its rules would keep it on paper.
type Model struct {
	Shard    base.Shard
	Created  bool
	Revision base.Revision
	Time     base.Millis
	Streams  map[base.StreamID]*Stream
	Writers  map[base.WriterID]*Writer
	// Dead holds the keys of objects that no record lies in.
	Dead map[string]bool
	// Names holds every name that a stream ever had.
	Names map[base.StreamName]bool
	// Kept are the streams that were deleted without a purge.
	Kept map[base.StreamID]*Stream
	// Sealed holds the newest sealed incarnation of each namespace.
	Sealed map[string]uint64
	Epoch  uint64

	entries int
}

// Stream is a stream of a Model.
type Stream struct {
	Name                 base.StreamName
	Version              uint64
	UUID, DeadLetterUUID string
	// Former are the tables that the stream was unbound from, ever.
	Former map[string]bool
	Logs   []*Log
	Source uint64
	// Sequences holds those that each producer ever got in.
	Sequences map[string]map[uint64]bool
}

// Writer is an open writer of a Model.
type Writer struct {
	Token string
	Next  base.Seq
}

// Log is a log of a Model: a place for each record, by offset.
type Log struct {
	Records                []Place
	Prepared, Materialized base.Offset
	Pending                []*commitpb.PreparedRange
	LeftOut                int64
	// Start hides the records before it, Floor drops them.
	Start, Floor base.Offset
	Fenced       bool
}

// Place is where a record lies: nowhere, once its whole entry was dropped.
type Place struct {
	// Entry is the same for records of one index entry and differs between two.
	Entry     int
	Key       string
	Compacted bool
	Revision  base.Revision
	Time      base.Millis
}

// Verdict is what a Model says about a record.
type Verdict struct {
	OK bool
	// Logs tells for each part of a record whether it is accepted.
	Logs []bool
}

// NewModel returns the model of a shard before its first record.
func NewModel(shard base.Shard) *Model {
	return &Model{
		Shard: shard, Streams: make(map[base.StreamID]*Stream),
		Writers: make(map[base.WriterID]*Writer), Dead: make(map[string]bool),
		Names: make(map[base.StreamName]bool), Kept: make(map[base.StreamID]*Stream), Sealed: make(map[string]uint64),
	}
}

// Apply folds one record. A nil payload is a record that is not ours.
func (m *Model) Apply(serverTime base.Millis, payload commitrecord.Payload) Verdict {
	m.Revision++
	if payload == nil {
		return Verdict{}
	}
	m.Time = max(m.Time, serverTime)
	if _, ok := payload.(*commitpb.ClusterCreate); !ok && !m.Created {
		return Verdict{}
	}
	return m.fold(payload)
}

func (m *Model) fold(payload commitrecord.Payload) Verdict {
	switch p := payload.(type) {
	case *commitpb.ClusterCreate:
		ok := !m.Created && p.GetShards() >= 1 && p.GetShards() <= base.MaxShards && p.GetFoldVersion() == commitrecord.FoldVersion
		m.Created = m.Created || ok
		return Verdict{OK: ok}
	case *commitpb.StreamCreate:
		return Verdict{OK: m.createStream(p)}
	case *commitpb.StreamUpdate:
		return Verdict{OK: m.updateStream(p)}
	case *commitpb.WriterOpen:
		return Verdict{OK: m.openWriter(p)}
	case *commitpb.WriterFence:
		return Verdict{OK: m.fenceWriters(p)}
	case *commitpb.Append:
		return m.append(p)
	case *commitpb.Compact:
		return m.compact(p)
	case *commitpb.Prepared:
		return m.prepare(p)
	case *commitpb.Materialized:
		return m.materialize(p)
	case *commitpb.TableReset:
		return Verdict{OK: m.reset(p)}
	case *commitpb.Reclaimed:
		before := len(m.Dead)
		maps.DeleteFunc(m.Dead, func(key string, _ bool) bool { return slices.Contains(p.GetKeys(), key) })
		return Verdict{OK: len(m.Dead) < before}
	default:
		return m.foldVersion2(payload)
	}
}

func (m *Model) createStream(p *commitpb.StreamCreate) bool {
	name := base.StreamName{Namespace: p.GetNamespace(), Name: p.GetName()}
	if base.CheckName(name.Namespace) != nil || base.CheckName(name.Name) != nil || p.GetPartitions() == 0 || p.GetPartitions() > 4096 {
		return false
	}
	sealed, isSealed := m.Sealed[name.Namespace]
	if m.Names[name] || isSealed && p.GetNamespaceId() <= sealed || !soundProperties(p.GetProperties()) {
		return false
	}
	m.Names[name] = true
	st := &Stream{Name: name, Version: 1, Sequences: make(map[string]map[uint64]bool)}
	for range p.GetPartitions() {
		st.Logs = append(st.Logs, &Log{})
	}
	m.Streams[base.StreamID(m.Revision)] = st
	return true
}

func (m *Model) openWriter(p *commitpb.WriterOpen) bool {
	if len(p.GetToken()) != 16 || len(p.GetInstance()) > 128 {
		return false
	}
	for _, w := range m.Writers {
		if w.Token == string(p.GetToken()) {
			return false
		}
	}
	m.Writers[base.WriterID(m.Revision)] = &Writer{Token: string(p.GetToken()), Next: 1}
	return true
}

func (m *Model) fenceWriters(p *commitpb.WriterFence) bool {
	before := len(m.Writers)
	for _, id := range p.GetWriters() {
		delete(m.Writers, base.WriterID(id))
	}
	return len(m.Writers) < before
}

// take is whether a writer may publish this seq now, and uses it up.
func (m *Model) take(writer, seq uint64) bool {
	w := m.Writers[base.WriterID(writer)]
	if w == nil || uint64(w.Next) != seq {
		return false
	}
	w.Next++
	return true
}

// Log returns a log, or nil.
func (m *Model) Log(stream uint64, partition uint32) *Log {
	st := m.Streams[base.StreamID(stream)]
	if st == nil || int(partition) >= len(st.Logs) {
		return nil
	}
	return st.Logs[partition]
}

// Live returns how many index entries lie in each object.
func (m *Model) Live() map[string]int {
	live := make(map[string]int)
	for _, streams := range []map[base.StreamID]*Stream{m.Streams, m.Kept} {
		for _, st := range streams {
			for _, l := range st.Logs {
				for i, p := range l.Records {
					if p.Key != "" && (i == 0 || p.Entry != l.Records[i-1].Entry) {
						live[p.Key]++
					}
				}
			}
		}
	}
	return live
}
