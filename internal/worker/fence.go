package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// instancePrefix starts the name of the lease that says a process lives.
const instancePrefix = "instance."

// Ledger is what the fencer needs of a shard's view.
type Ledger interface {
	shard.Publisher
	Inspect(fn func(*shard.State))
}

// KeepAlive holds the lease that says this process lives, until ctx ends. Its
// name is what WriterOpen records carry.
func (l Leases) KeepAlive(ctx context.Context) {
	l.Run(ctx, instancePrefix+l.Holder, func(ctx context.Context) { <-ctx.Done() })
}

// FenceDead closes the writers of processes whose lease is gone, until ctx ends.
// A process counts as gone when this one has not seen its lease for a full time to
// live, counted anew after each reconnect of its own: after an outage everyone
// gets the time to come back.
func (l Leases) FenceDead(ctx context.Context, ledgers []Ledger, reconnects func() uint64) {
	f := fencer{leases: l, ledgers: ledgers, missing: make(map[string]time.Time)}
	seen := reconnects()
	for {
		select {
		case <-l.Clock.After(l.TTL / 3):
		case <-ctx.Done():
			return
		}
		if now := reconnects(); now != seen {
			seen = now
			clear(f.missing)
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
}

func (f *fencer) round(ctx context.Context) error {
	instances, err := Instances(ctx, f.leases.Documents)
	if err != nil {
		clear(f.missing)
		return err
	}
	alive := map[string]bool{f.leases.Holder: true}
	for _, id := range instances {
		alive[id] = true
	}
	now := f.leases.Clock.Now()
	missing := make(map[string]time.Time)
	var errs []error
	for _, ledger := range f.ledgers {
		errs = append(errs, f.fence(ctx, ledger, f.dead(ledger, alive, missing, now)))
	}
	f.missing = missing
	return errors.Join(errs...)
}

// dead returns the writers in a shard whose instance is gone. It notes in missing
// since when each instance that has writers there was not seen.
func (f *fencer) dead(ledger Ledger, alive map[string]bool, missing map[string]time.Time, now time.Time) (dead []uint64) {
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
				dead = append(dead, uint64(w.ID))
			}
		}
	})
	return dead
}

// fence closes writers of one shard. It gives up after a time to live, so that a
// shard that does not answer keeps no other waiting for long.
func (f *fencer) fence(ctx context.Context, ledger Ledger, dead []uint64) error {
	if len(dead) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.leases.TTL)
	defer cancel()
	f.leases.Logger.Info("closing writers whose instance is gone", "writers", len(dead))
	_, err := ledger.Publish(ctx, &commitpb.WriterFence{Writers: dead})
	return err
}

// Instances returns the processes whose lease stands, by their holder's name.
func Instances(ctx context.Context, documents coord.Documents) ([]string, error) {
	found, err := documents.List(ctx, LeasePrefix+instancePrefix)
	if err != nil {
		return nil, fmt.Errorf("listing instances: %w", err)
	}
	names := make([]string, len(found))
	for i, d := range found {
		names[i] = strings.TrimPrefix(d.Key, LeasePrefix+instancePrefix)
	}
	return names, nil
}
