package shardtest

import (
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// foldVersion2 folds the kinds of fold version 2. Those of the log meta have no
// place in a shard of streams.
func (m *Model) foldVersion2(payload commitrecord.Payload) Verdict {
	switch p := payload.(type) {
	case *commitpb.PartitionsAdd:
		return Verdict{OK: m.addPartitions(p)}
	case *commitpb.StreamDelete:
		return Verdict{OK: m.deleteStream(p)}
	case *commitpb.NamespaceSeal:
		return Verdict{OK: m.seal(p)}
	case *commitpb.LogFence:
		return m.fence(p.GetStream(), p.GetPartition(), p.GetReason() != "", true)
	case *commitpb.LogUnfence:
		return m.fence(p.GetStream(), p.GetPartition(), true, false)
	case *commitpb.Trim:
		return m.trim(p)
	case *commitpb.Skip:
		return Verdict{OK: m.skip(p)}
	case *commitpb.Recovered:
		ok := p.GetEpoch() == m.Epoch+1
		if ok {
			m.Epoch++
			clear(m.Writers)
		}
		return Verdict{OK: ok}
	default:
		return Verdict{}
	}
}

func (m *Model) updateStream(p *commitpb.StreamUpdate) bool {
	st := m.Streams[base.StreamID(p.GetStream())]
	alone := p.GetTable() == nil && p.GetRetention() == nil
	switch {
	case st == nil, alone && p.GetProperties() == nil, !soundProperties(p.GetProperties().GetValues()):
		return false
	case st.Version != p.GetExpectedVersion() && (!alone || p.GetExpectedVersion() != 0):
		return false
	case p.GetProperties() != nil && p.GetProperties().GetSourceRevision() <= st.Source:
		return false
	}
	if p.GetProperties() != nil {
		st.Source = p.GetProperties().GetSourceRevision()
	}
	st.Version++
	return true
}

func soundProperties(all []*commitpb.Property) bool {
	for i, p := range all {
		if p.GetKey() == "" || i > 0 && all[i-1].GetKey() >= p.GetKey() {
			return false
		}
	}
	return true
}

func (m *Model) addPartitions(p *commitpb.PartitionsAdd) bool {
	st := m.Streams[base.StreamID(p.GetStream())]
	if st == nil || p.GetPartitions() > 4096 || int(p.GetPartitions()) <= len(st.Logs) {
		return false
	}
	for len(st.Logs) < int(p.GetPartitions()) {
		st.Logs = append(st.Logs, &Log{})
	}
	st.Version++
	return true
}

func (m *Model) deleteStream(p *commitpb.StreamDelete) bool {
	id := base.StreamID(p.GetStream())
	st, live := m.Streams[id]
	if !live {
		st = m.Kept[id]
	}
	if st == nil || !live && !p.GetPurge() {
		return false
	}
	delete(m.Streams, id)
	delete(m.Kept, id)
	if !p.GetPurge() {
		m.Kept[id] = st
		return true
	}
	var keys []string
	for _, l := range st.Logs {
		for _, r := range l.Records {
			keys = append(keys, r.Key)
		}
	}
	m.bury(keys)
	return true
}

// bury marks the objects dead that no record lies in any more.
func (m *Model) bury(keys []string) {
	live := m.Live()
	for _, key := range keys {
		if key != "" && live[key] == 0 {
			m.Dead[key] = true
		}
	}
}

func (m *Model) seal(p *commitpb.NamespaceSeal) bool {
	name, id := p.GetNamespace(), p.GetNamespaceId()
	sealed, isSealed := m.Sealed[name]
	if base.CheckName(name) != nil {
		return false
	}
	if p.GetUndo() {
		if isSealed && sealed == id {
			delete(m.Sealed, name)
			return true
		}
		return false
	}
	for _, st := range m.Streams {
		if st.Name.Namespace == name {
			return false
		}
	}
	if isSealed && id <= sealed {
		return false
	}
	m.Sealed[name] = id
	return true
}

func (m *Model) fence(stream uint64, partitions []uint32, sound, fenced bool) Verdict {
	if m.Streams[base.StreamID(stream)] == nil || len(partitions) == 0 || !sound {
		return Verdict{}
	}
	v := Verdict{OK: true, Logs: make([]bool, len(partitions))}
	for i, partition := range partitions {
		l := m.Log(stream, partition)
		if v.Logs[i] = l != nil && l.Fenced != fenced; v.Logs[i] {
			l.Fenced = fenced
		}
	}
	return v
}

func (m *Model) trim(p *commitpb.Trim) Verdict {
	n := len(p.GetPartition())
	if m.Streams[base.StreamID(p.GetStream())] == nil || n == 0 || n != len(p.GetOffset()) {
		return Verdict{}
	}
	v := Verdict{OK: true, Logs: make([]bool, n)}
	for i, partition := range p.GetPartition() {
		l, to := m.Log(p.GetStream(), partition), base.Offset(p.GetOffset()[i]) //nolint:gosec // small
		if l == nil || int(to) > len(l.Records) || to <= l.Start && (!p.GetHard() || to <= l.Floor) {
			continue
		}
		v.Logs[i] = true
		l.Start = max(l.Start, to)
		if p.GetHard() {
			l.Floor = to
			m.drop(l)
		}
	}
	return v
}

// drop forgets where the records of entries lie that end before the floor.
func (m *Model) drop(l *Log) {
	var keys []string
	for i := range l.Records[:l.Floor] {
		entry := l.Records[i].Entry
		kept := int(l.Floor) < len(l.Records) && l.Records[l.Floor].Entry == entry
		if !kept {
			keys = append(keys, l.Records[i].Key)
			l.Records[i].Key = ""
		}
	}
	m.bury(keys)
}

func (m *Model) skip(p *commitpb.Skip) bool {
	l := m.Log(p.GetStream(), p.GetPartition())
	if l == nil || p.GetReason() == "" || p.GetStart() != uint64(l.Prepared) || p.GetEnd() <= p.GetStart() || base.Offset(p.GetEnd()) > l.Floor { //nolint:gosec // small
		return false
	}
	st := m.Streams[base.StreamID(p.GetStream())]
	l.Prepared = base.Offset(p.GetEnd()) //nolint:gosec // within the log
	n := p.GetEnd() - p.GetStart()
	if st.UUID == "" {
		l.Materialized = l.Prepared
		l.LeftOut += int64(n) //nolint:gosec // within the log
		return true
	}
	l.Pending = append(l.Pending, &commitpb.PreparedRange{
		Stream: p.GetStream(), Partition: p.GetPartition(), Start: p.GetStart(), End: p.GetEnd(),
		TableUuid: st.UUID, DeadLetterUuid: st.DeadLetterUUID, Filtered: n, Skipped: p.GetReason(),
	})
	return true
}

// group takes back the verdicts on the blocks of a producer that may not all land.
func (m *Model) group(p *commitpb.Append, g *commitpb.ProducerGroup, verdicts []bool) {
	ok := true
	for _, b := range g.GetBlock() {
		ok = ok && verdicts[b]
	}
	if ok {
		ok = m.Streams[base.StreamID(p.GetStream()[g.GetBlock()[0]])].admit(g)
	}
	for _, b := range g.GetBlock() {
		verdicts[b] = ok
	}
}

// admit takes sequences when all are new and none is older than what is remembered.
func (st *Stream) admit(g *commitpb.ProducerGroup) bool {
	var newest uint64
	for q := range st.Sequences[g.GetProducer()] {
		newest = max(newest, q)
	}
	all := sequences(g)
	for _, q := range all {
		if st.Sequences[g.GetProducer()][q] || q+65_536 <= newest {
			return false
		}
	}
	if st.Sequences[g.GetProducer()] == nil {
		st.Sequences[g.GetProducer()] = make(map[uint64]bool)
	}
	for _, q := range all {
		st.Sequences[g.GetProducer()][q] = true
	}
	return true
}

func sequences(g *commitpb.ProducerGroup) (all []uint64) {
	for i, first := range g.GetFirst() {
		for n := range g.GetCount()[i] {
			all = append(all, first+n)
		}
	}
	return all
}

func soundGroups(p *commitpb.Append) bool {
	var taken []uint32
	for _, g := range p.GetGroups() {
		if g.GetProducer() == "" || len(g.GetBlock()) == 0 || len(g.GetFirst()) == 0 || len(g.GetFirst()) != len(g.GetCount()) ||
			slices.Contains(g.GetCount(), 0) {
			return false
		}
		for _, b := range g.GetBlock() {
			if int(b) >= len(p.GetStream()) || slices.Contains(taken, b) || p.GetStream()[b] != p.GetStream()[g.GetBlock()[0]] {
				return false
			}
			taken = append(taken, b)
		}
		end := uint64(0)
		for i, first := range g.GetFirst() {
			if i > 0 && first <= end {
				return false
			}
			end = first + g.GetCount()[i]
		}
		if end-g.GetFirst()[0] > 65_536 {
			return false
		}
	}
	return true
}
