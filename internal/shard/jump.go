package shard

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// NewFollowerAt returns a follower that goes on from a snapshot, which it owns from
// then on.
func NewFollowerAt(sn Snapshot) *Follower {
	f := NewFollower(sn.State.Cluster(), sn.State.Shard())
	f.startAtLocked(sn)
	return f
}

// startAtLocked replaces the state.
func (f *Follower) startAtLocked(sn Snapshot) {
	f.state = sn.State
	at := sn.State.Revision()
	f.ringSince = at
	f.ring[uint64(at)%ringSize] = prefixOf(sn.State.ChainHash())
	f.lastData, f.lastRecord = nil, sn.Record
}

// lastRecordLocked returns the SHA-256 of the newest applied record.
func (f *Follower) lastRecordLocked() base.Hash {
	if f.lastRecord != (base.Hash{}) || f.state.Revision() == 0 {
		return f.lastRecord
	}
	return sha256.Sum256(f.lastData)
}

// Jump goes on from a snapshot that is ahead, when the log no longer holds what
// lies between; an older one changes nothing. Nobody learns the outcomes of what
// was passed over: each subscribed writer gets one outcome with Recalled, which
// says what the state still tells, and a call of Publish that may have been among
// them ends as base.ErrUnknown. A snapshot from after a recovery stops the
// follower: what this process knows may be of records that were lost.
func (f *Follower) Jump(sn Snapshot) error {
	f.mu.Lock()
	type told struct {
		fn  func(Outcome)
		out Outcome
	}
	var tell []told
	err := f.jumpLocked(sn)
	if err == nil {
		for _, id := range slices.Sorted(maps.Keys(f.writers)) {
			tell = append(tell, told{f.writers[id], f.state.recall(id)})
		}
	}
	f.mu.Unlock()
	for _, t := range tell {
		t.fn(t.out)
	}
	return err
}

func (f *Follower) jumpLocked(sn Snapshot) error {
	switch at := f.state.Revision(); {
	case f.stopped != nil:
		return f.stopped
	case sn.State.Revision() <= at:
		return nil
	case at > 0 && sn.State.Epoch() != f.state.Epoch():
		return f.stopLocked(fmt.Errorf("%s was recovered after coordination was lost (epoch %d, this instance knows %d): restart this instance: %w",
			f.state.Shard(), sn.State.Epoch(), f.state.Epoch(), base.ErrCorrupt))
	}
	f.startAtLocked(sn)
	f.jumped = sn.State.Revision()
	maps.DeleteFunc(f.claimed, func(id base.WriterID, _ struct{}) bool {
		_, open := f.state.Writer(id)
		return !open
	})
	f.broadcastLocked()
	for id, ch := range f.grown {
		close(ch)
		delete(f.grown, id)
	}
	return nil
}

// Jumped returns the newest revision that was reached without applying it, or 0.
func (f *Follower) Jumped() base.Revision {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.jumped
}

// LogBytes returns the size of the records that were applied so far: those that a
// start at a snapshot or a jump left out do not count.
func (f *Follower) LogBytes() int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.logBytes
}

// sameRecordLocked compares an entry with the newest applied one.
func (f *Follower) sameRecordLocked(e coord.Entry) bool {
	return sha256.Sum256(e.Data) == f.lastRecordLocked()
}

// recall returns what a state tells of a writer's newest record when its outcome
// was not seen: Seq is the newest that was taken, and Logs names each log that
// still has its records as they were appended. A log that it does not name was
// refused, or was compacted or trimmed since. Of a closed writer, whose Seq is
// forgotten, it is the newest that any log still shows.
func (s *State) recall(id base.WriterID) Outcome {
	out := Outcome{Writer: id, Recalled: true, Time: s.time}
	w, open := s.writers[id]
	if open {
		out.Seq = w.Next - 1
	} else {
		out.Rejected = WriterClosed
		for i := range s.objects.all {
			if o := &s.objects.all[i]; o.writer == id && o.storage == Raw {
				out.Seq = max(out.Seq, o.seq)
			}
		}
	}
	ref := slices.IndexFunc(s.objects.all, func(o object) bool {
		return o.writer == id && o.seq == out.Seq && o.storage == Raw && o.live > 0
	})
	if ref < 0 {
		return out
	}
	o := s.objects.get(objectRef(ref)) //nolint:gosec // a place
	out.Revision, out.Time = o.revision, o.appendTime
	for _, streams := range []map[base.StreamID]*Stream{s.streams, s.kept} {
		for _, st := range streams {
			out.Logs = append(out.Logs, st.partsIn(objectRef(ref))...) //nolint:gosec // a place
		}
	}
	slices.SortFunc(out.Logs, func(a, b LogOutcome) int {
		return cmp.Or(cmp.Compare(a.Log.Stream, b.Log.Stream), cmp.Compare(a.Log.Partition, b.Log.Partition))
	})
	return out
}

// partsIn returns what each log of a stream has of an object.
func (st *Stream) partsIn(ref objectRef) (parts []LogOutcome) {
	for _, l := range st.Logs {
		for _, e := range slices.Backward(l.entries) {
			if e.object == ref {
				parts = append(parts, LogOutcome{Log: l.id, Base: e.base, Records: int(e.records)})
				break
			}
		}
	}
	return parts
}
