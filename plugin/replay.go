package plugin

import (
	"errors"

	"github.com/lakestream-go/lakestream/engine"
)

// replay delivers rejected records again. It has a log of its own, so that the
// partition's reader goes on meanwhile.
type replay struct {
	session   *session
	partition *partition
	offsets   []engine.Offset
	attempt   int
	trouble   trouble
}

// run waits, reads the records and hands them over. What was trimmed meanwhile is
// gone.
func (r *replay) run() {
	s := r.session
	if !s.pause(r.attempt) || !s.acquire() {
		return
	}
	log, err := r.partition.stream.Log(r.partition.number)
	if err != nil { // a stream never loses a partition
		s.logger.Error("rejected records cannot be delivered again", r.partition.label(), "error", err)
		s.free()
		return
	}
	records, ok := r.read(log)
	switch {
	case !ok:
		s.free()
	case len(records) == 0:
		s.free()
		s.settle()
	default:
		s.offer(newDelivery(s, r.partition, newBuilder(r.partition), records, headOf(log, records), r.attempt))
	}
}

// read returns the records, or false when the session closes.
func (r *replay) read(log *engine.Log) (records []engine.Positioned, ok bool) {
	for len(r.offsets) > 0 {
		run := 1
		for run < len(r.offsets) && r.offsets[run] == r.offsets[0]+engine.Offset(run) {
			run++
		}
		read, err := log.Read(r.session.ctx, r.offsets[0], engine.ReadLimits{MaxMessages: run, MaxBytes: r.session.limits.MaxBytes})
		switch {
		case err == nil:
			r.trouble.over(r.partition, r.session.logger)
			records = append(records, read.Records...)
			r.offsets = r.offsets[len(read.Records):]
		case r.session.isClosing(err):
			return nil, false
		case errors.Is(err, engine.ErrTrimmed):
			r.session.logger.Warn("a rejected record was trimmed before it was delivered again", r.partition.label(), "offset", int64(r.offsets[0]))
			r.offsets = r.offsets[1:]
		default:
			r.trouble.note(err, r.partition, r.session.logger)
			if !r.session.pause(r.trouble.attempts) {
				return nil, false
			}
		}
	}
	return records, true
}
