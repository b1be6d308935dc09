// Package worker runs background jobs that one instance of a cluster should do at
// a time, and closes the writers of instances that are gone.
//
// A job runs under a lease, which only avoids double work: every job must be safe
// to run twice at once. To add a job, call Run with a key of its own.
package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// LeasePrefix starts the key of every lease.
const LeasePrefix = "lease."

// releaseTimeout bounds letting go of a lease at the end.
const releaseTimeout = 2 * time.Second

// Leases is who takes leases and where.
type Leases struct {
	Documents coord.Documents
	Clock     base.Clock
	// Holder is unique to one start of a process.
	Holder string
	TTL    time.Duration
	// FoldVersion is the newest one that this process folds.
	FoldVersion uint32
	Logger      *slog.Logger
}

// Run calls job whenever this instance holds the lease of this name, until ctx
// ends; job's context ends when the lease is lost. When job returns by itself the
// lease is let go and taken again after a while.
func (l Leases) Run(ctx context.Context, name string, job func(ctx context.Context)) {
	for ctx.Err() == nil {
		l.runOnce(ctx, name, l.Holder, job)
		l.pause(ctx)
	}
}

// runOnce runs job once if it gets the lease, and reports whether it lost it.
func (l Leases) runOnce(ctx context.Context, name, document string, job func(ctx context.Context)) (lost bool) {
	lease, err := coord.AcquireLease(ctx, l.Documents, l.Clock, LeasePrefix+name, document, l.TTL)
	if err != nil {
		if !errors.Is(err, coord.ErrHeld) && ctx.Err() == nil {
			l.Logger.Debug("a lease could not be asked for", "lease", name, "reason", err.Error())
		}
		return false
	}
	running, cancel := context.WithCancel(ctx)
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		select {
		case <-lease.Lost():
			lost = true
			cancel()
		case <-running.Done():
		}
	}()
	job(running)
	cancel()
	<-stop
	release, done := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer done()
	if err := lease.Release(release); err != nil {
		l.Logger.Debug("a lease is left to expire", "lease", name, "reason", err.Error())
	}
	return lost
}
