package shard

import (
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// tokenBytes is the length of a WriterOpen token.
const tokenBytes = 16

func (s *State) foldWriterOpen(p *commitpb.WriterOpen, out *Outcome) {
	token := string(p.GetToken())
	switch {
	case len(token) != tokenBytes, len(p.GetInstance()) > base.MaxNameBytes:
		out.Rejected = Malformed
		return
	case s.tokens[token] != 0:
		out.Rejected, out.Writer = AlreadyPublished, s.tokens[token]
		return
	case len(s.writers) >= MaxOpenWriters:
		out.Rejected = LimitReached
		return
	}
	id := base.WriterID(out.Revision)
	s.writers[id] = &Writer{ID: id, Instance: p.GetInstance(), Next: 1, token: token}
	s.tokens[token] = id
	out.Writer = id
}

func (s *State) foldWriterFence(p *commitpb.WriterFence, out *Outcome) {
	out.Rejected = WriterClosed
	for _, id := range p.GetWriters() {
		w, ok := s.writers[base.WriterID(id)]
		if !ok {
			continue
		}
		delete(s.writers, w.ID)
		delete(s.tokens, w.token)
		out.Rejected = Accepted
	}
}

// foldRecovered closes every writer: whoever was cut off when coordination was lost
// cannot tell what of its records is in the rebuilt log.
func (s *State) foldRecovered(p *commitpb.Recovered, out *Outcome) {
	if p.GetEpoch() != s.epoch+1 {
		out.Rejected = NotNextEpoch
		return
	}
	s.epoch = p.GetEpoch()
	clear(s.writers)
	clear(s.tokens)
}

// take accepts the next record of a writer. It fills the outcome's writer and
// seq, and reports whether the record may be folded. A gap means that a record
// was lost in the middle: the shard stops.
func (s *State) take(writer, seq uint64, out *Outcome) (bool, error) {
	out.Writer, out.Seq = base.WriterID(writer), base.Seq(seq)
	w, ok := s.writers[out.Writer]
	switch {
	case !ok:
		out.Rejected = WriterClosed
		return false, nil
	case out.Seq < w.Next:
		out.Rejected = AlreadyPublished
		return false, nil
	case out.Seq > w.Next:
		return false, fmt.Errorf("writer %d published seq %d, expected %d: a record was lost: %w", w.ID, seq, w.Next, base.ErrCorrupt)
	}
	w.Next++
	return true, nil
}
