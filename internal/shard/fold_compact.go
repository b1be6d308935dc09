package shard

import (
	"math"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

func (s *State) foldCompact(p *commitpb.Compact, out *Outcome) error {
	ok, err := s.take(p.GetWriter(), p.GetSeq(), out)
	if !ok || err != nil {
		return err
	}
	if !validCompact(p) || base.Revision(p.GetReadRevision()) >= out.Revision {
		// The keys cannot be told from a malformed record; its objects are
		// found as orphans once the writer is closed.
		out.Rejected = Malformed
		return nil
	}
	out.Logs = make([]LogOutcome, len(p.GetStream()))
	for i := range out.Logs {
		out.Logs[i] = s.compactLog(p, i, out)
	}
	return nil
}

func (s *State) compactLog(p *commitpb.Compact, i int, out *Outcome) LogOutcome {
	id := base.LogID{Stream: base.StreamID(p.GetStream()[i]), Partition: base.Partition(p.GetPartition()[i])} //nolint:gosec // checked
	r := base.OffsetRange{Start: base.Offset(p.GetStart()[i]), End: base.Offset(p.GetEnd()[i])}               //nolint:gosec // checked
	lo := LogOutcome{Log: id, Base: r.Start, Records: int(r.Len())}
	size := int64(p.GetSize()[i]) //nolint:gosec // checked
	l, first, last, reason := s.compactable(id, r, base.Revision(p.GetReadRevision()))
	if lo.Rejected = reason; reason != Accepted {
		s.bury(base.CompactedKey(s.shard, out.Writer, id, r, out.Seq), size)
		return lo
	}
	newest := s.objects.get(l.entries[last-1].object).appendTime
	ref := s.objects.add(object{
		writer: out.Writer, seq: out.Seq, size: size,
		revision: out.Revision, appendTime: newest, live: 1, storage: Compacted,
	})
	for _, e := range l.entries[first:last] {
		s.release(e.object, id, base.OffsetRange{Start: e.base, End: e.end()})
	}
	s.entries -= last - first - 1
	l.entries = slices.Replace(l.entries, first, last, indexEntry{
		base: r.Start, records: uint32(r.Len()), object: ref, //nolint:gosec // checked
	})
	return lo
}

// compactable finds the entries [first, last) that a range replaces: whole live
// ones, none newer than what the pass had read. A range whose prefix was trimmed
// while the pass ran still counts.
func (s *State) compactable(id base.LogID, r base.OffsetRange, read base.Revision) (l *Log, first, last int, why Reason) {
	if _, ok := s.streams[id.Stream]; !ok {
		return nil, 0, 0, NoStream
	}
	l, ok := s.Log(id)
	if !ok {
		return nil, 0, 0, NoPartition
	}
	first = l.search(max(r.Start, l.floor))
	last = l.search(r.End-1) + 1
	if last > len(l.entries) || first >= last || l.entries[last-1].end() != r.End {
		return nil, 0, 0, NotAligned
	}
	if first > 0 && s.objects.get(l.entries[first-1].object).storage == Raw {
		// Compaction goes in order, so that what is raw is always a log's end.
		return nil, 0, 0, NotAtMark
	}
	if b := l.entries[first].base; b != r.Start && (b < r.Start || first > 0 || r.Start >= l.floor) {
		return nil, 0, 0, NotAligned
	}
	for _, e := range l.entries[first:last] {
		if s.objects.get(e.object).revision > read {
			return nil, 0, 0, TooNew
		}
	}
	return l, first, last, Accepted
}

// validCompact checks what no correct pass gets wrong. A log may occur once: the
// key of an object follows from log and range, and a second part with the same key
// would bury the object that the first made live.
func validCompact(p *commitpb.Compact) bool {
	n := len(p.GetStream())
	if n == 0 || len(p.GetPartition()) != n || len(p.GetStart()) != n || len(p.GetEnd()) != n || len(p.GetSize()) != n {
		return false
	}
	seen := make(map[base.LogID]bool, n)
	for i := range n {
		id := base.LogID{Stream: base.StreamID(p.GetStream()[i]), Partition: base.Partition(min(p.GetPartition()[i], MaxPartitions))}
		if seen[id] {
			return false
		}
		seen[id] = true
		start, end := p.GetStart()[i], p.GetEnd()[i]
		if start >= end || end > math.MaxInt64 || end-start > math.MaxInt32 ||
			p.GetPartition()[i] >= MaxPartitions || p.GetSize()[i] > math.MaxInt64 {
			return false
		}
	}
	return true
}

func (s *State) foldReclaimed(p *commitpb.Reclaimed, out *Outcome) {
	out.Rejected = NotDead
	for _, key := range p.GetKeys() {
		if _, ok := s.dead[key]; ok {
			delete(s.dead, key)
			out.Rejected = Accepted
		}
	}
}
