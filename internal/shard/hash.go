package shard

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"google.golang.org/protobuf/proto"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Hash returns a hash over everything that the state holds, in a canonical
// order. Two states that folded the same history have equal hashes; it costs
// time in the size of the index.
func (s *State) Hash() base.Hash {
	w := canonical{h: sha256.New()}
	w.bytes(s.cluster[:])
	w.numbers(uint64(s.shard), flag(s.created), uint64(s.shards), uint64(s.foldVersion)) //nolint:gosec // canonical form only
	w.numbers(uint64(s.revision), uint64(s.time), uint64(s.foreign))                     //nolint:gosec // canonical form only
	w.bytes(s.hash[:])
	w.numbers(uint64(len(s.streams)))
	for _, st := range s.Streams() {
		s.hashStream(&w, st)
	}
	w.numbers(uint64(len(s.writers)))
	for _, wr := range s.Writers() {
		w.numbers(uint64(wr.ID), uint64(wr.Next))
		w.text(wr.Instance)
		w.text(wr.token)
	}
	w.numbers(uint64(len(s.dead)))
	for _, d := range s.Dead() {
		w.text(d.Key)
		w.numbers(uint64(d.Since), uint64(d.Size)) //nolint:gosec // canonical form only
	}
	if s.foldVersion >= 2 {
		s.hashVersion2(&w)
	}
	var sum base.Hash
	w.h.Sum(sum[:0])
	return sum
}

func (s *State) hashStream(w *canonical, st *Stream) {
	w.numbers(uint64(st.ID), st.Version, uint64(st.Table.Snapshot), uint64(st.Table.DeadLetterSnapshot)) //nolint:gosec // canonical form only
	w.text(st.Name.String())
	w.message(st.Policy)
	w.text(st.Table.UUID)
	w.text(st.Table.DeadLetterUUID)
	w.text(st.Table.CommitID)
	w.text(st.Table.DeadLetterCommitID)
	w.numbers(uint64(len(st.Former)))
	for _, uuid := range st.Former {
		w.text(uuid)
	}
	w.numbers(uint64(len(st.Logs)))
	for _, l := range st.Logs {
		w.numbers(uint64(l.start), uint64(l.head), uint64(l.bytes), uint64(len(l.entries))) //nolint:gosec // canonical form only
		for i := range l.entries {
			e := s.entry(l, i)
			w.numbers(uint64(e.Range.Start), uint64(e.Range.End), uint64(e.Storage))                          //nolint:gosec // canonical form only
			w.numbers(uint64(e.Size), uint64(e.Pos), uint64(e.Len), uint64(e.Revision), uint64(e.AppendTime)) //nolint:gosec // canonical form only
			w.text(e.Key())
		}
		w.numbers(uint64(l.table.prepared), uint64(l.table.materialized), uint64(l.table.leftOut), uint64(len(l.table.pending))) //nolint:gosec // canonical form only
		for i, p := range l.table.pending {
			w.message(p)
			w.numbers(uint64(l.table.pendingSince[i])) //nolint:gosec // canonical form only
		}
	}
}

// canonical writes values to a hash so that no two sequences of values collide.
type canonical struct {
	h       hash.Hash
	scratch []byte
}

func (w *canonical) numbers(values ...uint64) {
	w.scratch = w.scratch[:0]
	for _, v := range values {
		w.scratch = binary.BigEndian.AppendUint64(w.scratch, v)
	}
	w.h.Write(w.scratch)
}

func (w *canonical) bytes(b []byte) {
	w.numbers(uint64(len(b)))
	w.h.Write(b)
}

func (w *canonical) text(t string) { w.bytes([]byte(t)) }

func (w *canonical) message(m proto.Message) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		// A message that was decoded can be encoded; anything else is memory
		// corruption, and a wrong hash would hide it.
		panic(err)
	}
	w.bytes(b)
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
