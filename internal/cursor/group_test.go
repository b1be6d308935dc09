package cursor

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
)

// speed is how much faster than the machine's the clock of a group runs: its
// session of 10 s is half a second.
const speed = 20

// join makes a member that the test leaves at its end.
func (w *world) join(t *testing.T, o MemberOptions) *Member {
	t.Helper()
	m, err := Join(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = m.Leave(ctx)
	})
	return m
}

// next returns the next n claims of a member, by place.
func next(t *testing.T, m *Member, n int) map[Place]*Claim {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	claims := map[Place]*Claim{}
	for range n {
		c, err := m.Next(ctx)
		require.NoError(t, err)
		claims[c.Place()] = c
	}
	return claims
}

// none requires that a member comes to own nothing for some heartbeats.
func none(t *testing.T, m *Member) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second/speed)
	defer cancel()
	_, err := m.Next(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func closes(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("it did not happen")
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func placesOf(claims map[Place]*Claim) []Place { return slices.Collect(maps.Keys(claims)) }

// letGo waits until n claims are revoked, releases those, and returns them.
func letGo(t *testing.T, claims map[Place]*Claim, n int) map[Place]*Claim {
	t.Helper()
	revoked := map[Place]*Claim{}
	require.Eventually(t, func() bool {
		for place, c := range claims {
			if isClosed(c.Revoked()) {
				revoked[place] = c
			}
		}
		return len(revoked) == n
	}, patience, time.Millisecond)
	for place, c := range revoked {
		require.NoError(t, c.Release(t.Context()))
		delete(claims, place)
	}
	return revoked
}

func TestMembersShareAStreamAndAJoinerWaitsForRelease(t *testing.T) {
	w := newWorld(newFastClock(speed))
	o := w.options(w.all(w.stream("orders", 4, 100)))
	o.RebalanceTimeout = time.Hour // nobody is overruled
	a := w.join(t, o)
	ofA := next(t, a, 4)
	for _, c := range ofA {
		require.False(t, c.Cursor().Marked(), "the group never was here")
		require.NoError(t, c.Cursor().MarkConsumed(41, nil))
	}

	b := w.join(t, o)
	none(t, b)
	revoked := letGo(t, ofA, 2)
	ofB := next(t, b, 2)
	require.ElementsMatch(t, placesOf(revoked), placesOf(ofB))
	for place, c := range ofB {
		require.EqualValues(t, 42, c.Cursor().Next(), "it goes on where the other ended")
		require.NoError(t, revoked[place].Release(t.Context()), "twice")
	}
	for place, c := range ofA {
		require.False(t, isClosed(c.Revoked()), "%s stays", place)
	}

	require.NoError(t, b.Leave(t.Context()))
	for _, c := range ofB {
		closes(t, c.Lost())
	}
	require.ElementsMatch(t, placesOf(revoked), placesOf(next(t, a, 2)))
	_, err := b.Next(t.Context())
	require.ErrorIs(t, err, base.ErrClosed)
}

// A member that is to get more partitions than it takes between two looks at the
// group goes on at once while it gets on, and else does not ask without a pause.
func TestAMemberPausesWhileOwnersBeforeLetGoOfNothing(t *testing.T) {
	const partitions = 2*maxTakes + 10
	w := newWorld(newFastClock(speed))
	o := w.options(w.all(w.stream("orders", partitions, 1)))
	o.RebalanceTimeout = time.Hour // nobody is overruled
	a := enrolledMember(t, o)
	var waits []time.Duration
	for len(a.claims) < partitions {
		wait, err := a.beat(t.Context())
		require.NoError(t, err)
		waits = append(waits, wait)
	}
	require.Equal(t, []time.Duration{0, 0, o.Heartbeat}, waits)

	b := enrolledMember(t, o) // half of them shall be its own
	wait, err := b.beat(t.Context())
	require.NoError(t, err)
	require.Empty(t, b.claims)
	require.Equal(t, takePause, wait)
}

// enrolledMember is a member that looks at the group when the test lets it.
func enrolledMember(t *testing.T, o MemberOptions) *Member {
	t.Helper()
	m := newMember(o, o.Logger)
	m.name = o.NewID()
	require.NoError(t, m.enroll(t.Context()))
	m.stop = func() {}
	close(m.done)
	t.Cleanup(func() {
		m.loseAll()
		require.NoError(t, m.lease.Release(context.Background()))
	})
	return m
}

func TestAStuckConsumerIsOverruledAndFenced(t *testing.T) {
	w := newWorld(newFastClock(speed))
	o := w.options(w.all(w.stream("orders", 2, 100)))
	a := w.join(t, o)
	ofA := next(t, a, 2)
	for _, c := range ofA {
		require.NoError(t, c.Cursor().MarkConsumed(9, nil))
		require.NoError(t, c.Commit(t.Context()))
	}
	b := w.join(t, o)
	for place, taken := range next(t, b, 1) { // the first does not let go
		stuck := ofA[place]
		closes(t, stuck.Revoked())
		require.EqualValues(t, 10, taken.Cursor().Next(), "what was in flight is delivered again")
		require.NoError(t, taken.Cursor().MarkConsumed(29, nil))
		require.NoError(t, taken.Commit(t.Context()))

		require.NoError(t, stuck.Cursor().MarkConsumed(19, nil), "its pipeline wakes up")
		require.ErrorIs(t, stuck.Commit(t.Context()), base.ErrFenced)
		closes(t, stuck.Lost())
		require.NoError(t, stuck.Release(t.Context()))
		require.NoError(t, taken.Cursor().MarkConsumed(39, nil))
		require.NoError(t, taken.Commit(t.Context()), "the owner's commit stands")
	}
}

func TestAMemberThatIsSilentLosesItsPartitionsAndComesBack(t *testing.T) {
	w := newWorld(newFastClock(speed))
	o := w.options(w.all(w.stream("orders", 2, 100)))
	silent := o
	g := &gate{Documents: w.documents}
	silent.Documents = g
	a := w.join(t, silent)
	ofA := next(t, a, 2)
	resume := g.pause()
	b := w.join(t, o)
	ofB := next(t, b, 2)
	for place, c := range ofB {
		require.NoError(t, c.Cursor().MarkConsumed(5, nil))
		require.NoError(t, c.Commit(t.Context()), place)
	}
	resume()
	for _, c := range ofA {
		closes(t, c.Lost())
		require.NoError(t, c.Cursor().MarkConsumed(3, nil))
		require.ErrorIs(t, c.Commit(t.Context()), base.ErrFenced)
		require.NoError(t, c.Release(t.Context()))
	}
	letGo(t, ofB, 1) // for the one that has come back
	for _, c := range next(t, a, 1) {
		require.EqualValues(t, 6, c.Cursor().Next())
	}
}

func TestAStaticMemberKeepsItsPartitionsAcrossARestart(t *testing.T) {
	w := newWorld(newFastClock(speed))
	o := w.options(w.all(w.stream("orders", 4, 100)))
	o.SessionTimeout = time.Hour
	static := o
	static.Name = "blue"
	a := w.join(t, static)
	ofA := next(t, a, 4)
	b := w.join(t, o)
	letGo(t, ofA, 2)
	ofB := next(t, b, 2)
	for _, c := range ofA {
		require.NoError(t, c.Release(t.Context()))
	}
	require.NoError(t, a.Leave(t.Context()))
	none(t, b)

	again := w.join(t, static)
	require.ElementsMatch(t, placesOf(ofA), placesOf(next(t, again, 2)))
	for place, c := range ofB {
		require.False(t, isClosed(c.Revoked()), "a restart moved %s", place)
	}
}

func TestTwoMembersOfOneNameDoNotTakeTurns(t *testing.T) {
	w := newWorld(newFastClock(speed))
	o := w.options(w.all(w.stream("orders", 1, 100)))
	o.Name = "blue"
	first := w.join(t, o)
	claims := next(t, first, 1)
	second := w.join(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := first.Next(ctx)
	require.ErrorIs(t, err, base.ErrFenced)
	require.ErrorContains(t, err, "instance_id")
	for _, c := range claims {
		closes(t, c.Lost())
		require.NoError(t, c.Release(t.Context()))
	}
	next(t, second, 1)
	none(t, second)
}

func TestPartitionsAndStreamsThatAppearAreShared(t *testing.T) {
	w := newWorld(newFastClock(speed))
	orders, returns := w.stream("orders", 1, 10), w.stream("returns", 0, 10)
	m := w.join(t, w.options(w.all(orders, returns)))
	next(t, m, 1)
	w.grow(orders, 1, 3, 10)
	require.Contains(t, next(t, m, 2), Place{orders, 2})
	w.grow(returns, 0, 1, 10)
	require.Contains(t, next(t, m, 1), Place{returns, 0})
}

func TestADroppedStreamIsForgotten(t *testing.T) {
	w := newWorld(newFastClock(speed))
	orders, returns := w.stream("orders", 1, 10), w.stream("returns", 2, 10)
	m := w.join(t, w.options(w.all(orders, returns)))
	claims := next(t, m, 3)
	for _, c := range claims {
		require.NoError(t, c.Cursor().MarkConsumed(3, nil))
		require.NoError(t, c.Commit(t.Context()))
	}
	w.drop(returns)
	closes(t, claims[Place{returns, 0}].Revoked())
	require.Eventually(t, func() bool {
		found, err := w.documents.List(t.Context(), "commit.")
		return err == nil && len(found) == 1
	}, patience, 10*time.Millisecond, "only the commit of the stream that lives")
	commits, err := Commits(t.Context(), w.documents, orders)
	require.NoError(t, err)
	require.Equal(t, []Commit{{Group: "audit", Next: 4, Committed: true}}, commits)
	one, err := CommitOf(t.Context(), w.documents, "audit", Place{orders, 0})
	require.NoError(t, err)
	require.Equal(t, commits[0], one)
}

func TestRetentionSeesHowFarEveryGroupIs(t *testing.T) {
	w := newWorld(newFastClock(speed))
	orders := w.stream("orders", 2, 10)
	for i, group := range []string{"a.b", "a_b"} {
		o := w.options(w.all(orders))
		o.Group = group
		for place, c := range next(t, w.join(t, o), 2) {
			if place.Partition == 1 {
				continue // it was taken and nothing was committed
			}
			require.NoError(t, c.Cursor().MarkConsumed(base.Offset(i), nil))
			require.NoError(t, c.Commit(t.Context()))
		}
	}
	commits, err := Commits(t.Context(), w.documents, orders)
	require.NoError(t, err)
	require.ElementsMatch(t, []Commit{
		{Group: "a_b", Partition: 0, Next: 2, Committed: true},
		{Group: "a.b", Partition: 0, Next: 1, Committed: true},
		{Group: "a_b", Partition: 1},
		{Group: "a.b", Partition: 1},
	}, commits)
	require.NoError(t, ForgetStream(t.Context(), w.documents, orders))
	commits, err = Commits(t.Context(), w.documents, orders)
	require.NoError(t, err)
	require.Empty(t, commits)
}

// everywhere is a target of SeekGroup.
func everywhere(next base.Offset) func(Place) (base.Offset, bool, error) {
	return func(Place) (base.Offset, bool, error) { return next, true, nil }
}

func TestAGroupIsDescribed(t *testing.T) {
	w := newWorld(newFastClock(speed))
	o := w.options(w.all(w.stream("orders", 2, 10)))
	o.Name = "blue"
	m := w.join(t, o)
	for place, c := range next(t, m, 2) {
		if place.Partition == 0 {
			require.NoError(t, c.Cursor().MarkConsumed(3, nil))
			c.Cursor().SetStalled(true)
			require.NoError(t, c.Commit(t.Context()))
		}
	}
	names, err := GroupNames(t.Context(), w.documents)
	require.NoError(t, err)
	require.Equal(t, []string{"audit"}, names)
	g, err := DescribeGroup(t.Context(), w.documents, "audit")
	require.NoError(t, err)
	require.True(t, g.Active())
	require.Equal(t, []GroupMember{{Name: "blue", Label: "host", Live: true, Partitions: 2}}, g.Members)
	require.Len(t, g.Partitions, 2)
	first := g.Partitions[0]
	require.Equal(t, "blue", first.Owner)
	require.Equal(t, "blue", first.Assigned)
	require.True(t, first.Stalled)
	require.True(t, first.Committed)
	require.EqualValues(t, 4, first.Next)
	require.False(t, g.Partitions[1].Committed)
}

func TestAGroupIsSoughtAndDeletedOnceItIsInactive(t *testing.T) {
	w := newWorld(newFastClock(speed))
	o := w.options(w.all(w.stream("orders", 2, 10)))
	m := w.join(t, o)
	next(t, m, 2)
	_, err := SeekGroup(t.Context(), w.documents, w.clock, "audit", everywhere(7))
	require.ErrorIs(t, err, ErrActive)
	require.ErrorIs(t, DeleteGroup(t.Context(), w.documents, "audit"), ErrActive)
	require.NoError(t, m.Leave(t.Context()))
	moved, err := SeekGroup(t.Context(), w.documents, w.clock, "audit", everywhere(7))
	require.NoError(t, err)
	require.Equal(t, 2, moved)
	_, err = SeekGroup(t.Context(), w.documents, w.clock, "audit", func(Place) (base.Offset, bool, error) { return 0, false, base.ErrUnavailable })
	require.ErrorIs(t, err, base.ErrUnavailable)

	again := w.join(t, o)
	for _, c := range next(t, again, 2) {
		require.EqualValues(t, 7, c.Cursor().Next())
		require.NoError(t, c.Release(t.Context()))
	}
	require.NoError(t, again.Leave(t.Context()))
	require.NoError(t, DeleteGroup(t.Context(), w.documents, "audit"))
	found, err := w.documents.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, found, "nothing is left of it")
	for _, name := range []string{"audit", "never"} {
		require.ErrorIs(t, DeleteGroup(t.Context(), w.documents, name), base.ErrNotFound)
		_, err = DescribeGroup(t.Context(), w.documents, name)
		require.ErrorIs(t, err, base.ErrNotFound)
	}
}

// A member that sleeps through a seek finds its commit fenced.
func TestASeekFencesWhoSleptThroughIt(t *testing.T) {
	w := newWorld(newFastClock(speed))
	o := w.options(w.all(w.stream("orders", 1, 10)))
	g := &gate{Documents: w.documents}
	o.Documents = g
	m := w.join(t, o)
	for place, c := range next(t, m, 1) {
		g.kill()
		require.Eventually(t, func() bool {
			_, err := SeekGroup(t.Context(), w.documents, w.clock, "audit", everywhere(2))
			return err == nil
		}, patience, 10*time.Millisecond)
		g.revive()
		require.NoError(t, c.Cursor().MarkConsumed(8, nil))
		require.ErrorIs(t, c.Commit(t.Context()), base.ErrFenced)
		require.NoError(t, c.Release(t.Context()))
		again := next(t, m, 1)
		require.EqualValues(t, 2, again[place].Cursor().Next())
	}
}

func TestAGroupWithAWrongNameOrOneTooManyIsRefused(t *testing.T) {
	w := newWorld(newFastClock(speed))
	o := w.options(w.all())
	o.Group = "no group"
	_, err := Join(t.Context(), o)
	require.ErrorIs(t, err, base.ErrInvalid)
	for i := range MaxGroups {
		key := groupKey(string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)))
		_, err := w.documents.Create(t.Context(), key, []byte(`{"version":1}`), 0)
		require.NoError(t, err)
	}
	o.Group = "toomany"
	_, err = Join(t.Context(), o)
	require.ErrorIs(t, err, base.ErrInvalid)
	require.ErrorContains(t, err, "group delete")
	left, err := w.documents.List(t.Context(), memberKind)
	require.NoError(t, err)
	require.Empty(t, left, "its lease was given back")
}

func TestAMemberOfNoGroupOwnsAllThatItWants(t *testing.T) {
	w := newWorld(newFastClock(speed))
	orders, returns := w.stream("orders", 2, 10), w.stream("returns", 1, 10)
	m := Follow(t.Context(), w.options(w.all(orders, returns)))
	claims := next(t, m, 3)
	w.grow(orders, 2, 3, 10)
	grown := next(t, m, 1)[Place{orders, 2}]
	require.NoError(t, grown.Cursor().Reset(t.Context(), 4))
	require.NoError(t, grown.Commit(t.Context()))
	w.drop(returns)
	closes(t, claims[Place{returns, 0}].Revoked())
	require.NoError(t, claims[Place{returns, 0}].Release(t.Context()))
	require.NoError(t, m.Leave(t.Context()))
	closes(t, grown.Lost())
	found, err := w.documents.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, found, "nobody is told")
}
