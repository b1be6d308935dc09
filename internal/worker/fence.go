package worker

import (
	"context"
	"errors"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Ledger is what the fencer needs of a shard's view.
type Ledger interface {
	shard.Publisher
	Inspect(fn func(*shard.State))
	// Claimed reports whether a call of this process was told that it has a writer.
	Claimed(writer base.WriterID) bool
}

// FenceDead closes the writers of processes whose lease is gone, until ctx ends.
// A process counts as gone when this one has not seen its lease for a full time to
// live, counted anew after each reconnect of its own, and after it was paused: after
// an outage everyone gets the time to come back. Of this process it closes the
// writers that nobody here was told of for as long.
func (l Leases) FenceDead(ctx context.Context, ledgers []Ledger, reconnects func() uint64) {
	f := fencer{leases: l, ledgers: ledgers, missing: make(map[string]time.Time), strays: make(strays)}
	seen := reconnects()
	for {
		select {
		case <-l.Clock.After(l.TTL / 3):
		case <-ctx.Done():
			return
		}
		if now := reconnects(); now != seen {
			seen = now
			f.forget()
		}
		if err := f.round(ctx); err != nil && ctx.Err() == nil {
			l.Logger.Debug("writers of other instances were not checked", "reason", err.Error())
		}
	}
}

type fencer struct {
	leases  Leases
	ledgers []Ledger
	// missing holds since when an instance's lease has not been seen.
	missing map[string]time.Time
	strays  strays
	// looked is when the round before was.
	looked time.Time
}

// forget makes every wait start anew.
func (f *fencer) forget() {
	clear(f.missing)
	clear(f.strays)
}

func (f *fencer) round(ctx context.Context) error {
	instances, err := Instances(ctx, f.leases.Documents)
	if err != nil {
		f.forget()
		return err
	}
	alive := map[string]bool{f.leases.Holder: true}
	for _, i := range instances {
		alive[i.ID] = true
	}
	now := f.leases.Clock.Now()
	if now.Sub(f.looked) > f.leases.TTL {
		f.forget()
	}
	f.looked = now
	missing, left := make(map[string]time.Time), make(strays)
	var errs []error
	for i, ledger := range f.ledgers {
		dead := f.dead(ledger, alive, missing, now)
		errs = append(errs, f.fence(ctx, ledger, append(dead, f.strays.overdue(i, ledger, f.leases.Holder, now, f.leases.TTL, left)...)))
	}
	f.missing, f.strays = missing, left
	return errors.Join(errs...)
}

// dead returns the writers in a shard whose instance is gone. It notes in missing
// since when each instance that has writers there was not seen.
func (f *fencer) dead(ledger Ledger, alive map[string]bool, missing map[string]time.Time, now time.Time) (dead []base.WriterID) {
	ledger.Inspect(func(s *shard.State) {
		for _, w := range s.Writers() {
			if alive[w.Instance] {
				continue
			}
			since, ok := f.missing[w.Instance]
			if !ok {
				since = now
			}
			missing[w.Instance] = since
			if now.Sub(since) > f.leases.TTL {
				dead = append(dead, w.ID)
			}
		}
	})
	return dead
}

// fence closes writers of one shard. It gives up after a time to live, so that a
// shard that does not answer keeps no other waiting for long.
func (f *fencer) fence(ctx context.Context, ledger Ledger, dead []base.WriterID) error {
	if len(dead) == 0 {
		return nil
	}
	f.leases.Logger.Info("closing writers that nobody uses any more", "writers", len(dead))
	return f.leases.within(ctx, func(ctx context.Context) error { return Fence(ctx, ledger, dead) })
}
