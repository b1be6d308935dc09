package shard

import (
	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

func (s *State) foldStreamCreate(p *commitpb.StreamCreate, out *Outcome) {
	name := base.StreamName{Namespace: p.GetNamespace(), Name: p.GetName()}
	if base.CheckName(name.Namespace) != nil || base.CheckName(name.Name) != nil ||
		p.GetPartitions() == 0 || p.GetPartitions() > MaxPartitions {
		out.Rejected = Malformed
		return
	}
	if id, ok := s.names[name]; ok {
		out.Rejected, out.Stream = StreamExists, id
		return
	}
	id := base.StreamID(out.Revision)
	st := &Stream{ID: id, Name: name, Version: 1, Policy: p.GetTable()}
	if st.Policy == nil {
		st.Policy = &commitpb.TablePolicy{}
	}
	st.Logs = make([]*Log, p.GetPartitions())
	for i := range st.Logs {
		st.Logs[i] = &Log{id: base.LogID{Stream: id, Partition: base.Partition(i)}}
	}
	s.streams[id] = st
	s.names[name] = id
	out.Stream = id
}

func (s *State) foldStreamUpdate(p *commitpb.StreamUpdate, out *Outcome) {
	st, ok := s.streams[base.StreamID(p.GetStream())]
	switch {
	case !ok:
		out.Rejected = NoStream
	case p.GetTable() == nil:
		out.Rejected = Malformed
	case st.Version != p.GetExpectedVersion():
		out.Rejected, out.Stream = VersionChanged, st.ID
	default:
		st.Policy = p.GetTable()
		st.Version++
		out.Stream = st.ID
	}
}
