package shard

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
)

// ringSize is how many recent chain hashes a follower keeps to compare with
// those that records carry. A publisher is never further behind: it applies its
// own record before it publishes the next.
const ringSize = 4096

// ErrGap says that an entry is not the next one: some were missed. The follower
// is unharmed; deliver from its revision on.
var ErrGap = errors.New("revisions are missing")

// Follower is a state with what a process needs around it: the check that its
// history is the publishers' history, subscriptions to outcomes, and wake-ups.
// It does no I/O. It is safe for concurrent use; entries are applied by one
// goroutine.
type Follower struct {
	mu sync.RWMutex
	// All below are guarded by mu.
	state   *State
	stopped error
	ring    [ringSize]commitrecord.HashPrefix
	// ringSince is the oldest revision whose hash the ring may hold.
	ringSince base.Revision
	// lastData is the newest applied record. After a start at a snapshot it is
	// known by its hash only, as lastRecord, which is zeros otherwise.
	lastData   []byte
	lastRecord base.Hash
	// logBytes is the size of the records that were applied.
	logBytes int64
	// jumped is the newest revision that was reached without applying it.
	jumped   base.Revision
	writers  map[base.WriterID]func(Outcome)
	requests map[commitrecord.RequestID]func(Outcome)
	changed  chan struct{}
	grown    map[base.LogID]chan struct{}
	puts     puts
	claimed  claims
}

// NewFollower returns a follower of the shard's history from its first record on.
func NewFollower(cluster base.ClusterID, shard base.Shard) *Follower {
	return &Follower{
		state:    NewState(cluster, shard),
		writers:  make(map[base.WriterID]func(Outcome)),
		requests: make(map[commitrecord.RequestID]func(Outcome)),
		changed:  make(chan struct{}),
		grown:    make(map[base.LogID]chan struct{}),
		claimed:  make(claims),
	}
}

// Apply folds one delivered entry. Entries before the newest applied one are
// ignored, and that one itself, delivered again where a watch starts, is compared.
// It returns ErrGap when entries are missing, and any other error when the
// follower has stopped: from then on it shows its last state and Err.
func (f *Follower) Apply(e coord.Entry) error {
	f.mu.Lock()
	out, err := f.applyLocked(e)
	var notify []func(Outcome)
	if err == nil && out != nil {
		notify = f.subscribersLocked(out)
		f.wakeLocked(out)
	}
	f.mu.Unlock()
	for _, fn := range notify {
		fn(*out)
	}
	return err
}

func (f *Follower) applyLocked(e coord.Entry) (*Outcome, error) {
	at := f.state.Revision()
	switch {
	case f.stopped != nil:
		return nil, f.stopped
	case e.Revision < at:
		return nil, nil //nolint:nilnil // delivered before
	case e.Revision == at:
		if !f.sameRecordLocked(e) {
			return nil, f.stopLocked(fmt.Errorf("revision %d of %s was replaced by another record: %w", at, f.state.Shard(), base.ErrCorrupt))
		}
		return nil, nil //nolint:nilnil // delivered again, unchanged
	case e.Revision > at+1:
		return nil, fmt.Errorf("revision %d after %d of %s: %w", e.Revision, at, f.state.Shard(), ErrGap)
	}
	if err := f.checkHistoryLocked(e); err != nil {
		return nil, f.stopLocked(err)
	}
	out, err := f.state.Apply(e.Revision, e.Time, e.Data)
	if err != nil {
		return nil, f.stopLocked(err)
	}
	f.countPutsLocked(&out)
	f.claimLocked(&out)
	f.lastData, f.lastRecord = e.Data, base.Hash{}
	f.logBytes += int64(len(e.Data))
	f.ring[uint64(e.Revision)%ringSize] = prefixOf(f.state.ChainHash())
	return &out, nil
}

// checkHistoryLocked compares the history that a record's publisher saw with ours.
func (f *Follower) checkHistoryLocked(e coord.Entry) error {
	env, _, err := commitrecord.DecodeEnvelope(e.Data)
	if err != nil || env.Cluster != f.state.Cluster() {
		return nil //nolint:nilerr // the fold decides what it is
	}
	at := f.state.Revision()
	switch {
	case env.SeenRevision > at:
	case env.SeenRevision+ringSize <= at, env.SeenRevision < f.ringSince:
		return nil
	case f.ring[uint64(env.SeenRevision)%ringSize] == env.SeenHash:
		return nil
	}
	return fmt.Errorf("revision %d of %s was written by an instance whose history differs at revision %d: %w",
		e.Revision, f.state.Shard(), env.SeenRevision, base.ErrCorrupt)
}

func (f *Follower) stopLocked(err error) error {
	f.stopped = err
	f.broadcastLocked()
	for id, ch := range f.grown {
		close(ch)
		delete(f.grown, id)
	}
	return err
}

func (f *Follower) broadcastLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *Follower) subscribersLocked(out *Outcome) []func(Outcome) {
	var fns []func(Outcome)
	if fn := f.requests[out.Request]; fn != nil {
		fns = append(fns, fn)
		delete(f.requests, out.Request)
	}
	if fn := f.writers[out.Writer]; fn != nil {
		fns = append(fns, fn)
	}
	return fns
}

func (f *Follower) wakeLocked(out *Outcome) {
	f.broadcastLocked()
	if len(f.grown) == 0 || out.Kind != commitrecord.KindAppend {
		return
	}
	for _, l := range out.Logs {
		if ch, ok := f.grown[l.Log]; ok {
			close(ch)
			delete(f.grown, l.Log)
		}
	}
}

// Stop makes the follower stop with err, as if a record had: the view uses it
// when the store contradicts itself.
func (f *Follower) Stop(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped == nil {
		_ = f.stopLocked(err)
	}
}

// Err returns why the follower stopped, or nil while it follows.
func (f *Follower) Err() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.stopped
}

// Inspect calls fn with the state, which does not change until fn returns. fn
// must not keep anything that it does not copy, and must not block.
func (f *Follower) Inspect(fn func(*State)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	fn(f.state)
}

// Revision returns the newest applied revision.
func (f *Follower) Revision() base.Revision {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Revision()
}

// Envelope returns the envelope of a record that this process publishes now.
func (f *Follower) Envelope(request commitrecord.RequestID) commitrecord.Envelope {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return commitrecord.Envelope{
		Cluster:      f.state.Cluster(),
		SeenRevision: f.state.Revision(),
		SeenHash:     prefixOf(f.state.ChainHash()),
		Request:      request,
	}
}

// OnWriter calls fn with each outcome of a writer's records, in order, on the
// goroutine that applies; fn must not block. A nil fn ends the subscription.
func (f *Follower) OnWriter(writer base.WriterID, fn func(Outcome)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fn == nil {
		delete(f.writers, writer)
		return
	}
	f.writers[writer] = fn
}

// OnRequest calls fn once, with the first outcome of a record that carries the
// request, under the same rules as OnWriter.
func (f *Follower) OnRequest(request commitrecord.RequestID, fn func(Outcome)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fn == nil {
		delete(f.requests, request)
		return
	}
	f.requests[request] = fn
}

// Changed returns a channel that is closed when the next entry is applied or the
// follower stops.
func (f *Follower) Changed() <-chan struct{} {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.changed
}

// WaitUntil blocks until ok holds of the state, the follower stops, or ctx ends.
// ok follows the rules of Inspect.
func (f *Follower) WaitUntil(ctx context.Context, ok func(*State) bool) error {
	for {
		f.mu.RLock()
		done, stopped, changed := ok(f.state), f.stopped, f.changed
		f.mu.RUnlock()
		switch {
		case done:
			return nil
		case stopped != nil:
			return stopped
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// WaitHead blocks until the log's head is beyond offset. Waiting costs nothing
// while other logs grow. A log that is gone is base.ErrNotFound.
func (f *Follower) WaitHead(ctx context.Context, id base.LogID, offset base.Offset) error {
	for {
		ch, err := f.headBeyond(id, offset)
		if ch == nil {
			return err
		}
		select {
		case <-ch:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// headBeyond returns a nil channel when the wait is over.
func (f *Follower) headBeyond(id base.LogID, offset base.Offset) (<-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, ok := f.state.Log(id)
	switch {
	case f.stopped != nil:
		return nil, f.stopped
	case !ok:
		return nil, fmt.Errorf("log %s: %w", id, base.ErrNotFound)
	case l.Head() > offset:
		return nil, nil
	}
	ch, ok := f.grown[id]
	if !ok {
		ch = make(chan struct{})
		f.grown[id] = ch
	}
	return ch, nil
}

func prefixOf(h base.Hash) commitrecord.HashPrefix {
	var p commitrecord.HashPrefix
	copy(p[:], h[:])
	return p
}
