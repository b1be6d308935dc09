package cursor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

const (
	// enrollAttempts bounds how often a roster that others change meanwhile is
	// written again at once.
	enrollAttempts = 100
	// conflictPause is the time between those attempts, times their number.
	conflictPause = 5 * time.Millisecond
	// takePause is how often a member looks whether the owner before it let go.
	takePause = 500 * time.Millisecond
	// maxTakes bounds the partitions that are taken before the member looks at
	// the group again.
	maxTakes = 256
)

// MemberOptions say which group to join, and how.
type MemberOptions struct {
	Documents coord.Documents
	Clock     base.Clock
	Logger    *slog.Logger
	// NewID makes texts that are unique and pass CheckName.
	NewID func() string

	Group string
	// Name makes membership static: whoever joins under it next has the same
	// partitions, so a restart within the session timeout moves none. Empty
	// means a member of its own.
	Name string
	// Label says for people where the member runs.
	Label string

	// Wants returns what the member takes partitions of, as it is now. It is
	// asked at every heartbeat.
	Wants func() ([]Range, error)
	// Gone reports whether a stream does not exist any more.
	Gone func(Stream) bool
	// Open returns a log of its own for a partition.
	Open func(Place) (Log, error)

	// SessionTimeout, in whole seconds, is how long a member that is silent
	// keeps its partitions.
	SessionTimeout time.Duration
	// RebalanceTimeout is how long another member may take to let go of a
	// partition that shall come here.
	RebalanceTimeout time.Duration
	// Heartbeat is how often the member looks whether the group has changed.
	Heartbeat time.Duration
}

// Member is one member of a group, from Join to Leave. It is safe for concurrent
// use.
type Member struct {
	o      MemberOptions
	name   string
	logger *slog.Logger

	stop context.CancelFunc
	done chan struct{} // closed when run has ended
	// nudge makes run look at once.
	nudge chan struct{}
	// ready has a token when queue may have claims.
	ready chan struct{}

	// Used by run alone, and by Join before and Leave after it.
	lease   *coord.Lease
	session string
	group   roster
	// generation is the revision of group's document.
	generation base.Revision
	// waiting holds since when partitions wait for the owner before.
	waiting map[Place]time.Time
	trouble string // the last that was told

	mu sync.Mutex
	// All below are guarded by mu.
	claims map[Place]*Claim
	queue  []*Claim
	err    error // why run has ended by itself
}

// Join makes a member of a group, which is created when absent. ctx bounds joining
// only. A wrong name or one limit too many is ErrInvalid.
func Join(ctx context.Context, o MemberOptions) (*Member, error) {
	m := newMember(o, o.Logger.With("group", o.Group))
	if m.name == "" {
		m.name = o.NewID()
	}
	for _, name := range []string{o.Group, m.name} {
		if err := CheckName(name); err != nil {
			return nil, fmt.Errorf("joining group %q: %w", o.Group, err)
		}
	}
	if err := m.enroll(ctx); err != nil {
		return nil, fmt.Errorf("joining group %s: %w", o.Group, err)
	}
	m.start(ctx, m.beat)
	return m, nil
}

// Follow makes a member of no group. It owns all that it wants, what is gone is
// revoked, and its cursors are ephemeral: nothing is committed. Of the options it
// uses neither Documents nor those of a group.
func Follow(ctx context.Context, o MemberOptions) *Member {
	m := newMember(o, o.Logger)
	m.start(ctx, m.beatAlone)
	return m
}

func newMember(o MemberOptions, logger *slog.Logger) *Member {
	return &Member{
		o: o, name: o.Name, logger: logger, done: make(chan struct{}),
		nudge: make(chan struct{}, 1), ready: make(chan struct{}, 1),
		waiting: make(map[Place]time.Time), claims: make(map[Place]*Claim),
	}
}

func (m *Member) start(ctx context.Context, beat func(context.Context) (time.Duration, error)) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	go m.run(running, beat)
}

// enroll begins a session: it takes a lease and a place in the roster.
func (m *Member) enroll(ctx context.Context) error {
	wants, err := m.o.Wants()
	if err != nil {
		return err
	}
	session := m.o.NewID()
	lease, err := coord.AcquireLease(ctx, m.o.Documents, m.o.Clock, memberPrefix(m.o.Group)+token(session), session, m.o.SessionTimeout)
	if err != nil {
		return err
	}
	me := enrolled{Name: m.name, Session: session, Label: m.o.Label, Wants: wants}
	for attempt := range enrollAttempts {
		var entered bool
		if entered, err = m.enter(ctx, me); entered {
			m.lease, m.session = lease, session
			return nil
		}
		if err != nil {
			break
		}
		if err = pause(ctx, m.o.Clock, conflictPause*time.Duration(attempt+1)); err != nil {
			break
		}
	}
	if err == nil {
		err = base.WithClass(base.ErrUnavailable, errors.New("others change the group again and again"))
	}
	return errors.Join(err, lease.Release(context.WithoutCancel(ctx)))
}

// enter puts a session into the roster, without members that are gone. It returns
// false when the roster must be read again.
func (m *Member) enter(ctx context.Context, me enrolled) (bool, error) {
	group, revision, err := loadRoster(ctx, m.o.Documents, m.o.Group)
	if err != nil {
		return false, err
	}
	if _, ok := group.session(me.Session); ok { // only the reply was lost
		m.group, m.generation = group, revision
		return true, nil
	}
	live, err := liveSessions(ctx, m.o.Documents, m.o.Group)
	if err != nil {
		return false, err
	}
	var present []enrolled
	for _, member := range group.Members {
		if live[member.Session] {
			present = append(present, member)
		}
	}
	group.Members = present // assigned together with the new one, so that its name keeps its partitions
	return m.store(ctx, group.with(me), revision)
}

// store writes the roster in place of the one at a revision and returns whether it
// stands, or must be read again.
func (m *Member) store(ctx context.Context, next roster, revision base.Revision) (bool, error) {
	data, err := next.encode()
	if err != nil {
		return false, err
	}
	var stored base.Revision
	if revision == 0 {
		if err := m.checkGroups(ctx); err != nil {
			return false, err
		}
		stored, err = m.o.Documents.Create(ctx, groupKey(m.o.Group), data, 0)
	} else {
		stored, err = m.o.Documents.Update(ctx, groupKey(m.o.Group), data, revision, 0)
	}
	switch {
	case err == nil:
		m.group, m.generation = next, stored
		return true, nil
	case errors.Is(err, base.ErrConflict), errors.Is(err, base.ErrExists), errors.Is(err, base.ErrUnknown):
		return false, nil
	default:
		return false, err
	}
}

// checkGroups refuses one group too many.
func (m *Member) checkGroups(ctx context.Context) error {
	groups, err := m.o.Documents.List(ctx, groupKind+".")
	if err != nil {
		return err
	}
	if len(groups) >= MaxGroups {
		return fmt.Errorf("%w: the cluster has %d groups, which is the limit: delete one with group delete", base.ErrInvalid, len(groups))
	}
	return nil
}

func loadRoster(ctx context.Context, documents coord.Documents, group string) (roster, base.Revision, error) {
	found, err := documents.Get(ctx, groupKey(group))
	if errors.Is(err, base.ErrNotFound) {
		return roster{}, 0, nil
	}
	if err != nil {
		return roster{}, 0, err
	}
	r, err := decodeRoster(found.Value)
	return r, found.Revision, err
}

// liveSessions returns the sessions of a group whose leases stand.
func liveSessions(ctx context.Context, documents coord.Documents, group string) (map[string]bool, error) {
	found, err := documents.List(ctx, memberPrefix(group))
	if err != nil {
		return nil, err
	}
	live := make(map[string]bool, len(found))
	for _, doc := range found {
		live[string(doc.Value)] = true
	}
	return live, nil
}

func pause(ctx context.Context, clock base.Clock, d time.Duration) error {
	select {
	case <-clock.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Next returns the next partition that the member has come to own. When the member
// was left it returns ErrClosed, when another has its name ErrFenced: it then has
// to be left, and must not join again by itself.
func (m *Member) Next(ctx context.Context) (*Claim, error) {
	for {
		m.mu.Lock()
		if len(m.queue) > 0 {
			claim := m.queue[0]
			m.queue = m.queue[1:]
			m.mu.Unlock()
			return claim, nil
		}
		err := m.err
		m.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-m.ready:
		case <-m.done:
			m.mu.Lock()
			if m.err == nil {
				m.err = base.ErrClosed
			}
			m.mu.Unlock()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// deliver hands a new claim to Next.
func (m *Member) deliver(c *Claim) {
	m.mu.Lock()
	m.claims[c.place] = c
	m.queue = append(m.queue, c)
	m.mu.Unlock()
	signal(m.ready)
}

// drop forgets a claim that has ended and lets run look whether it shall be taken
// again.
func (m *Member) drop(c *Claim) {
	m.mu.Lock()
	if m.claims[c.place] == c {
		delete(m.claims, c.place)
	}
	m.mu.Unlock()
	signal(m.nudge)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// held returns the claims that were not released.
func (m *Member) held() map[Place]*Claim {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.claims)
}

// loseAll says that every claim may be another's.
func (m *Member) loseAll() {
	for _, claim := range m.held() {
		claim.lose()
	}
}

// Leave ends the membership. Release the claims before: those that were not are
// lost, and their next owners begin at what was committed. A static member keeps
// its partitions until its session times out. After an error the others wait as
// long. ctx bounds all of it; a second call does nothing.
func (m *Member) Leave(ctx context.Context) error {
	m.stop()
	<-m.done
	m.loseAll()
	if m.lease == nil {
		return nil
	}
	lease := m.lease
	m.lease = nil
	if m.o.Name != "" {
		lease.Abandon()
		return nil
	}
	err := m.resign(ctx)
	if err := errors.Join(err, lease.Release(ctx)); err != nil {
		return fmt.Errorf("leaving group %s: %w", m.o.Group, err)
	}
	return nil
}

// resign takes the member out of the roster.
func (m *Member) resign(ctx context.Context) error {
	for attempt := range enrollAttempts {
		group, revision, err := loadRoster(ctx, m.o.Documents, m.o.Group)
		if err != nil {
			return err
		}
		if _, ok := group.session(m.session); !ok {
			return nil
		}
		left, err := m.store(ctx, group.without(func(o enrolled) bool { return o.Session == m.session }), revision)
		if left || err != nil {
			return err
		}
		if err := pause(ctx, m.o.Clock, conflictPause*time.Duration(attempt+1)); err != nil {
			return err
		}
	}
	return base.WithClass(base.ErrUnavailable, errors.New("others change the group again and again"))
}
