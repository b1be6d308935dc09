package shard

import (
	"math"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// maxReasonBytes bounds the text of a fence or a skip.
const maxReasonBytes = 1024

// foldTrim moves the marks of each log. They never move back, so that a trim that
// comes late, or twice, changes nothing.
func (s *State) foldTrim(p *commitpb.Trim, out *Outcome) {
	out.Stream = base.StreamID(p.GetStream())
	if out.Rejected = s.partsOf(out.Stream, len(p.GetPartition()), len(p.GetOffset())); out.Rejected != Accepted {
		return
	}
	out.Logs = make([]LogOutcome, len(p.GetPartition()))
	for i, partition := range p.GetPartition() {
		to := base.Offset(min(p.GetOffset()[i], math.MaxInt64))
		id := base.LogID{Stream: out.Stream, Partition: base.Partition(min(partition, math.MaxInt32))}
		out.Logs[i] = LogOutcome{Log: id, Base: to, Rejected: s.trim(id, to, p.GetHard())}
	}
}

func (s *State) trim(id base.LogID, to base.Offset, hard bool) Reason {
	l, ok := s.Log(id)
	switch {
	case !ok:
		return NoPartition
	case to > l.head:
		return BeyondHead
	case to <= l.start && (!hard || to <= l.floor):
		return TrimmedAlready
	}
	l.start = max(l.start, to)
	if hard {
		l.floor = to
		n := 0
		for n < len(l.entries) && l.entries[n].end() <= to {
			n++
		}
		s.dropEntries(l, n)
	}
	return Accepted
}

// dropEntries takes the first n entries out of a log's index.
func (s *State) dropEntries(l *Log, n int) {
	for _, e := range l.entries[:n] {
		s.release(e.object, l.id, base.OffsetRange{Start: e.base, End: e.end()})
	}
	s.entries -= n
	l.entries = append(l.entries[:0:0], l.entries[n:]...)
}

// partsOf checks the shape of a record that has a part for each of some logs.
func (s *State) partsOf(stream base.StreamID, parts ...int) Reason {
	if _, ok := s.streams[stream]; !ok {
		return NoStream
	}
	for _, n := range parts {
		if n == 0 || n != parts[0] {
			return Malformed
		}
	}
	return Accepted
}

// foldSkip moves the prepared mark over records that are gone. It travels to the
// table like a prepared range without files, so that the table's own mark follows.
func (s *State) foldSkip(p *commitpb.Skip, out *Outcome) {
	out.Stream = base.StreamID(p.GetStream())
	id := base.LogID{Stream: out.Stream, Partition: base.Partition(min(p.GetPartition(), math.MaxInt32))}
	st, ok := s.streams[out.Stream]
	if !ok {
		out.Rejected = NoStream
		return
	}
	l, ok := s.Log(id)
	switch {
	case !ok:
		out.Rejected = NoPartition
	case p.GetStart() >= p.GetEnd(), p.GetEnd() > math.MaxInt64, p.GetReason() == "", len(p.GetReason()) > maxReasonBytes:
		out.Rejected = Malformed
	case base.Offset(p.GetStart()) != l.table.prepared: //nolint:gosec // checked
		out.Rejected = NotAtMark
	case base.Offset(p.GetEnd()) > l.floor: //nolint:gosec // checked
		out.Rejected = NotTrimmed
	default:
		l.table.skip(st, p, out.Time)
	}
}

func (t *tableProgress) skip(st *Stream, p *commitpb.Skip, now base.Millis) {
	n := p.GetEnd() - p.GetStart()
	t.skipped += int64(n)                //nolint:gosec // checked by foldSkip
	t.prepared = base.Offset(p.GetEnd()) //nolint:gosec // checked by foldSkip
	if st.Table.UUID == "" {
		// There is no table whose mark could follow.
		t.materialized = t.prepared
		t.leftOut += int64(n) //nolint:gosec // checked by foldSkip
		return
	}
	t.pending = append(t.pending, &commitpb.PreparedRange{
		Stream: p.GetStream(), Partition: p.GetPartition(), Start: p.GetStart(), End: p.GetEnd(),
		TableUuid: st.Table.UUID, DeadLetterUuid: st.Table.DeadLetterUUID, Filtered: n, Skipped: p.GetReason(),
	})
	t.pendingSince = append(t.pendingSince, now)
}

func (s *State) foldLogFence(p *commitpb.LogFence, out *Outcome) {
	out.Stream = base.StreamID(p.GetStream())
	if out.Rejected = s.partsOf(out.Stream, len(p.GetPartition())); out.Rejected != Accepted {
		return
	}
	if p.GetReason() == "" || len(p.GetReason()) > maxReasonBytes {
		out.Rejected = Malformed
		return
	}
	out.Logs = s.setFence(out.Stream, p.GetPartition(), p.GetReason())
}

func (s *State) foldLogUnfence(p *commitpb.LogUnfence, out *Outcome) {
	out.Stream = base.StreamID(p.GetStream())
	if out.Rejected = s.partsOf(out.Stream, len(p.GetPartition())); out.Rejected == Accepted {
		out.Logs = s.setFence(out.Stream, p.GetPartition(), "")
	}
}

// setFence fences each log with a reason, or lifts its fence with an empty one.
func (s *State) setFence(stream base.StreamID, partitions []uint32, reason string) []LogOutcome {
	outcomes := make([]LogOutcome, len(partitions))
	for i, partition := range partitions {
		id := base.LogID{Stream: stream, Partition: base.Partition(min(partition, math.MaxInt32))}
		outcomes[i].Log = id
		l, ok := s.Log(id)
		switch {
		case !ok:
			outcomes[i].Rejected = NoPartition
		case (l.fence == "") == (reason == ""):
			outcomes[i].Rejected = AlreadyPublished
		default:
			l.fence = reason
		}
	}
	return outcomes
}
