package shard

import (
	"math"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

func (s *State) foldPrepared(p *commitpb.Prepared, out *Outcome) error {
	ok, err := s.take(p.GetWriter(), p.GetSeq(), out)
	if !ok || err != nil {
		return err
	}
	if len(p.GetRanges()) == 0 {
		out.Rejected = Malformed
		return nil
	}
	out.Logs = make([]LogOutcome, len(p.GetRanges()))
	for i, r := range p.GetRanges() {
		id := base.LogID{Stream: base.StreamID(r.GetStream()), Partition: base.Partition(min(r.GetPartition(), math.MaxInt32))}
		out.Logs[i] = LogOutcome{Log: id, Base: base.Offset(r.GetStart())} //nolint:gosec // checked in prepareRange
		out.Logs[i].Rejected = s.prepareRange(id, r, out.Time)
	}
	return nil
}

// prepareRange binds a range to its table files. The first Prepared of a range
// wins: a later decode of it was for nothing.
func (s *State) prepareRange(id base.LogID, r *commitpb.PreparedRange, now base.Millis) Reason {
	st, ok := s.streams[id.Stream]
	if !ok {
		return NoStream
	}
	l, ok := s.Log(id)
	switch {
	case !ok:
		return NoPartition
	case r.GetTableUuid() == "", r.GetSkipped() != "", r.GetStart() >= r.GetEnd(), r.GetEnd() > math.MaxInt64,
		r.GetFiltered() > r.GetEnd()-r.GetStart():
		return Malformed
	case len(r.GetDeadLetter()) > 0 && r.GetDeadLetterUuid() == "":
		return Malformed
	case st.Table.UUID != "" && st.Table.UUID != r.GetTableUuid(),
		slices.Contains(st.Former, r.GetTableUuid()), slices.Contains(st.Former, r.GetDeadLetterUuid()):
		return TableChanged
	case st.Table.DeadLetterUUID != "" && r.GetDeadLetterUuid() != "" && st.Table.DeadLetterUUID != r.GetDeadLetterUuid():
		return TableChanged
	case r.GetReplaces() != "":
		if why := l.table.replace(r); why != Accepted {
			return why
		}
		st.bind(r)
		return Accepted
	case base.Offset(r.GetStart()) != l.table.prepared: //nolint:gosec // checked
		return NotAtMark
	case base.Offset(r.GetEnd()) > l.head: //nolint:gosec // checked
		return BeyondHead
	}
	st.bind(r)
	l.table.prepared = base.Offset(r.GetEnd()) //nolint:gosec // checked
	l.table.pending = append(l.table.pending, r)
	l.table.pendingSince = append(l.table.pendingSince, now)
	return Accepted
}

// bind ties the stream to the tables that a range was written for. The first time
// counts as a change of the stream: a StreamUpdate that was decided while the table
// could still get another name then comes too late.
func (st *Stream) bind(r *commitpb.PreparedRange) {
	if st.Table.UUID == "" {
		st.Table.UUID = r.GetTableUuid()
		st.Version++
	}
	if r.GetDeadLetterUuid() != "" {
		st.Table.DeadLetterUUID = r.GetDeadLetterUuid()
	}
}

// unbind forgets the tables but for their uuids: a range that was decoded for one
// of them before, and comes late, would bind it again.
func (st *Stream) unbind() {
	st.Former = append(st.Former, st.Table.UUID)
	if st.Table.DeadLetterUUID != "" {
		st.Former = append(st.Former, st.Table.DeadLetterUUID)
	}
	st.Former = st.Former[max(0, len(st.Former)-MaxFormerTables):]
	st.Table = TableBinding{}
}

func (s *State) foldMaterialized(p *commitpb.Materialized, out *Outcome) {
	out.Stream = base.StreamID(p.GetStream())
	st, ok := s.streams[out.Stream]
	switch {
	case !ok:
		out.Rejected = NoStream
		return
	case len(p.GetPartition()) != len(p.GetEnd()), len(p.GetEnd()) == 0:
		out.Rejected = Malformed
		return
	case st.Table.UUID == "" || st.Table.UUID != p.GetTableUuid(),
		st.Table.DeadLetterUUID != "" && p.GetDeadLetterUuid() != "" && st.Table.DeadLetterUUID != p.GetDeadLetterUuid():
		out.Rejected = TableChanged
		return
	}
	out.Logs = make([]LogOutcome, len(p.GetEnd()))
	moved := false
	for i, end := range p.GetEnd() {
		id := base.LogID{Stream: st.ID, Partition: base.Partition(min(p.GetPartition()[i], math.MaxInt32))}
		out.Logs[i] = LogOutcome{Log: id, Base: base.Offset(min(end, math.MaxInt64))}
		out.Logs[i].Rejected = s.materialize(id, out.Logs[i].Base)
		moved = moved || out.Logs[i].Rejected == Accepted
	}
	if !moved {
		return
	}
	st.Table.Snapshot, st.Table.CommitID = p.GetSnapshot(), p.GetCommitId()
	if p.GetDeadLetterUuid() != "" {
		st.Table.DeadLetterSnapshot, st.Table.DeadLetterCommitID = p.GetDeadLetterSnapshot(), p.GetDeadLetterCommitId()
	}
}

// materialize moves the mark forward over whole prepared ranges. The mark never
// moves back: an older committer's record is AlreadyPublished.
func (s *State) materialize(id base.LogID, end base.Offset) Reason {
	l, ok := s.Log(id)
	switch {
	case !ok:
		return NoPartition
	case end <= l.table.materialized:
		return AlreadyPublished
	case end > l.table.prepared:
		return NotPrepared
	}
	t := &l.table
	n := 0
	for n < len(t.pending) && base.Offset(t.pending[n].GetEnd()) <= end { //nolint:gosec // checked when prepared
		n++
	}
	if n == 0 || base.Offset(t.pending[n-1].GetEnd()) != end { //nolint:gosec // checked when prepared
		return NotPrepared
	}
	t.materialized = end
	for _, p := range t.pending[:n] {
		t.leftOut += int64(p.GetFiltered()) //nolint:gosec // at most the range's length
	}
	t.pending = append(t.pending[:0:0], t.pending[n:]...)
	t.pendingSince = append(t.pendingSince[:0:0], t.pendingSince[n:]...)
	return Accepted
}

// replace puts the files of a range that was decoded again in the place of those
// that were lost. The verdicts on its records stand: the counts must be the same.
func (t *tableProgress) replace(r *commitpb.PreparedRange) Reason {
	for i, old := range t.pending {
		if old.GetStart() != r.GetStart() || old.GetEnd() != r.GetEnd() || !holds(old, r.GetReplaces()) {
			continue
		}
		if rows(old.GetMain()) != rows(r.GetMain()) || rows(old.GetDeadLetter()) != rows(r.GetDeadLetter()) || old.GetFiltered() != r.GetFiltered() {
			return Malformed
		}
		t.pending[i] = r
		return Accepted
	}
	return NotPrepared
}

func holds(r *commitpb.PreparedRange, path string) bool {
	has := func(f *commitpb.DataFile) bool { return f.GetPath() == path }
	return slices.ContainsFunc(r.GetMain(), has) || slices.ContainsFunc(r.GetDeadLetter(), has)
}

func rows(files []*commitpb.DataFile) (n uint64) {
	for _, f := range files {
		n += f.GetRows()
	}
	return n
}

func (s *State) foldTableReset(p *commitpb.TableReset, out *Outcome) {
	out.Stream = base.StreamID(p.GetStream())
	st, ok := s.streams[out.Stream]
	switch {
	case !ok:
		out.Rejected = NoStream
		return
	case st.Table.UUID == "" || st.Table.UUID != p.GetTableUuid():
		out.Rejected = TableChanged
		return
	}
	st.unbind()
	for _, l := range st.Logs {
		l.table = tableProgress{prepared: l.start, materialized: l.start}
	}
}
