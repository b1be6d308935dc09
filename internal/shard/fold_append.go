package shard

import (
	"math"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

func (s *State) foldAppend(p *commitpb.Append, out *Outcome) error {
	ok, err := s.take(p.GetWriter(), p.GetSeq(), out)
	if !ok || err != nil {
		return err
	}
	key := base.WALKey(s.shard, out.Writer, out.Seq)
	if !validAppend(p) || !validGroups(p) {
		out.Rejected = Malformed
		s.bury(key, 0)
		return nil
	}
	ref := s.objects.add(object{
		writer: out.Writer, seq: out.Seq, size: int64(p.GetSize()), //nolint:gosec // checked
		revision: out.Revision, appendTime: out.Time, storage: Raw,
	})
	out.Logs = make([]LogOutcome, len(p.GetStream()))
	for i := range out.Logs {
		out.Logs[i] = s.admitBlock(p, i)
	}
	for _, g := range p.GetGroups() {
		s.admitGroup(p, g, out.Logs)
	}
	for i := range out.Logs {
		if out.Logs[i].Rejected == Accepted {
			s.appendBlock(p, i, ref, &out.Logs[i])
		}
	}
	if s.objects.get(ref).live == 0 {
		s.bury(key, s.objects.get(ref).size)
		s.objects.remove(ref)
	}
	return nil
}

// admitBlock tells whether a block's log takes it.
func (s *State) admitBlock(p *commitpb.Append, i int) LogOutcome {
	id := base.LogID{Stream: base.StreamID(p.GetStream()[i]), Partition: base.Partition(p.GetPartition()[i])} //nolint:gosec // checked
	out := LogOutcome{Log: id, Records: int(p.GetRecords()[i])}
	if _, ok := s.streams[id.Stream]; !ok {
		out.Rejected = NoStream
		return out
	}
	l, ok := s.Log(id)
	switch {
	case !ok:
		out.Rejected = NoPartition
	case l.fence != "":
		out.Rejected = LogFenced
	}
	return out
}

func (s *State) appendBlock(p *commitpb.Append, i int, ref objectRef, out *LogOutcome) {
	l, _ := s.Log(out.Log)
	out.Base = l.head
	l.entries = append(l.entries, indexEntry{
		base: l.head, records: p.GetRecords()[i], object: ref, pos: p.GetPos()[i], len: p.GetLen()[i],
	})
	s.entries++
	l.head += base.Offset(p.GetRecords()[i])
	l.bytes += int64(p.GetLen()[i])
	s.objects.get(ref).live++
}

// validAppend checks what no correct writer gets wrong, so that a wrong one
// cannot corrupt an index.
func validAppend(p *commitpb.Append) bool {
	n := len(p.GetStream())
	if n == 0 || p.GetSize() > math.MaxUint32 {
		return false
	}
	for _, column := range []int{
		len(p.GetPartition()), len(p.GetRecords()), len(p.GetPos()),
		len(p.GetLen()), len(p.GetMinTime()), len(p.GetMaxTime()),
	} {
		if column != n {
			return false
		}
	}
	for i := range n {
		end := uint64(p.GetPos()[i]) + uint64(p.GetLen()[i])
		if p.GetRecords()[i] == 0 || p.GetRecords()[i] > math.MaxInt32 || p.GetLen()[i] == 0 ||
			end > p.GetSize() || p.GetPartition()[i] >= MaxPartitions {
			return false
		}
	}
	return true
}
