package sim

import (
	"errors"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/log"
)

// reader reads one log on and on, and now and then from somewhere else.
type reader struct {
	instance *instance
	id       base.LogID
	fetcher  *log.Fetcher
	machine  *log.Reader
	at       base.Offset
	busy     bool
}

func newReader(i *instance, id base.LogID) *reader {
	fetcher := i.newFetcher()
	return &reader{instance: i, id: id, fetcher: fetcher, machine: log.NewReader(fetcher, log.NewIndex(i.Follower), id)}
}

// step reads a little. What comes must be what was appended; an error must be a
// fault's.
func (r *reader) step() {
	if r.busy {
		return
	}
	r.busy = true
	defer func() { r.busy = false }()
	w := r.instance.world
	if w.rng.IntN(6) == 0 && r.at > 0 {
		r.at = base.Offset(w.rng.Int64N(int64(r.at)))
	}
	damaged := w.oracle.damaged
	batch, err := r.machine.Read(w.ctx, r.at, log.Limits{MaxMessages: 1 + w.rng.IntN(8)})
	switch {
	case err == nil:
	case errors.Is(err, base.ErrUnavailable), errors.Is(err, base.ErrUnknown):
	case errors.Is(err, base.ErrCorrupt) && w.oracle.damaged > damaged:
	default:
		w.fail("invariant 1: reading offset %d of log %s at %s: %v", r.at, r.id, r.instance.name, err)
	}
	w.trace.add("%s reads %d of log %s from %d: %v", r.instance.name, len(batch.Records), r.id, r.at, err)
	for n := range batch.Records {
		w.oracle.compareRecord("reading", r.id, r.at+base.Offset(n), &batch.Records[n])
	}
	w.count.read += len(batch.Records)
	r.at += base.Offset(len(batch.Records))
}
