package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// offsetsOf are where records lie.
func offsetsOf(records engine.Records) (offsets []engine.Offset) {
	for i := range records.Records {
		offsets = append(offsets, records.Records[i].Offset)
	}
	return offsets
}

// Given a cursor with a mark and acknowledged records after it, when the engine was
// closed and opened again, then it reads what is left, each once. Behaviours 33 and 35.
func TestACursorGoesOnInANewEngine(t *testing.T) {
	opts := without(options(t))
	e := open(t, opts)
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	appendOrders(t, s, 0, 10)
	c, err := s.OpenCursor(t.Context(), 0, "billing")
	require.NoError(t, err)
	require.False(t, c.Marked())
	require.NoError(t, c.MarkConsumed(1, map[string]string{"batch": "7"}))
	require.NoError(t, c.Ack(engine.OffsetRange{Start: 4, End: 6}))
	require.NoError(t, c.Persist(t.Context()))
	require.NoError(t, c.Ack(engine.OffsetRange{Start: 8, End: 9})) // is not made durable
	c.Close()
	require.NoError(t, e.Close(t.Context()))

	e = closeAtEnd(t, open(t, opts))
	s, err = e.Stream("shop/orders")
	require.NoError(t, err)
	c, err = s.OpenCursor(t.Context(), 0, "billing")
	require.NoError(t, err)
	defer c.Close()
	require.EqualValues(t, 2, c.Next())
	require.Equal(t, map[string]string{"batch": "7"}, c.Properties())
	backlog, err := c.Backlog()
	require.NoError(t, err)
	require.EqualValues(t, 6, backlog)
	read, err := c.Read(t.Context(), engine.CursorRead{})
	require.NoError(t, err)
	require.Equal(t, []engine.Offset{2, 3, 6, 7, 8, 9}, offsetsOf(read))
}

// Given a cursor that is open in one engine, when another opens it, then the first can
// make nothing durable any more.
func TestACursorBelongsToWhoOpenedItLast(t *testing.T) {
	opts := without(options(t))
	first := closeAtEnd(t, open(t, opts))
	s, err := first.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	appendOrders(t, s, 0, 3)
	mine, err := s.OpenCursor(t.Context(), 0, "billing")
	require.NoError(t, err)
	defer mine.Close()

	second := closeAtEnd(t, open(t, opts))
	there, err := second.Stream("shop/orders")
	require.NoError(t, err)
	theirs, err := there.OpenCursor(t.Context(), 0, "billing")
	require.NoError(t, err)
	defer theirs.Close()
	require.NoError(t, mine.MarkConsumed(0, nil))
	require.ErrorIs(t, mine.Persist(t.Context()), engine.ErrFenced)
	require.NoError(t, theirs.MarkConsumed(1, nil))
	require.NoError(t, theirs.Persist(t.Context()))
}

func TestACursorNeedsAPlaceAndAName(t *testing.T) {
	e := closeAtEnd(t, open(t, without(options(t))))
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	_, err = s.OpenCursor(t.Context(), 1, "billing")
	require.ErrorIs(t, err, engine.ErrNotFound)
	require.ErrorContains(t, err, "opening cursor billing: partition 1 of shop/orders, which has 1")
	_, err = s.OpenCursor(t.Context(), 0, "no name")
	require.ErrorIs(t, err, engine.ErrInvalid)
	_, err = s.EphemeralCursor(1, 0)
	require.ErrorIs(t, err, engine.ErrNotFound)
}

// A cursor that nothing remembers reads and forgets like any other, within one life.
func TestAnEphemeralCursorIsForgotten(t *testing.T) {
	e := closeAtEnd(t, open(t, without(options(t))))
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	appendOrders(t, s, 0, 5)
	c, err := s.EphemeralCursor(0, 2)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Ack(engine.OffsetRange{Start: 3, End: 4}))
	require.NoError(t, c.Persist(t.Context()))
	read, err := c.Read(t.Context(), engine.CursorRead{})
	require.NoError(t, err)
	require.Equal(t, []engine.Offset{2, 4}, offsetsOf(read))
	again, err := s.EphemeralCursor(0, 2)
	require.NoError(t, err)
	defer again.Close()
	read, err = again.Read(t.Context(), engine.CursorRead{})
	require.NoError(t, err)
	require.Equal(t, []engine.Offset{2, 3, 4}, offsetsOf(read))
}
