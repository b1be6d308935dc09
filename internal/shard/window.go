package shard

import (
	"cmp"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
)

// ProducerWindow is how many sequences, up to the newest one, a stream remembers
// of each producer, exactly.
const ProducerWindow = 65_536

// interval is the half-open range [first, end) of sequences.
type interval struct {
	first, end uint64
}

// window holds which sequences of a producer are in a stream, as intervals that
// ascend and do not touch. It never reaches below the newest sequence by more than
// ProducerWindow.
type window struct {
	intervals []interval
}

// low returns the lowest sequence that the window can hold.
func (w *window) low() uint64 {
	if len(w.intervals) == 0 {
		return 0
	}
	return max(ProducerWindow, w.intervals[len(w.intervals)-1].end) - ProducerWindow
}

// count returns how many of some sequences are in the window.
func (w *window) count(sequences []interval) (n uint64) {
	for _, q := range sequences {
		i, _ := slices.BinarySearchFunc(w.intervals, q.first, func(h interval, first uint64) int {
			return cmp.Compare(h.end, first+1)
		})
		for ; i < len(w.intervals) && w.intervals[i].first < q.end; i++ {
			n += min(q.end, w.intervals[i].end) - max(q.first, w.intervals[i].first)
		}
	}
	return n
}

// add puts sequences into the window and takes out what falls below it.
func (w *window) add(sequences []interval) {
	all := slices.Concat(w.intervals, sequences)
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.first, b.first) })
	merged := all[:0]
	for _, q := range all {
		if n := len(merged); n > 0 && merged[n-1].end >= q.first {
			merged[n-1].end = max(merged[n-1].end, q.end)
			continue
		}
		merged = append(merged, q)
	}
	w.intervals = merged
	low := w.low()
	for len(w.intervals) > 0 && w.intervals[0].end <= low {
		w.intervals = w.intervals[1:]
	}
	w.intervals[0].first = max(w.intervals[0].first, low)
	w.intervals = slices.Clone(w.intervals)
}

func count(sequences []interval) (n uint64) {
	for _, q := range sequences {
		n += q.end - q.first
	}
	return n
}

// SequenceState is what a stream knows of one sequence of a producer.
type SequenceState uint8

// What a stream knows of a sequence.
const (
	// SequenceNew: it is not in the stream.
	SequenceNew SequenceState = iota
	// SequenceKnown: it is in the stream.
	SequenceKnown
	// SequenceTooOld: it lies below the window, so nobody can tell.
	SequenceTooOld
)

// Sequence tells what a stream knows of a producer's sequence.
func (s *State) Sequence(id base.StreamID, producer string, sequence uint64) SequenceState {
	st, ok := s.streams[id]
	if !ok {
		return SequenceNew
	}
	w, ok := st.producers[producer]
	switch {
	case !ok:
		return SequenceNew
	case w.count([]interval{{first: sequence, end: sequence + 1}}) > 0:
		return SequenceKnown
	case sequence < w.low():
		return SequenceTooOld
	}
	return SequenceNew
}

// Producers returns how many producers the stream knows.
func (st *Stream) Producers() int { return len(st.producers) }
