package engine_test

import (
	"context"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// group are options of a group that reads one stream and looks often.
func group(stream string) engine.SubscribeOptions {
	return engine.SubscribeOptions{
		Group: "billing", Selections: []engine.Selection{{Stream: stream, All: true}}, Heartbeat: 20 * time.Millisecond,
	}
}

func subscribe(t *testing.T, e *engine.Engine, o engine.SubscribeOptions) *engine.Subscription {
	t.Helper()
	s, err := e.Subscribe(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
	return s
}

func nextClaim(t *testing.T, s *engine.Subscription) *engine.Claim {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	claim, err := s.Next(ctx)
	require.NoError(t, err)
	return claim
}

// releaseRevoked gives back what shall go to another member and returns what stays.
func releaseRevoked(t *testing.T, claims []*engine.Claim) []*engine.Claim {
	t.Helper()
	return slices.DeleteFunc(claims, func(c *engine.Claim) bool {
		select {
		case <-c.Revoked():
			require.NoError(t, c.Release(t.Context()))
			return true
		default:
			return false
		}
	})
}

// orders makes a stream of four partitions with one record each.
func orders(t *testing.T, e *engine.Engine) *engine.Stream {
	t.Helper()
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{Partitions: 4})
	require.NoError(t, err)
	require.NoError(t, s.Append(t.Context(), one(0, 1, 2, 3)))
	return s
}

// Given a member in one engine that owns all, when one joins in another engine, then
// each has half, and the second goes on where the first has committed.
func TestMembersInTwoEnginesShareTheirPartitions(t *testing.T) {
	opts := without(options(t))
	first := closeAtEnd(t, open(t, opts))
	orders(t, first)
	a := subscribe(t, first, group("shop/orders"))
	var mine []*engine.Claim
	for range 4 {
		claim := nextClaim(t, a)
		require.False(t, claim.Cursor().Marked(), "the group was never here")
		require.NoError(t, claim.Cursor().MarkConsumed(0, nil))
		mine = append(mine, claim)
	}

	second := closeAtEnd(t, open(t, opts))
	b := subscribe(t, second, group("shop/orders"))
	require.Eventually(t, func() bool {
		mine = releaseRevoked(t, mine)
		return len(mine) == 2
	}, patience, time.Millisecond)
	for range 2 {
		claim := nextClaim(t, b)
		require.Equal(t, "shop/orders", claim.Stream.Name())
		require.EqualValues(t, 1, claim.Cursor().Next())
		require.False(t, slices.ContainsFunc(mine, func(c *engine.Claim) bool { return c.Partition == claim.Partition }))
		defer func() { require.NoError(t, claim.Release(context.WithoutCancel(t.Context()))) }()
	}
	g, err := first.Group(t.Context(), "billing")
	require.NoError(t, err)
	require.Equal(t, engine.GroupStable, g.State)
	require.Len(t, g.Members, 2)
	require.EqualValues(t, 2, g.Lag, "what the first has not committed")
	for _, claim := range mine {
		next, committed, err := b.Committed(t.Context(), claim.Place())
		require.NoError(t, err)
		require.False(t, committed)
		require.Zero(t, next)
		require.NoError(t, claim.Release(t.Context()))
		next, committed, err = b.Committed(t.Context(), claim.Place())
		require.NoError(t, err)
		require.True(t, committed)
		require.EqualValues(t, 1, next)
	}
}

// A group that has members is neither sought nor deleted; once they left, both.
func TestAGroupIsSoughtWhenItsMembersLeft(t *testing.T) {
	e := closeAtEnd(t, open(t, without(options(t))))
	orders(t, e)
	s, err := e.Subscribe(t.Context(), group("shop/orders"))
	require.NoError(t, err)
	for range 4 {
		claim := nextClaim(t, s)
		require.NoError(t, claim.Cursor().MarkConsumed(0, nil))
		require.NoError(t, claim.Commit(t.Context()))
	}
	_, err = e.SeekGroup(t.Context(), "billing", engine.Position{Kind: engine.Earliest})
	require.ErrorIs(t, err, engine.ErrActive)
	require.ErrorIs(t, e.DeleteGroup(t.Context(), "billing"), engine.ErrActive)
	require.NoError(t, s.Close(t.Context()))

	_, err = e.SeekGroup(t.Context(), "billing", engine.Position{Kind: engine.Committed})
	require.ErrorIs(t, err, engine.ErrInvalid)
	_, err = e.SeekGroup(t.Context(), "billing", engine.Position{Kind: engine.AtOffset, Offset: 2})
	require.ErrorIs(t, err, engine.ErrInvalid, "beyond the heads")
	moved, err := e.SeekGroup(t.Context(), "billing", engine.Position{Kind: engine.Earliest})
	require.NoError(t, err)
	require.Equal(t, 4, moved)
	groups, err := e.Groups(t.Context())
	require.NoError(t, err)
	require.Len(t, groups, 1)
	require.Equal(t, engine.GroupInactive, groups[0].State)
	require.EqualValues(t, 4, groups[0].Lag)
	require.NoError(t, e.DeleteGroup(t.Context(), "billing"))
	_, err = e.Group(t.Context(), "billing")
	require.ErrorIs(t, err, engine.ErrNotFound)
}

// Given a group and a cursor in a stream, when the stream is dropped, then who reads it
// lets go, and nothing is kept of where they were.
func TestADroppedStreamIsForgottenByGroupsAndCursors(t *testing.T) {
	var store coord.Store
	e := closeAtEnd(t, open(t, without(options(t)).WithCoordination(func(s coord.Store) coord.Store {
		store = s
		return s
	})))
	remembered := func(kind string) int {
		found, err := store.Documents().List(t.Context(), kind)
		require.NoError(t, err)
		return len(found)
	}
	s := orders(t, e)
	c, err := s.OpenCursor(t.Context(), 3, "audit")
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.MarkConsumed(0, nil))
	require.NoError(t, c.Persist(t.Context()))
	member := subscribe(t, e, group("shop/orders"))
	claim := nextClaim(t, member)
	require.NoError(t, claim.Cursor().MarkConsumed(0, nil))
	require.NoError(t, claim.Commit(t.Context()))
	require.NotZero(t, remembered("commit."))
	require.Equal(t, 1, remembered("cursor."))

	dropped, err := e.DropStream(t.Context(), "shop/orders", false)
	require.NoError(t, err)
	require.True(t, dropped)
	<-claim.Revoked()
	require.NoError(t, claim.Release(t.Context()))
	require.Eventually(t, func() bool { return remembered("commit.") == 0 }, patience, time.Millisecond)
	require.Zero(t, remembered("cursor."))
	require.False(t, e.Exists(claim.Place()))
	g, err := e.Group(t.Context(), "billing")
	require.NoError(t, err)
	require.Empty(t, g.Partitions)
}

// Alone, a subscription has every partition that is selected, those of a pattern that
// are created later too, and commits nothing.
func TestASubscriptionWithoutAGroupHasAllThatIsSelected(t *testing.T) {
	e := closeAtEnd(t, open(t, without(options(t))))
	orders(t, e)
	o := engine.SubscribeOptions{Heartbeat: 20 * time.Millisecond, Selections: []engine.Selection{
		{Stream: "shop/orders", First: 2, Last: 9}, {Pattern: regexp.MustCompile("^shop/returns"), All: true},
	}}
	s := subscribe(t, e, o)
	var found []string
	for range 2 {
		found = append(found, nextClaim(t, s).Place().String())
	}
	_, err := e.EnsureStream(t.Context(), "shop/returns-2026", engine.StreamConfig{})
	require.NoError(t, err)
	last := nextClaim(t, s)
	require.ElementsMatch(t, []string{"shop/orders:2", "shop/orders:3", "shop/returns-2026:0"}, append(found, last.Place().String()))
	_, committed, err := s.Committed(t.Context(), last.Place())
	require.NoError(t, err)
	require.False(t, committed)
	groups, err := e.Groups(t.Context())
	require.NoError(t, err)
	require.Empty(t, groups)
	require.NoError(t, s.Close(t.Context()))
	_, err = s.Next(t.Context())
	require.ErrorIs(t, err, engine.ErrClosed)
}

func TestWrongOptionsOfASubscriptionAreNamed(t *testing.T) {
	for want, o := range map[string]engine.SubscribeOptions{
		"consumer_group: ":                        {Group: "a b"},
		"instance_id: ":                           {Group: "a", InstanceID: "b c"},
		"session_timeout 1.5s: want whole":        {Group: "a", SessionTimeout: 1500 * time.Millisecond},
		"heartbeat_interval 1m0s: want less":      {Group: "a", Heartbeat: time.Minute},
		"rebalance_timeout -1s: want more than 0": {Group: "a", RebalanceTimeout: -time.Second},
	} {
		err := o.Validate()
		require.ErrorIs(t, err, engine.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, engine.SubscribeOptions{}.Validate())
}
