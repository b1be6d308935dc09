package cursor

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/natskv"
	"github.com/lakestream-go/lakestream/internal/log"
)

// ledger is what members delivered and committed.
type ledger struct {
	coord.Documents

	mu sync.Mutex
	// All below are guarded by mu.
	delivered map[Place]base.Offset // all before it, in order
	again     int                   // deliveries of what was delivered before
	committed map[string]base.Offset
	faults    []string
}

func newLedger(documents coord.Documents) *ledger {
	return &ledger{Documents: documents, delivered: map[Place]base.Offset{}, committed: map[string]base.Offset{}}
}

// deliver notes that a consumer was given a record.
func (l *ledger) deliver(place Place, offset base.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch next := l.delivered[place]; {
	case offset == next:
		l.delivered[place]++
	case offset < next:
		l.again++
	default:
		l.faults = append(l.faults, place.String()+": a record was delivered before the one that precedes it")
	}
}

func (l *ledger) upTo(place Place) base.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delivered[place]
}

// Update lets a commit through and looks whether it went back.
func (l *ledger) Update(ctx context.Context, key string, value []byte, at base.Revision, ttl time.Duration) (base.Revision, error) {
	l.mu.Lock() // so that commits are looked at in their order
	defer l.mu.Unlock()
	revision, err := l.Documents.Update(ctx, key, value, at, ttl)
	doc, decodeErr := decodeDocument(value)
	if err != nil || decodeErr != nil || doc.Next == nil {
		return revision, err
	}
	if *doc.Next < l.committed[key] {
		l.faults = append(l.faults, key+": a commit went back")
	}
	l.committed[key] = *doc.Next
	return revision, err
}

// consumer is a member and what works for it.
type consumer struct {
	ledger *ledger
	gate   *gate
	member *Member
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

func (w *world) consume(t *testing.T, l *ledger, o MemberOptions) *consumer {
	t.Helper()
	c := &consumer{ledger: l, gate: &gate{Documents: l}}
	o.Documents = c.gate
	var err error
	c.member, err = Join(t.Context(), o)
	require.NoError(t, err)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.tasks.Go(func() {
		for {
			claim, err := c.member.Next(c.ctx)
			if err != nil {
				return
			}
			c.tasks.Go(func() { c.work(claim) })
		}
	})
	return c
}

// work delivers a partition in order, commits now and then, and lets go when told.
func (c *consumer) work(claim *Claim) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.tasks.Go(func() {
		defer cancel()
		select {
		case <-claim.Revoked():
		case <-claim.Lost():
		case <-ctx.Done():
		}
	})
	for goesOn := true; goesOn && ctx.Err() == nil; {
		goesOn = c.step(ctx, claim)
	}
	releasing, done := context.WithTimeout(context.Background(), patience)
	defer done()
	_ = claim.Release(releasing) // one that fails is overruled by the next owner
}

// step delivers one batch, or waits for one. It returns false when that fails.
func (c *consumer) step(ctx context.Context, claim *Claim) bool {
	batch, err := claim.Cursor().Read(ctx, ReadOptions{Limits: log.Limits{MaxMessages: 7}})
	if err != nil {
		return false
	}
	for _, offset := range offsetsOf(batch) {
		c.gate.wait(ctx) // a process that is paused delivers nothing
		c.ledger.deliver(claim.Place(), offset)
	}
	if len(batch.Records) == 0 {
		_ = claim.Commit(ctx)
		return claim.Cursor().Wait(ctx) == nil
	}
	_ = claim.Cursor().Ack(span(batch.Records[0].Offset, batch.Next))
	if rand.IntN(4) == 0 {
		_ = claim.Commit(ctx)
	}
	return true
}

// leave ends a consumer in order.
func (c *consumer) leave(t *testing.T) {
	t.Helper()
	c.cancel()
	c.tasks.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, c.member.Leave(ctx))
}

// kill ends it as kill -9 does: nothing of it reaches coordination any more.
func (c *consumer) kill() {
	c.gate.kill()
	c.cancel()
	c.tasks.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = c.member.Leave(ctx)
}

// story is members that come and go.
type story struct {
	events, members int
	// kill and pause are one in so many events; 0 is none.
	kill, pause int
	// between bounds the time between events.
	between time.Duration
}

// run lets partitions grow meanwhile, and requires what must hold at the end.
func (s story) run(t *testing.T, w *world, o MemberOptions) {
	t.Helper()
	places := w.places()
	l := newLedger(o.Documents)
	appending, stop := context.WithCancel(t.Context())
	var appender sync.WaitGroup
	appender.Go(func() {
		for appending.Err() == nil {
			w.log(places[rand.IntN(len(places))]).append(base.Offset(1 + rand.IntN(20)))
			time.Sleep(200 * time.Microsecond)
		}
	})
	consumers := []*consumer{w.consume(t, l, o)}
	for range s.events {
		time.Sleep(time.Duration(rand.Int64N(int64(s.between))))
		consumers = s.event(t, w, l, o, consumers)
	}
	stop()
	appender.Wait()
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(places, func(p Place) bool { return l.upTo(p) < w.log(p).head })
	}, patience, 20*time.Millisecond, "every record is delivered")
	for _, c := range consumers {
		c.leave(t)
	}
	records := base.Offset(0)
	for _, place := range places {
		head := w.log(place).head
		records += head
		doc, _, err := loadDocument(t.Context(), o.Documents, place.key(commitKind, o.Group))
		require.NoError(t, err)
		require.NotNil(t, doc.Next)
		require.Equal(t, head, *doc.Next, "everything was committed in the end")
	}
	require.Empty(t, l.faults)
	t.Logf("%d records, %d delivered again", records, l.again)
}

// event makes one member come or go.
func (s story) event(t *testing.T, w *world, l *ledger, o MemberOptions, consumers []*consumer) []*consumer {
	t.Helper()
	i := rand.IntN(len(consumers))
	switch {
	case s.pause > 0 && rand.IntN(s.pause) == 0:
		resume := consumers[i].gate.pause()
		<-w.clock.After(o.SessionTimeout + o.SessionTimeout/2)
		resume()
		return consumers
	case len(consumers) > 1 && s.kill > 0 && rand.IntN(s.kill) == 0:
		consumers[i].kill()
	case len(consumers) > 1 && (len(consumers) == s.members || rand.IntN(2) == 0):
		consumers[i].leave(t)
	default:
		return append(consumers, w.consume(t, l, o))
	}
	return slices.Delete(consumers, i, i+1)
}

// A hundred times a member joins, leaves, is killed or pauses past its session
// while partitions grow: every record is delivered, first deliveries of a partition
// are in order, and no commit goes back.
func TestAHundredRebalancesUnderLoad(t *testing.T) {
	w := newWorld(newFastClock(50))
	o := w.options(w.all(w.stream("orders", 5, 0), w.stream("returns", 3, 0)))
	story{events: 100, members: 5, kill: 6, pause: 8, between: 40 * time.Millisecond}.run(t, w, o)
}

func TestRebalancesOverNATS(t *testing.T) {
	store, err := natskv.OpenEmbedded(t.Context(), natskv.Embedded{
		Dir: t.TempDir(), Options: natskv.Options{Prefix: "test", Name: "test", Clock: base.SystemClock{}, Logger: quiet()},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close(context.Background())) })
	w := newWorld(newFastClock(4)) // what times out at the server takes its time
	w.documents = store.Documents()
	o := w.options(w.all(w.stream("orders", 5, 0), w.stream("returns", 3, 0)))
	o.SessionTimeout = 12 * time.Second
	events := 20
	if testing.Short() {
		events = 5
	}
	story{events: events, members: 4, kill: 8, between: 200 * time.Millisecond}.run(t, w, o)
}
