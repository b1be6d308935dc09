package plugin

import (
	"context"
	"errors"
	"time"

	"github.com/lakestream-go/lakestream/engine"
)

// releaseTimeout bounds the last commit of a partition that is let go.
const releaseTimeout = 5 * time.Second

// partition reads one partition, from its claim to its release.
type partition struct {
	session *session
	claim   *engine.Claim
	place   engine.Place
	builder builder
	window  *window
	// end is where to stop; endless to go on.
	end engine.Offset
	// log tells the bounds; the cursor reads with one of its own.
	log *engine.Log
	// ctx ends when the partition shall be let go, or the session closes.
	ctx     context.Context //nolint:containedctx // the lifetime of the reading
	stop    context.CancelFunc
	trouble trouble
	// last is the length of the batch that was read last.
	last int
}

// endless is the end of a partition that is followed as it grows.
const endless engine.Offset = -1

func newPartition(s *session, claim *engine.Claim) *partition {
	p := &partition{
		session: s, claim: claim, place: claim.Place(), builder: newBuilder(claim.Stream, claim.Partition),
		window: newWindow(s.clock, s.inFlight), end: s.endOf(claim.Place()),
	}
	p.ctx, p.stop = context.WithCancel(s.ctx)
	return p
}

// run reads in order, then finishes what is in flight and lets go.
func (p *partition) run() {
	defer p.stop()
	p.session.tasks.Go(p.watch)
	var err error
	if p.log, err = p.claim.Stream.Log(p.claim.Partition); err == nil && p.begin() {
		for p.step() {
		}
		if p.atEnd() {
			p.finish()
		}
	}
	p.drain()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), releaseTimeout)
	defer cancel()
	if err := p.claim.Release(ctx); err != nil {
		p.session.logger.Warn("a partition could not be let go; its next owner waits", label(p.place), "error", err)
	}
}

// watch stops the reading when the partition is another's or shall be.
func (p *partition) watch() {
	select {
	case <-p.claim.Revoked():
	case <-p.claim.Lost():
	case <-p.ctx.Done():
	}
	p.stop()
}

// begin puts a cursor without a mark where the configuration says.
func (p *partition) begin() bool {
	for !p.claim.Cursor().Marked() {
		at, err := p.session.origin.start(p.ctx, p.log, p.place)
		if err == nil {
			// Durable at once: who takes over begins where this one did.
			err = p.claim.Cursor().Reset(p.ctx, at)
		}
		if err != nil && !p.retry(err) {
			return false
		}
	}
	return true
}

// retry notes an error and waits before the next attempt; it returns false when
// there shall be none.
func (p *partition) retry(err error) bool {
	if p.ctx.Err() != nil || errors.Is(err, engine.ErrClosed) || errors.Is(err, engine.ErrFenced) {
		return false
	}
	p.trouble.note(err, p.place, p.session.logger)
	return p.session.pause(p.ctx, p.trouble.attempts)
}

// atEnd reports whether everything up to the end was read.
func (p *partition) atEnd() bool {
	return p.end != endless && p.claim.Cursor().ReadPosition() >= p.end
}

// step reads one batch and hands it over, or waits for records; it returns false at
// the end or when the partition shall be let go.
func (p *partition) step() bool {
	if p.atEnd() {
		return false
	}
	slots, ok := p.reserve()
	if !ok {
		return false
	}
	cursor := p.claim.Cursor()
	from := cursor.ReadPosition()
	read, err := cursor.Read(p.ctx, engine.CursorRead{Limits: p.session.limits, Until: max(0, p.end)})
	if err != nil {
		<-slots
		return p.handle(err, from)
	}
	p.trouble.over(p.place, p.session.logger)
	if len(read.Records) == 0 {
		<-slots
		if cursor.ReadPosition() > from {
			return true
		}
		// No slot is held at the head, because idle partitions may be many.
		if err := cursor.Wait(p.ctx); err != nil {
			return p.handle(err, from)
		}
		return true
	}
	p.last = len(read.Records)
	d := newDelivery(p, read.Records, headOf(p.log, read.Records), 0)
	d.batch = engine.OffsetRange{Start: from, End: read.Next}
	if !p.window.room(p.ctx) {
		<-slots
		return false
	}
	p.window.enter()
	if !p.session.offer(p.ctx, d, slots) {
		p.window.leave()
		return false
	}
	return true
}

// reserve waits until a batch may be read and returns where the slot is that it
// holds: when one more may be handed out, or ahead of that, while others are out.
func (p *partition) reserve() (slots chan struct{}, ok bool) {
	s := p.session
	if p.window.isFull() && p.isBehind() {
		select {
		case s.ahead <- struct{}{}:
			return s.ahead, true
		default: // other partitions read ahead
		}
	}
	return s.slots, p.window.room(p.ctx) && s.acquire(p.ctx, s.slots)
}

// isBehind reports whether the log has records for a batch like the one before. When
// it has fewer, reading waits until the batch may be handed out, and then finds more:
// at the head, batches read ahead would be small.
func (p *partition) isBehind() bool {
	_, head, err := p.log.Bounds()
	if p.end != endless {
		head = min(head, p.end)
	}
	return err == nil && int64(head-p.claim.Cursor().ReadPosition()) >= int64(p.last)
}

// handle decides how to go on after an error: at the first live record when the
// next one was trimmed, else by trying again.
func (p *partition) handle(err error, from engine.Offset) bool {
	if errors.Is(err, engine.ErrTrimmed) && p.ctx.Err() == nil {
		if start, _, err := p.log.Bounds(); err == nil && start > from {
			p.session.logger.Warn("records were trimmed before they were read", label(p.place), "from", int64(from), "to", int64(start))
			cursor := p.claim.Cursor()
			return cursor.Ack(engine.OffsetRange{Start: from, End: start}) == nil && cursor.Seek(start) == nil
		}
	}
	return p.retry(err)
}

// finish commits a partition that was read to its end, tells that it is done, and
// waits until it shall be let go: nobody else need take it.
func (p *partition) finish() {
	if !p.window.await(p.ctx, 0) || p.claim.Cursor().Next() < p.end {
		return
	}
	for {
		err := p.claim.Commit(p.ctx)
		if err == nil {
			break
		}
		if !p.retry(err) {
			return
		}
	}
	p.session.settle(p.place)
	<-p.ctx.Done()
}

// drain waits for what is in flight of a partition that goes to another member, as
// long as that waits too. Nobody waits for what is lost anyway, or when the input
// closes.
func (p *partition) drain() {
	ctx, cancel := context.WithCancel(p.session.ctx)
	defer cancel()
	p.session.tasks.Go(func() {
		defer cancel()
		select {
		case <-p.session.clock.After(p.session.rebalanceTimeout):
		case <-p.claim.Lost():
		case <-ctx.Done():
		}
	})
	p.window.await(ctx, 0)
}

// headOf returns where a log ends, for the lag of records that were read from it.
func headOf(log *engine.Log, records []engine.Positioned) engine.Offset {
	if _, head, err := log.Bounds(); err == nil {
		return head
	}
	return records[len(records)-1].Offset + 1
}
