package shardtest

import (
	"math"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

func (m *Model) append(p *commitpb.Append) Verdict {
	if !m.take(p.GetWriter(), p.GetSeq()) {
		return Verdict{}
	}
	key := base.WALKey(m.Shard, base.WriterID(p.GetWriter()), base.Seq(p.GetSeq()))
	m.Dead[key] = true
	if !soundAppend(p) || !soundGroups(p) {
		return Verdict{}
	}
	v := Verdict{OK: true, Logs: make([]bool, len(p.GetStream()))}
	for i := range p.GetStream() {
		l := m.Log(p.GetStream()[i], p.GetPartition()[i])
		v.Logs[i] = l != nil && !l.Fenced
	}
	for _, g := range p.GetGroups() {
		m.group(p, g, v.Logs)
	}
	for i := range p.GetStream() {
		l := m.Log(p.GetStream()[i], p.GetPartition()[i])
		if !v.Logs[i] {
			continue
		}
		delete(m.Dead, key)
		m.entries++
		place := Place{Entry: m.entries, Key: key, Revision: m.Revision, Time: m.Time}
		l.Records = append(l.Records, slices.Repeat([]Place{place}, int(p.GetRecords()[i]))...)
	}
	return v
}

func soundAppend(p *commitpb.Append) bool {
	n := len(p.GetStream())
	lengths := []int{len(p.GetPartition()), len(p.GetRecords()), len(p.GetPos()), len(p.GetLen()), len(p.GetMinTime()), len(p.GetMaxTime())}
	if n == 0 || p.GetSize() > math.MaxUint32 || slices.ContainsFunc(lengths, func(l int) bool { return l != n }) {
		return false
	}
	for i := range n {
		if p.GetRecords()[i] == 0 || p.GetRecords()[i] > math.MaxInt32 || p.GetLen()[i] == 0 || p.GetPartition()[i] >= 4096 ||
			uint64(p.GetPos()[i])+uint64(p.GetLen()[i]) > p.GetSize() {
			return false
		}
	}
	return true
}

func (m *Model) compact(p *commitpb.Compact) Verdict {
	if !m.take(p.GetWriter(), p.GetSeq()) || !m.soundCompact(p) {
		return Verdict{}
	}
	v := Verdict{OK: true, Logs: make([]bool, len(p.GetStream()))}
	for i := range p.GetStream() {
		log := base.LogID{Stream: base.StreamID(p.GetStream()[i]), Partition: base.Partition(p.GetPartition()[i])} //nolint:gosec // sound
		r := base.OffsetRange{Start: base.Offset(p.GetStart()[i]), End: base.Offset(p.GetEnd()[i])}                //nolint:gosec // sound
		key := base.CompactedKey(m.Shard, base.WriterID(p.GetWriter()), log, r, base.Seq(p.GetSeq()))
		l := m.Log(p.GetStream()[i], p.GetPartition()[i])
		if v.Logs[i] = l != nil && l.compactable(r, base.Revision(p.GetReadRevision())); !v.Logs[i] {
			m.Dead[key] = true
			continue
		}
		m.swap(l, r, key)
	}
	return v
}

func (m *Model) soundCompact(p *commitpb.Compact) bool {
	n := len(p.GetStream())
	lengths := []int{len(p.GetPartition()), len(p.GetStart()), len(p.GetEnd()), len(p.GetSize())}
	if n == 0 || p.GetReadRevision() >= uint64(m.Revision) || slices.ContainsFunc(lengths, func(l int) bool { return l != n }) {
		return false
	}
	for i := range n {
		start, end := p.GetStart()[i], p.GetEnd()[i]
		if start >= end || end > math.MaxInt64 || end-start > math.MaxInt32 || p.GetPartition()[i] >= 4096 || p.GetSize()[i] > math.MaxInt64 {
			return false
		}
		for j := range i {
			if p.GetStream()[i] == p.GetStream()[j] && p.GetPartition()[i] == p.GetPartition()[j] {
				return false
			}
		}
	}
	return true
}

// compactable is whether a range is whole entries, none newer than what was read,
// with nothing raw before it.
func (l *Log) compactable(r base.OffsetRange, read base.Revision) bool {
	// What was dropped before the first retained entry asks for nothing.
	cut := r.Start < l.Floor && r.Start < l.first()
	if int(r.End) > len(l.Records) || r.End <= l.first() || !cut && !l.boundary(r.Start) || !l.boundary(r.End) {
		return false
	}
	for i, p := range l.Records[:r.End] {
		if p.Key == "" {
			continue
		}
		if base.Offset(i) < r.Start && !p.Compacted || base.Offset(i) >= r.Start && p.Revision > read {
			return false
		}
	}
	return true
}

// first is the first offset of the first retained entry.
func (l *Log) first() base.Offset {
	i := slices.IndexFunc(l.Records, func(p Place) bool { return p.Key != "" })
	if i < 0 {
		i = len(l.Records)
	}
	return base.Offset(i)
}

// boundary is whether an entry begins or the log ends at an offset.
func (l *Log) boundary(o base.Offset) bool {
	return o == 0 || int(o) == len(l.Records) || l.Records[o].Entry != l.Records[o-1].Entry
}

func (m *Model) swap(l *Log, r base.OffsetRange, key string) {
	m.entries++
	replaced := make(map[string]bool)
	newest := l.Records[r.End-1].Time
	for i := r.Start; i < r.End; i++ {
		if l.Records[i].Key != "" {
			replaced[l.Records[i].Key] = true
		}
		l.Records[i] = Place{Entry: m.entries, Key: key, Compacted: true, Revision: m.Revision, Time: newest}
	}
	live := m.Live()
	for old := range replaced {
		if live[old] == 0 {
			m.Dead[old] = true
		}
	}
}

func (m *Model) prepare(p *commitpb.Prepared) Verdict {
	if !m.take(p.GetWriter(), p.GetSeq()) || len(p.GetRanges()) == 0 {
		return Verdict{}
	}
	v := Verdict{OK: true, Logs: make([]bool, len(p.GetRanges()))}
	for i, r := range p.GetRanges() {
		if v.Logs[i] = m.prepareRange(r); !v.Logs[i] {
			continue
		}
		st := m.Streams[base.StreamID(r.GetStream())]
		if st.UUID == "" {
			st.UUID = r.GetTableUuid()
			st.Version++
		}
		if r.GetDeadLetterUuid() != "" {
			st.DeadLetterUUID = r.GetDeadLetterUuid()
		}
	}
	return v
}

func (m *Model) prepareRange(r *commitpb.PreparedRange) bool {
	l := m.Log(r.GetStream(), r.GetPartition())
	if l == nil || r.GetTableUuid() == "" || r.GetSkipped() != "" || r.GetStart() >= r.GetEnd() || r.GetFiltered() > r.GetEnd()-r.GetStart() ||
		len(r.GetDeadLetter()) > 0 && r.GetDeadLetterUuid() == "" {
		return false
	}
	st := m.Streams[base.StreamID(r.GetStream())]
	other := func(bound, named string) bool { return bound != "" && named != "" && bound != named }
	if st.Former[r.GetTableUuid()] || st.Former[r.GetDeadLetterUuid()] {
		return false
	}
	if other(st.UUID, r.GetTableUuid()) || other(st.DeadLetterUUID, r.GetDeadLetterUuid()) {
		return false
	}
	if r.GetReplaces() != "" {
		return l.replace(r)
	}
	if r.GetStart() != uint64(l.Prepared) || r.GetEnd() > uint64(len(l.Records)) { //nolint:gosec // never negative
		return false
	}
	l.Prepared = base.Offset(r.GetEnd()) //nolint:gosec // within the log
	l.Pending = append(l.Pending, r)
	return true
}

func (l *Log) replace(r *commitpb.PreparedRange) bool {
	for i, old := range l.Pending {
		lost := append(paths(old.GetMain()), paths(old.GetDeadLetter())...)
		if old.GetStart() != r.GetStart() || old.GetEnd() != r.GetEnd() || !slices.Contains(lost, r.GetReplaces()) {
			continue
		}
		if rows(old.GetMain()) != rows(r.GetMain()) || rows(old.GetDeadLetter()) != rows(r.GetDeadLetter()) || old.GetFiltered() != r.GetFiltered() {
			return false
		}
		l.Pending[i] = r
		return true
	}
	return false
}

func paths(files []*commitpb.DataFile) (all []string) {
	for _, f := range files {
		all = append(all, f.GetPath())
	}
	return all
}

func rows(files []*commitpb.DataFile) (n uint64) {
	for _, f := range files {
		n += f.GetRows()
	}
	return n
}

func (m *Model) materialize(p *commitpb.Materialized) Verdict {
	st := m.Streams[base.StreamID(p.GetStream())]
	if st == nil || len(p.GetEnd()) == 0 || len(p.GetEnd()) != len(p.GetPartition()) || st.UUID == "" || st.UUID != p.GetTableUuid() ||
		st.DeadLetterUUID != "" && p.GetDeadLetterUuid() != "" && st.DeadLetterUUID != p.GetDeadLetterUuid() {
		return Verdict{}
	}
	v := Verdict{OK: true, Logs: make([]bool, len(p.GetEnd()))}
	for i, end := range p.GetEnd() {
		l := m.Log(p.GetStream(), p.GetPartition()[i])
		if l == nil {
			continue
		}
		at := slices.IndexFunc(l.Pending, func(r *commitpb.PreparedRange) bool { return r.GetEnd() == end })
		if v.Logs[i] = at >= 0; at < 0 {
			continue
		}
		for _, r := range l.Pending[:at+1] {
			l.LeftOut += int64(r.GetFiltered()) //nolint:gosec // at most the range
		}
		l.Materialized, l.Pending = base.Offset(end), l.Pending[at+1:] //nolint:gosec // a range's end
	}
	return v
}

func (m *Model) reset(p *commitpb.TableReset) bool {
	st := m.Streams[base.StreamID(p.GetStream())]
	if st == nil || st.UUID == "" || st.UUID != p.GetTableUuid() {
		return false
	}
	if st.Former == nil {
		st.Former = make(map[string]bool)
	}
	st.Former[st.UUID] = true
	if st.DeadLetterUUID != "" {
		st.Former[st.DeadLetterUUID] = true
	}
	st.UUID, st.DeadLetterUUID = "", ""
	for _, l := range st.Logs {
		l.Prepared, l.Materialized, l.Pending, l.LeftOut = l.Start, l.Start, nil, 0
	}
	return true
}
