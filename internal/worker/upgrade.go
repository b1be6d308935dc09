package worker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// upgradeJob is the lease of who advances the fold version.
const upgradeJob = "upgrade"

// Supported returns the newest fold version that every one of the instances folds,
// and the ids of those that fold no newer one; 0 for no instances.
func Supported(instances []Instance) (version uint32, oldest []string) {
	version = math.MaxUint32
	for _, i := range instances {
		version = min(version, i.FoldVersion)
	}
	for _, i := range instances {
		if i.FoldVersion == version {
			oldest = append(oldest, i.ID)
		}
	}
	slices.Sort(oldest)
	if len(instances) == 0 {
		version = 0
	}
	return version, oldest
}

// Upgrade advances the fold version of every ledger, in their order, to what every
// live instance folds, until ctx ends. It runs under a lease.
//
// An instance of an older version may be away for a moment. So all must have been of
// a version for a full time to live, counted anew after each reconnect of this
// process's own, before it is written. One that comes back later finds records that
// it cannot read: its shards stop, with an error that says so.
func (l Leases) Upgrade(ctx context.Context, ledgers []Ledger, reconnects func() uint64) {
	l.Run(ctx, upgradeJob, func(ctx context.Context) {
		u := upgrader{leases: l, ledgers: ledgers, reconnects: reconnects, seen: reconnects()}
		for {
			if err := u.round(ctx); err != nil && ctx.Err() == nil {
				l.Logger.Debug("the fold version was not advanced", "reason", err.Error())
			}
			select {
			case <-l.Clock.After(l.TTL / 3):
			case <-ctx.Done():
				return
			}
		}
	})
}

type upgrader struct {
	leases     Leases
	ledgers    []Ledger
	reconnects func() uint64
	seen       uint64
	// agreed is the version that all were seen to fold, and since when.
	agreed uint32
	since  time.Time
}

func (u *upgrader) round(ctx context.Context) error {
	behind := u.behind()
	if len(behind) == 0 {
		return nil
	}
	instances, err := Instances(ctx, u.leases.Documents)
	if err != nil {
		u.agreed = 0
		return err
	}
	version, _ := Supported(instances)
	now, reconnects := u.leases.Clock.Now(), u.reconnects()
	if version != u.agreed || reconnects != u.seen {
		u.agreed, u.since, u.seen = version, now, reconnects
	}
	if now.Sub(u.since) <= u.leases.TTL {
		return nil
	}
	var errs []error
	for _, ledger := range behind {
		errs = append(errs, u.advance(ctx, ledger, version))
	}
	return errors.Join(errs...)
}

// behind returns the ledgers that this process could advance.
func (u *upgrader) behind() (ledgers []Ledger) {
	for _, ledger := range u.ledgers {
		if at := FoldVersion(ledger); at > 0 && at < u.leases.FoldVersion {
			ledgers = append(ledgers, ledger)
		}
	}
	return ledgers
}

// advance brings one ledger to a version, step by step as the fold demands.
func (u *upgrader) advance(ctx context.Context, ledger Ledger, version uint32) error {
	for next := FoldVersion(ledger) + 1; next <= min(version, u.leases.FoldVersion); next++ {
		err := u.leases.within(ctx, func(ctx context.Context) error {
			_, err := ledger.Publish(ctx, &commitpb.FoldVersion{Version: next})
			return err
		})
		if err != nil {
			return fmt.Errorf("advancing to fold version %d: %w", next, err)
		}
		u.leases.Logger.Info("every instance folds it: the cluster moves on", "fold_version", next)
	}
	return nil
}

// FoldVersion returns the fold version of a ledger.
func FoldVersion(ledger Ledger) (version uint32) {
	ledger.Inspect(func(s *shard.State) { version = s.FoldVersion() })
	return version
}
