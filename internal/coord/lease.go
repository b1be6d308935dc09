package coord

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
)

// ErrHeld says that another holder has the lease. The text of an error that
// matches it names the holder. It is definite.
var ErrHeld = errors.New("lease is held")

// Fractions of the time to live: how often a lease is renewed, and how soon a
// renewal that failed is tried again.
const (
	renewalsPerTTL = 3
	retriesPerTTL  = 12
)

// Lease is a document that one holder keeps alive so that others do not do the
// same work at the same time. It is safe for concurrent use.
//
// A lease only avoids double work. Its holder may be paused past the time to
// live and wake up unaware, so no safety may rest on it: what must happen once
// is decided by the commit log or by a compare-and-set.
type Lease struct {
	documents Documents
	clock     base.Clock
	key       string
	holder    string
	ttl       time.Duration
	epoch     base.Revision

	lost chan struct{}
	lose func() // closes lost, once
	stop context.CancelFunc
	done chan struct{} // closed when the renewing goroutine has ended

	mu       sync.Mutex
	revision base.Revision // guarded by mu; as last confirmed
}

// AcquireLease takes the lease at key, or returns ErrHeld at once when another
// holder has it. ctx bounds the acquisition only; the lease is then renewed in
// the background until Release or loss. ttl is whole seconds, at least one.
//
// holder names the owner for people and tells its own lease from others' after
// a lost reply. It must be unique to one process start and be used for one
// acquisition of a key at a time. After ErrUnknown the lease may stand until
// its time to live has passed.
func AcquireLease(
	ctx context.Context, documents Documents, clock base.Clock, key, holder string, ttl time.Duration,
) (*Lease, error) {
	if ttl < time.Second {
		return nil, fmt.Errorf("acquiring lease %s: %w: time to live %s: want 1s or more", key, base.ErrInvalid, ttl)
	}
	asked := clock.Now()
	epoch, err := create(ctx, documents, key, holder, ttl)
	if err != nil {
		return nil, fmt.Errorf("acquiring lease %s: %w", key, err)
	}
	lost := make(chan struct{})
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &Lease{
		documents: documents, clock: clock, key: key, holder: holder, ttl: ttl,
		epoch: epoch, revision: epoch,
		lost: lost, lose: sync.OnceFunc(func() { close(lost) }), done: make(chan struct{}), stop: stop,
	}
	go l.keep(background, asked)
	return l, nil
}

// create stores the lease document and returns its revision.
func create(ctx context.Context, documents Documents, key, holder string, ttl time.Duration) (base.Revision, error) {
	revision, err := documents.Create(ctx, key, []byte(holder), ttl)
	if err == nil || (!errors.Is(err, base.ErrExists) && !errors.Is(err, base.ErrUnknown)) {
		return revision, err
	}
	found, readErr := documents.Get(ctx, key)
	switch {
	case errors.Is(err, base.ErrUnknown) && readErr == nil && string(found.Value) == holder:
		return found.Revision, nil // only the reply was lost
	case errors.Is(err, base.ErrExists) && readErr == nil:
		return 0, fmt.Errorf("%w by %s", ErrHeld, found.Value)
	case errors.Is(err, base.ErrExists) && errors.Is(readErr, base.ErrNotFound):
		return 0, fmt.Errorf("%w by a holder that has just let go", ErrHeld)
	default:
		return 0, errors.Join(err, readErr)
	}
}

// Lost returns a channel that closes when a renewal is refused, or when none
// was confirmed within the time to live since the last confirmed one was sent,
// by this machine's monotonic clock. Release does not close it.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Epoch returns the revision at which the lease was acquired: greater than that
// of every earlier acquisition of the same key.
func (l *Lease) Epoch() base.Revision { return l.epoch }

// Release stops the renewals and deletes the document, so that others need not
// wait for it to expire. A lease that was lost or released already is no error.
// After an error the document vanishes when its time to live has passed.
func (l *Lease) Release(ctx context.Context) error {
	l.stop()
	select {
	case <-l.done:
	case <-ctx.Done():
		return fmt.Errorf("releasing lease %s: %w", l.key, ctx.Err())
	}
	err := l.documents.Delete(ctx, l.key, l.current())
	if err != nil && !errors.Is(err, base.ErrConflict) && !errors.Is(err, base.ErrNotFound) {
		return fmt.Errorf("releasing lease %s: %w", l.key, err)
	}
	return nil
}

// Abandon stops the renewals and leaves the document to expire: until then nobody
// else has the lease.
func (l *Lease) Abandon() {
	l.stop()
	<-l.done
}

// keep renews the lease until ctx ends or the lease is lost. confirmed is when
// the last confirmed write was sent: the server counts from later than that.
func (l *Lease) keep(ctx context.Context, confirmed time.Time) {
	defer close(l.done)
	defer l.stop()
	renewal := renewal{lease: l}
	wait := l.ttl / renewalsPerTTL
	for {
		left := l.ttl - l.clock.Now().Sub(confirmed)
		if left <= 0 {
			l.lose()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-l.clock.After(min(wait, left)):
		}
		sent := l.clock.Now()
		result := l.tryWithin(ctx, &renewal, l.ttl-sent.Sub(confirmed))
		switch {
		case ctx.Err() != nil:
			return
		case result == renewalRefused:
			l.lose()
			return
		case result == renewalConfirmed:
			confirmed, wait = sent, l.ttl/renewalsPerTTL
		default:
			wait = l.ttl / retriesPerTTL
		}
	}
}

// tryWithin makes one renewal and gives it up when left has passed.
func (l *Lease) tryWithin(ctx context.Context, r *renewal, left time.Duration) renewalResult {
	if left <= 0 {
		return renewalUnconfirmed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	result := make(chan renewalResult, 1)
	go func() { result <- r.try(ctx) }()
	select {
	case got := <-result:
		return got
	case <-l.clock.After(left):
		l.lose() // at once, however long the attempt takes to end
		cancel()
		<-result
		return renewalRefused
	}
}

func (l *Lease) current() base.Revision {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.revision
}

func (l *Lease) advance(revision base.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.revision = revision
}

// renewalResult is what one renewal gave.
type renewalResult int

const (
	renewalRefused     renewalResult = iota // someone else changed the document
	renewalUnconfirmed                      // try again while time is left
	renewalConfirmed
)

// renewal is the state of the renewing goroutine across attempts.
type renewal struct {
	lease *Lease
	// unsure is set while an earlier attempt may have changed the document
	// without our learning its revision.
	unsure bool
}

func (r *renewal) try(ctx context.Context) renewalResult {
	l := r.lease
	revision, err := l.documents.Update(ctx, l.key, []byte(l.holder), l.current(), l.ttl)
	if errors.Is(err, base.ErrConflict) && r.unsure {
		found, readErr := l.documents.Get(ctx, l.key)
		if readErr != nil && !errors.Is(readErr, base.ErrNotFound) {
			return renewalUnconfirmed
		}
		if readErr != nil || string(found.Value) != l.holder {
			return renewalRefused
		}
		revision, err = l.documents.Update(ctx, l.key, []byte(l.holder), found.Revision, l.ttl)
	}
	switch {
	case err == nil:
		l.advance(revision)
		r.unsure = false
		return renewalConfirmed
	case errors.Is(err, base.ErrConflict), errors.Is(err, base.ErrNotFound):
		return renewalRefused
	case errors.Is(err, base.ErrUnknown):
		r.unsure = true
	}
	return renewalUnconfirmed
}
