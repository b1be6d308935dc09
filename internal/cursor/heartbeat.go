package cursor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
)

// run follows the group until ctx ends or another has the member's name.
func (m *Member) run(ctx context.Context, beat func(context.Context) (time.Duration, error)) {
	defer close(m.done)
	for {
		wait, err := beat(ctx)
		if errors.Is(err, errReplaced) {
			m.mu.Lock()
			m.err = err
			m.mu.Unlock()
			m.loseAll()
			return
		}
		m.tell(ctx, err)
		var ended <-chan struct{}
		if m.lease != nil {
			ended = m.lease.Lost()
		}
		select {
		case <-m.o.Clock.After(wait):
		case <-m.nudge:
		case <-ended:
		case <-ctx.Done():
			return
		}
	}
}

// errReplaced says that another member has the name.
var errReplaced = fmt.Errorf("another member has joined under this instance_id: give each instance its own and start again: %w", base.ErrFenced)

// tell logs an error once for as long as it stays the same.
func (m *Member) tell(ctx context.Context, err error) {
	text := ""
	if err != nil && ctx.Err() == nil {
		text = err.Error()
	}
	switch {
	case text == m.trouble:
	case text != "":
		m.logger.Warn("finding the partitions to read fails and is tried again", "reason", text)
	default:
		m.logger.Info("the partitions to read are known again")
	}
	m.trouble = text
}

// beat looks at the group once, changes it where that is needed, and takes and
// revokes partitions. It returns how long to wait before the next look.
func (m *Member) beat(ctx context.Context) (time.Duration, error) {
	if err := m.keepSession(ctx); err != nil {
		return m.o.Heartbeat, err
	}
	group, revision, err := m.look(ctx)
	if err != nil {
		return m.o.Heartbeat, err
	}
	if _, ok := group.session(m.session); !ok {
		if _, replaced := group.named(m.name); replaced {
			return 0, errReplaced
		}
		m.endSession(ctx) // others found the lease gone
		return 0, nil
	}
	m.group, m.generation = group, revision
	stands, err := m.amend(ctx)
	if err != nil {
		return m.o.Heartbeat, err
	}
	if !stands { // someone else was faster
		return conflictPause, nil
	}
	return m.follow(ctx)
}

// keepSession begins a new session when the last has ended.
func (m *Member) keepSession(ctx context.Context) error {
	if m.lease != nil {
		select {
		case <-m.lease.Lost():
			m.logger.Warn("the session has timed out; its partitions are given up and the group is joined again")
			m.endSession(ctx)
		default:
			return nil
		}
	}
	return m.enroll(ctx)
}

func (m *Member) endSession(ctx context.Context) {
	m.loseAll()
	if err := m.lease.Release(ctx); err != nil {
		m.logger.Debug("a session is left to expire", "reason", err.Error())
	}
	m.lease = nil
}

// look reads the roster, decoding only what has changed.
func (m *Member) look(ctx context.Context) (roster, base.Revision, error) {
	found, err := m.o.Documents.Get(ctx, groupKey(m.o.Group))
	switch {
	case errors.Is(err, base.ErrNotFound):
		return roster{}, 0, nil
	case err != nil:
		return roster{}, 0, err
	case found.Revision == m.generation:
		return m.group, m.generation, nil
	}
	group, err := decodeRoster(found.Value)
	return group, found.Revision, err
}

// amend changes the roster when the next member is gone, when what this one wants
// has changed, or when a stream is gone. It returns false when someone else changed
// it meanwhile.
func (m *Member) amend(ctx context.Context) (bool, error) {
	group := m.group
	changed := false
	for {
		next := group.after(m.name)
		if next.Session == m.session {
			break
		}
		_, err := m.o.Documents.Get(ctx, memberPrefix(m.o.Group)+token(next.Session))
		if err == nil {
			break
		}
		if !errors.Is(err, base.ErrNotFound) {
			return false, err
		}
		m.logger.Info("a member is gone; its partitions go to others", "member", next.Name, "host", next.Label)
		group, changed = group.without(func(o enrolled) bool { return o.Session == next.Session }), true
	}
	wants, err := m.o.Wants()
	if err != nil {
		return false, err
	}
	me, _ := group.session(m.session)
	if !slices.Equal(me.Wants, wants) {
		me.Wants = wants
		group, changed = group.with(me), true
	}
	group, forgotten := group.forget(m.o.Gone)
	if !changed && len(forgotten) == 0 {
		return true, nil
	}
	for _, stream := range forgotten {
		// Before the roster forgets it, else nobody would find what is left.
		if err := ForgetStream(ctx, m.o.Documents, stream, m.o.Group); err != nil {
			return false, err
		}
	}
	return m.store(ctx, group, m.generation)
}

// follow revokes what the member shall not own any more and takes what it shall.
func (m *Member) follow(ctx context.Context) (time.Duration, error) {
	held := m.held()
	var pending []Place
	for _, place := range m.group.placesOf(m.name) {
		if _, ok := held[place]; ok {
			delete(held, place)
			continue
		}
		pending = append(pending, place)
	}
	for _, claim := range held {
		claim.revoke()
	}
	waiting := make(map[Place]time.Time, len(pending))
	for _, place := range pending {
		since, ok := m.waiting[place]
		if !ok {
			since = m.o.Clock.Now()
		}
		waiting[place] = since
	}
	m.waiting = waiting
	taken, tried := 0, 0
	var errs []error
	for _, place := range pending {
		if tried++; tried > maxTakes {
			break
		}
		ok, err := m.take(ctx, place)
		if ok {
			taken++
			delete(m.waiting, place)
		}
		if err != nil {
			errs = append(errs, err)
			if errors.Is(err, base.ErrUnavailable) {
				break // so would be the others
			}
		}
	}
	return m.untilNextLook(taken, tried, len(pending)), errors.Join(errs...)
}

// untilNextLook is how long to wait after so many of the pending partitions were
// tried and taken: not at all while there is more to try and it gets on.
func (m *Member) untilNextLook(taken, tried, pending int) time.Duration {
	switch {
	case taken == pending:
		return m.o.Heartbeat
	case tried > maxTakes && taken > 0:
		return 0
	default: // owners before are to let go
		return min(m.o.Heartbeat, takePause)
	}
}

// take stamps the cursor of a partition with the member's generation and claims it.
// It returns false while the owner before it may still let go.
func (m *Member) take(ctx context.Context, place Place) (bool, error) {
	key := place.key(commitKind, m.o.Group)
	doc, revision, err := loadDocument(ctx, m.o.Documents, key)
	if err != nil {
		return false, fmt.Errorf("taking %s: %w", place, err)
	}
	now := m.o.Clock.Now()
	owner, alive := m.group.session(doc.Owner)
	switch {
	case doc.Generation > m.generation:
		return false, nil // the group has changed since it was looked at
	case alive && owner.Session != m.session && now.Sub(m.waiting[place]) < m.o.RebalanceTimeout:
		return false, nil
	case alive && owner.Session != m.session:
		m.logger.Warn("a partition is taken from a member that did not let go in time; what it had in flight is delivered again",
			"partition", place.String(), "member", owner.Name, "host", owner.Label)
	}
	source, err := m.o.Open(place)
	if err != nil {
		return false, fmt.Errorf("taking %s: %w", place, err)
	}
	store := &stored{documents: m.o.Documents, key: key, owner: m.session, generation: m.generation, turn: make(chan struct{}, 1)}
	store.turn <- struct{}{}
	ok, err := store.stamp(ctx, &doc, revision, base.MillisOf(now))
	if err != nil {
		return false, fmt.Errorf("taking %s: %w", place, err)
	}
	if !ok {
		return false, nil
	}
	c := newCursor(source, m.o.Clock, store)
	c.restore(&doc)
	m.deliver(newClaim(place, c, m.drop))
	return true, nil
}

// beatAlone claims what is wanted and not held, and revokes what is held and not
// wanted any more.
func (m *Member) beatAlone(context.Context) (time.Duration, error) {
	wants, err := m.o.Wants()
	if err != nil {
		return m.o.Heartbeat, err
	}
	held := m.held()
	for _, w := range wants {
		for p := w.First; p <= w.Last; p++ {
			place := Place{Stream: w.Stream, Partition: p}
			if _, ok := held[place]; ok {
				delete(held, place)
				continue
			}
			source, err := m.o.Open(place)
			if err != nil {
				return m.o.Heartbeat, fmt.Errorf("opening %s: %w", place, err)
			}
			m.deliver(newClaim(place, newCursor(source, nil, nil), m.drop))
		}
	}
	for _, claim := range held {
		claim.revoke()
	}
	return m.o.Heartbeat, nil
}
