package plugin

import (
	"errors"

	"github.com/lakestream-go/lakestream/engine"
)

// replay delivers rejected records of a batch again. It has a log of its own, so
// that the partition's reading goes on meanwhile where that is allowed.
type replay struct {
	partition *partition
	batch     engine.OffsetRange
	offsets   []engine.Offset
	attempt   int
	trouble   trouble
}

// run waits, reads the records and hands them over. What was trimmed meanwhile is
// gone. When the partition is let go, its next owner delivers the batch.
func (r *replay) run() {
	p, s := r.partition, r.partition.session
	if !s.pause(p.ctx, r.attempt) || !s.acquire(p.ctx, s.replays) {
		p.window.leave()
		return
	}
	log, err := p.claim.Stream.Log(p.claim.Partition)
	if err != nil { // a stream never loses a partition
		s.logger.Error("rejected records cannot be delivered again", label(p.place), "error", err)
		<-s.replays
		p.window.leave()
		return
	}
	records, ok := r.read(log)
	switch {
	case !ok:
		<-s.replays
		p.window.leave()
	case len(records) == 0:
		<-s.replays
		p.accept(r.batch)
	default:
		d := newDelivery(p, records, headOf(log, records), r.attempt)
		d.batch = r.batch
		if !s.offer(p.ctx, d, s.replays) {
			p.window.leave()
		}
	}
}

// read returns the records, or false when the partition is let go.
func (r *replay) read(log *engine.Log) (records []engine.Positioned, ok bool) {
	p := r.partition
	for len(r.offsets) > 0 {
		run := 1
		for run < len(r.offsets) && r.offsets[run] == r.offsets[0]+engine.Offset(run) {
			run++
		}
		read, err := log.Read(p.ctx, r.offsets[0], engine.ReadLimits{MaxMessages: run, MaxBytes: p.session.limits.MaxBytes})
		switch {
		case err == nil:
			r.trouble.over(p.place, p.session.logger)
			records = append(records, read.Records...)
			r.offsets = r.offsets[len(read.Records):]
		case p.ctx.Err() != nil || errors.Is(err, engine.ErrClosed):
			return nil, false
		case errors.Is(err, engine.ErrTrimmed):
			p.session.logger.Warn("a rejected record was trimmed before it was delivered again", label(p.place), "offset", int64(r.offsets[0]))
			r.offsets = r.offsets[1:]
		default:
			r.trouble.note(err, p.place, p.session.logger)
			if !p.session.pause(p.ctx, r.trouble.attempts) {
				return nil, false
			}
		}
	}
	return records, true
}
