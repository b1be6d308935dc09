package shard

import (
	"math"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// Limits of idempotent producers. They are part of the fold's rules.
const (
	// MaxProducers is the most producers that a stream may have.
	MaxProducers = 10_000
	// MaxProducerBytes is the longest a producer's name may be.
	MaxProducerBytes = 512
	// MaxIntervals bounds the intervals of all producers of a shard together.
	MaxIntervals = 4_000_000
)

// admitGroup tells whether a stream takes what a producer sent: all of its blocks,
// when none of its sequences is in the stream yet, or none of them.
func (s *State) admitGroup(p *commitpb.Append, g *commitpb.ProducerGroup, blocks []LogOutcome) {
	why := Accepted
	for _, b := range g.GetBlock() {
		if blocks[b].Rejected != Accepted {
			why = blocks[b].Rejected
			break
		}
	}
	if why == Accepted {
		why = s.admitSequences(base.StreamID(p.GetStream()[g.GetBlock()[0]]), g)
	}
	if why == Accepted {
		return
	}
	for _, b := range g.GetBlock() {
		blocks[b].Rejected = why
	}
}

func (s *State) admitSequences(id base.StreamID, g *commitpb.ProducerGroup) Reason {
	st := s.streams[id]
	w, known := st.producers[g.GetProducer()]
	if !known {
		w = &window{}
	}
	sequences := intervalsOf(g)
	switch found, total := w.count(sequences), count(sequences); {
	case found == total:
		return Duplicate
	case sequences[0].first < w.low():
		return BelowWindow
	case found > 0:
		return Overlaps
	case !known && len(st.producers) >= MaxProducers, s.intervals+len(sequences) > MaxIntervals:
		return LimitReached
	}
	s.intervals -= len(w.intervals)
	w.add(sequences)
	s.intervals += len(w.intervals)
	if !known {
		if st.producers == nil {
			st.producers = make(map[string]*window)
		}
		st.producers[g.GetProducer()] = w
	}
	return Accepted
}

// forgetProducers gives up the windows of a stream that takes no appends any more.
func (s *State) forgetProducers(st *Stream) {
	for _, w := range st.producers {
		s.intervals -= len(w.intervals)
	}
	st.producers = nil
}

func intervalsOf(g *commitpb.ProducerGroup) []interval {
	all := make([]interval, len(g.GetFirst()))
	for i := range all {
		all[i] = interval{first: g.GetFirst()[i], end: g.GetFirst()[i] + g.GetCount()[i]}
	}
	return all
}

// validGroups checks that a block belongs to one group at most, that a group's
// blocks are of one stream, and that its sequences fit into a window.
func validGroups(p *commitpb.Append) bool {
	if len(p.GetGroups()) == 0 {
		return true
	}
	taken := make([]bool, len(p.GetStream()))
	for _, g := range p.GetGroups() {
		if g.GetProducer() == "" || len(g.GetProducer()) > MaxProducerBytes || len(g.GetBlock()) == 0 || !validSequences(g) {
			return false
		}
		for _, b := range g.GetBlock() {
			if int(b) >= len(taken) || taken[b] || p.GetStream()[b] != p.GetStream()[g.GetBlock()[0]] {
				return false
			}
			taken[b] = true
		}
	}
	return true
}

func validSequences(g *commitpb.ProducerGroup) bool {
	n := len(g.GetFirst())
	if n == 0 || len(g.GetCount()) != n {
		return false
	}
	end := uint64(0)
	for i, first := range g.GetFirst() {
		c := g.GetCount()[i]
		if c == 0 || c > ProducerWindow || first > math.MaxInt64 || i > 0 && first <= end {
			return false
		}
		end = first + c
	}
	return end-g.GetFirst()[0] <= ProducerWindow
}
