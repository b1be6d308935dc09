package worker

import (
	"context"
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
			clear(f.missing)
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
	documents, err := f.leases.Documents.List(ctx, LeasePrefix+instancePrefix)
	if err != nil {
		return err
	}
	alive := map[string]bool{f.leases.Holder: true}
	for _, d := range documents {
		alive[strings.TrimPrefix(d.Key, LeasePrefix+instancePrefix)] = true
	}
	now := f.leases.Clock.Now()
	for id := range f.missing {
		if alive[id] {
			delete(f.missing, id)
		}
	}
	for _, ledger := range f.ledgers {
		if err := f.fence(ctx, ledger, alive, now); err != nil {
			return err
		}
	}
	return nil
}

func (f *fencer) fence(ctx context.Context, ledger Ledger, alive map[string]bool, now time.Time) error {
	var dead []uint64
	ledger.Inspect(func(s *shard.State) {
		for _, w := range s.Writers() {
			if !alive[w.Instance] && f.gone(w.Instance, now) {
				dead = append(dead, uint64(w.ID))
			}
		}
	})
	if len(dead) == 0 {
		return nil
	}
	f.leases.Logger.Info("closing writers whose instance is gone", "writers", len(dead))
	_, err := ledger.Publish(ctx, &commitpb.WriterFence{Writers: dead})
	return err
}

func (f *fencer) gone(instance string, now time.Time) bool {
	since, ok := f.missing[instance]
	if !ok {
		f.missing[instance] = now
		return false
	}
	return now.Sub(since) > f.leases.TTL
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
