package coord

import (
	"context"
	"sync"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Op names an operation that a Faulty can disturb.
type Op string

// The operations of a Store, and OpDeliver: one entry about to reach a receiver.
const (
	OpLog     Op = "log"
	OpLogFrom Op = "log from"
	OpPut     Op = "put"
	OpWatch   Op = "watch"
	OpDeliver Op = "deliver"
	OpBounds  Op = "bounds"
	OpPurge   Op = "purge"
	OpGet     Op = "get"
	OpCreate  Op = "create"
	OpUpdate  Op = "update"
	OpDelete  Op = "delete"
	OpList    Op = "list"
)

// Call is one operation that a Faulty asks about: the Nth (from 1) of its kind
// on its target, a log name, a key or a prefix.
type Call struct {
	Op     Op
	Target string
	N      int
}

// Fault says what goes wrong with one call. The zero value is no fault.
type Fault struct {
	// Hold delays the call, or the delivery, until it closes; one that never
	// closes is silence. The end of the caller's context is ErrUnavailable.
	Hold <-chan struct{}
	// Before is returned instead of doing anything.
	Before error
	// Stale answers a read with the previous answer to the same question.
	Stale bool
	// Twice does it a second time, unseen, after the first succeeded.
	Twice bool
	// After is returned although it was done: a lost reply.
	After error
	// Cut closes the watch instead of delivering.
	Cut bool
}

// Faulty wraps a Store and disturbs it as decided call by call. With a decide
// that depends on its argument alone the faults are the same in every run. It
// is as safe for concurrent use as decide is; a watch costs one goroutine.
type Faulty struct {
	store  Store
	decide func(Call) Fault

	mu    sync.Mutex
	calls map[Call]int // guarded by mu; by op and target, N is 0
	last  map[Call]any // guarded by mu; the last answer of reads
}

var _ Store = (*Faulty)(nil)

// NewFaulty wraps store.
func NewFaulty(store Store, decide func(Call) Fault) *Faulty {
	return &Faulty{store: store, decide: decide, calls: map[Call]int{}, last: map[Call]any{}}
}

// Log opens the log through the wrapped store.
func (f *Faulty) Log(ctx context.Context, name string) (CommitLog, error) {
	log, err := disturb(ctx, f, OpLog, name, func() (CommitLog, error) { return f.store.Log(ctx, name) })
	if err != nil {
		return nil, err
	}
	return &faultyLog{f: f, name: name, log: log}, nil
}

// LogFrom creates the log through the wrapped store.
func (f *Faulty) LogFrom(ctx context.Context, name string, first base.Revision) (CommitLog, error) {
	log, err := disturb(ctx, f, OpLogFrom, name, func() (CommitLog, error) { return f.store.LogFrom(ctx, name, first) })
	if err != nil {
		return nil, err
	}
	return &faultyLog{f: f, name: name, log: log}, nil
}

// Documents returns the documents of the wrapped store.
func (f *Faulty) Documents() Documents { return faultyDocuments{f: f, documents: f.store.Documents()} }

// Reconnects asks the wrapped store.
func (f *Faulty) Reconnects() uint64 { return f.store.Reconnects() }

// String names the wrapped store.
func (f *Faulty) String() string { return f.store.String() }

// Close closes the wrapped store.
func (f *Faulty) Close(ctx context.Context) error { return f.store.Close(ctx) }

// next asks for the fault of the next call of op on target.
func (f *Faulty) next(op Op, target string) Fault {
	key := Call{Op: op, Target: target}
	f.mu.Lock()
	f.calls[key]++
	n := f.calls[key]
	f.mu.Unlock()
	return f.decide(Call{Op: op, Target: target, N: n})
}

// disturb runs one operation with the fault decided for it.
func disturb[T any](ctx context.Context, f *Faulty, op Op, target string, run func() (T, error)) (T, error) {
	var none T
	fault := f.next(op, target)
	if fault.Hold != nil {
		select {
		case <-fault.Hold:
		case <-ctx.Done():
			return none, base.WithClass(base.ErrUnavailable, ctx.Err())
		}
	}
	if fault.Before != nil {
		return none, fault.Before
	}
	if old, ok := recall[T](f, op, target); ok && fault.Stale {
		return old, nil
	}
	answer, err := run()
	if err == nil {
		f.remember(op, target, answer)
		if fault.Twice {
			_, _ = run() // its outcome reaches nobody
		}
	}
	if fault.After != nil {
		return none, fault.After
	}
	return answer, err
}

func (f *Faulty) remember(op Op, target string, answer any) {
	if op != OpBounds && op != OpGet && op != OpList {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last[Call{Op: op, Target: target}] = answer
}

func recall[T any](f *Faulty, op Op, target string) (T, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer, ok := f.last[Call{Op: op, Target: target}].(T)
	return answer, ok
}

type faultyDocuments struct {
	f         *Faulty
	documents Documents
}

func (d faultyDocuments) Get(ctx context.Context, key string) (Document, error) {
	return disturb(ctx, d.f, OpGet, key, func() (Document, error) { return d.documents.Get(ctx, key) })
}

func (d faultyDocuments) Create(
	ctx context.Context, key string, value []byte, ttl time.Duration,
) (base.Revision, error) {
	return disturb(ctx, d.f, OpCreate, key, func() (base.Revision, error) {
		return d.documents.Create(ctx, key, value, ttl)
	})
}

func (d faultyDocuments) Update(
	ctx context.Context, key string, value []byte, revision base.Revision, ttl time.Duration,
) (base.Revision, error) {
	return disturb(ctx, d.f, OpUpdate, key, func() (base.Revision, error) {
		return d.documents.Update(ctx, key, value, revision, ttl)
	})
}

func (d faultyDocuments) Delete(ctx context.Context, key string, revision base.Revision) error {
	_, err := disturb(ctx, d.f, OpDelete, key, func() (struct{}, error) {
		return struct{}{}, d.documents.Delete(ctx, key, revision)
	})
	return err
}

func (d faultyDocuments) List(ctx context.Context, prefix string) ([]Document, error) {
	return disturb(ctx, d.f, OpList, prefix, func() ([]Document, error) { return d.documents.List(ctx, prefix) })
}
