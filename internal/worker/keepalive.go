package worker

import (
	"context"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// KeepAlive holds the lease that says this process lives, until ctx ends. Its
// document describes the process.
//
// A process that finds its lease lost was paused or cut off: others may have closed
// its writers, and may not have. fence then closes them, so that either is the same;
// only afterwards a fresh lease is taken. fence is tried again for a time to live.
// One that keeps failing endangers nothing, because the log decides what each writer
// may still do, so the process then goes on as it is.
func (l Leases) KeepAlive(ctx context.Context, self Instance, fence func(context.Context) error) {
	document, err := self.document()
	if err != nil {
		document = l.Holder
	}
	wait := func(ctx context.Context) { <-ctx.Done() }
	for ctx.Err() == nil {
		if lost := l.runOnce(ctx, instancePrefix+l.Holder, document, wait); lost {
			l.Logger.Warn("this instance was paused or cut off for longer than its lease lasts: it closes its writers and goes on with new ones",
				"lease_ttl", l.TTL.String())
			l.fenceSelf(ctx, fence)
			continue
		}
		l.pause(ctx)
	}
}

// fenceSelf tries fence until it succeeds, ctx ends, or a time to live is over.
func (l Leases) fenceSelf(ctx context.Context, fence func(context.Context) error) {
	for began := l.Clock.Now(); ; {
		err := l.within(ctx, fence)
		if err == nil || ctx.Err() != nil {
			return
		}
		if l.Clock.Now().Sub(began) > l.TTL {
			l.Logger.Warn("the writers of this instance could not be closed; what they append counts once all the same", "reason", err.Error())
			return
		}
		l.pause(ctx)
	}
}

// within gives fn a time to live.
func (l Leases) within(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.TTL)
	defer cancel()
	return fn(ctx)
}

// pause waits before a lease is asked for again.
func (l Leases) pause(ctx context.Context) {
	select {
	case <-l.Clock.After(l.TTL / 5):
	case <-ctx.Done():
	}
}

// Opened returns the writers that an instance has open in a shard, as this process's
// view shows it.
func Opened(ledger Ledger, instance string) (open []base.WriterID) {
	ledger.Inspect(func(s *shard.State) {
		for _, w := range s.Writers() {
			if w.Instance == instance {
				open = append(open, w.ID)
			}
		}
	})
	return open
}

// Fence closes those of the writers that are open still, and returns when the view
// has applied that. Errors are those of shard.View.Publish.
func Fence(ctx context.Context, ledger Ledger, writers []base.WriterID) error {
	var open []uint64
	ledger.Inspect(func(s *shard.State) {
		for _, id := range writers {
			if _, ok := s.Writer(id); ok {
				open = append(open, uint64(id))
			}
		}
	})
	if len(open) == 0 {
		return nil
	}
	_, err := ledger.Publish(ctx, &commitpb.WriterFence{Writers: open})
	return err
}

// strays remembers since when each writer of this instance is open that no call of
// it was told of. It is what a copy of a WriterOpen record leaves that arrived after
// its writer was closed: nobody would ever use or close it.
type strays map[strayWriter]time.Time

type strayWriter struct {
	ledger int
	writer base.WriterID
}

// overdue returns the strays of one ledger that are older than limit, given when
// each was seen first, and notes in now those that are there.
func (s strays) overdue(index int, ledger Ledger, holder string, at time.Time, limit time.Duration, now strays) (overdue []base.WriterID) {
	for _, id := range Opened(ledger, holder) {
		if ledger.Claimed(id) {
			continue
		}
		key := strayWriter{index, id}
		since, seen := s[key]
		if !seen {
			since = at
		}
		now[key] = since
		if at.Sub(since) > limit {
			overdue = append(overdue, id)
		}
	}
	return overdue
}
