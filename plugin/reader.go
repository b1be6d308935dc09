package plugin

import (
	"errors"

	"github.com/lakestream-go/lakestream/engine"
)

// reader reads one partition in order.
type reader struct {
	*partition
	session *session
	builder builder
	trouble trouble
}

// run reads until the partition's end or until the session closes.
func (r *reader) run() {
	for r.end == endless || r.from < r.end {
		if !r.step() {
			return
		}
	}
	r.session.settle()
}

// step delivers one batch, or waits for records; it returns false when the session
// closes.
func (r *reader) step() bool {
	if !r.session.acquire() {
		return false
	}
	read, err := r.log.Read(r.session.ctx, r.from, r.session.limits)
	if err != nil {
		r.session.free()
		return r.handle(err)
	}
	r.trouble.over(r.partition, r.session.logger)
	records := r.upToEnd(read.Records)
	if len(records) == 0 {
		r.session.free()
		return r.wait()
	}
	r.from = records[len(records)-1].Offset + 1
	r.session.open.Add(1)
	return r.session.offer(newDelivery(r.session, r.partition, r.builder, records, headOf(r.log, records), 0))
}

// upToEnd cuts off what was appended after the input connected, when it stops at
// the end.
func (r *reader) upToEnd(records []engine.Positioned) []engine.Positioned {
	if r.end == endless || len(records) == 0 {
		return records
	}
	keep := len(records)
	for keep > 0 && records[keep-1].Offset >= r.end {
		keep--
	}
	return records[:keep]
}

// wait blocks at the head until there is a record. It holds no slot, because idle
// partitions may be many.
func (r *reader) wait() bool {
	if _, err := r.log.Tail(r.session.ctx, r.from, engine.ReadLimits{MaxMessages: 1}); err != nil {
		return r.handle(err)
	}
	return true
}

// handle decides how to go on after an error: at the first live record when the
// next one was trimmed, else by trying again.
func (r *reader) handle(err error) bool {
	if r.session.isClosing(err) {
		return false
	}
	if errors.Is(err, engine.ErrTrimmed) {
		if start, _, err := r.log.Bounds(); err == nil && start > r.from {
			r.session.logger.Warn("records were trimmed before they were read", r.label(), "from", int64(r.from), "to", int64(start))
			r.from = start
			return true
		}
	}
	r.trouble.note(err, r.partition, r.session.logger)
	return r.session.pause(r.trouble.attempts)
}

// headOf returns where a log ends, for the lag of records that were read from it.
func headOf(log *engine.Log, records []engine.Positioned) engine.Offset {
	if _, head, err := log.Bounds(); err == nil {
		return head
	}
	return records[len(records)-1].Offset + 1
}
