package cursor

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
	"github.com/lakestream-go/lakestream/internal/log"
)

// Behaviour 35.
func TestACursorRecoversItsMarkAndWhatWasAcknowledged(t *testing.T) {
	w := newWorld(coordtest.NewClock())
	place := Place{w.stream("orders", 1, 100), 0}
	c := w.cursor(t, place, "audit")
	require.False(t, c.Marked(), "new")
	require.NoError(t, c.MarkConsumed(9, map[string]string{"batch": "7"}))
	require.NoError(t, c.Ack(span(20, 30)))
	require.NoError(t, c.Ack(span(12, 13)))
	require.NoError(t, c.Persist(t.Context()))
	require.NoError(t, c.Ack(span(50, 60)), "after it was persisted")
	c.Close()

	again := w.cursor(t, place, "audit")
	require.True(t, again.Marked())
	require.EqualValues(t, 10, again.Next(), "the mark and one")
	require.EqualValues(t, 10, again.ReadPosition())
	require.Equal(t, map[string]string{"batch": "7"}, again.Properties())
	backlog, err := again.Backlog()
	require.NoError(t, err)
	require.EqualValues(t, 90-11, backlog)
	other := w.cursor(t, place, "other")
	require.False(t, other.Marked(), "names are apart")
}

// Behaviour 33.
func TestACursorSkipsWhatIsAcknowledged(t *testing.T) {
	w := newWorld(coordtest.NewClock())
	c := w.cursor(t, Place{w.stream("orders", 1, 12), 0}, "audit")
	require.NoError(t, c.Ack(span(0, 2)))
	require.NoError(t, c.Ack(span(4, 6)))
	require.NoError(t, c.Ack(span(11, 12)))
	batch, err := c.Read(t.Context(), ReadOptions{})
	require.NoError(t, err)
	require.Equal(t, []base.Offset{2, 3, 6, 7, 8, 9, 10}, offsetsOf(batch))
	require.EqualValues(t, 12, c.ReadPosition())
	first, err := c.FirstUnconsumed()
	require.NoError(t, err)
	require.EqualValues(t, 2, first)

	require.NoError(t, c.Ack(span(2, 4)), "the mark moves over what it reaches")
	require.EqualValues(t, 6, c.Next())
	require.NoError(t, c.Seek(0), "what is consumed is not read again")
	require.EqualValues(t, 6, c.ReadPosition())
}

// Behaviour 34.
func TestAReadThatSkipsEverythingMovesOn(t *testing.T) {
	w := newWorld(coordtest.NewClock())
	c := w.cursor(t, Place{w.stream("orders", 1, 10), 0}, "audit")
	odd := func(o base.Offset) bool { return o%2 == 1 }
	all := func(base.Offset) bool { return true }
	limits := log.Limits{MaxMessages: 4}

	batch, err := c.Read(t.Context(), ReadOptions{Limits: limits, Skip: all})
	require.NoError(t, err)
	require.Empty(t, batch.Records)
	require.EqualValues(t, 4, c.ReadPosition())

	batch, err = c.Read(t.Context(), ReadOptions{Limits: limits, Skip: odd, Until: 7})
	require.NoError(t, err)
	require.Equal(t, []base.Offset{4, 6}, offsetsOf(batch), "the bound is exclusive")
	require.EqualValues(t, 7, c.ReadPosition())
	batch, err = c.Read(t.Context(), ReadOptions{Until: 7})
	require.NoError(t, err)
	require.Empty(t, batch.Records)
	more, err := c.HasMore()
	require.NoError(t, err)
	require.True(t, more)
	batch, err = c.Read(t.Context(), ReadOptions{})
	require.NoError(t, err)
	require.Equal(t, []base.Offset{7, 8, 9}, offsetsOf(batch))
	more, err = c.HasMore()
	require.NoError(t, err)
	require.False(t, more)
}

// Behaviour 32.
func TestCloseDrainsOperations(t *testing.T) {
	w := newWorld(coordtest.NewClock())
	held := make(chan struct{})
	begun := make(chan struct{}, 1)
	store := coord.NewFaulty(mem.NewServer(w.clock).Open("test"), func(call coord.Call) coord.Fault {
		if call.Op != coord.OpUpdate {
			return coord.Fault{}
		}
		begun <- struct{}{}
		return coord.Fault{Hold: held}
	})
	w.documents = store.Documents()
	c := w.cursor(t, Place{w.stream("orders", 1, 10), 0}, "audit")
	require.NoError(t, c.MarkConsumed(3, nil))

	persisted, waited, closed := make(chan error, 1), make(chan error, 1), make(chan struct{})
	require.NoError(t, c.Seek(10))
	go func() { waited <- c.Wait(context.Background()) }()
	go func() { persisted <- c.Persist(context.Background()) }()
	<-begun
	go func() { defer close(closed); c.Close() }()
	require.ErrorIs(t, <-waited, base.ErrClosed, "a wait is ended")
	select {
	case <-closed:
		t.Fatal("closed while the cursor was being persisted")
	case <-time.After(20 * time.Millisecond):
	}
	close(held)
	require.NoError(t, <-persisted, "what had begun ends well")
	<-closed

	_, err := c.Read(t.Context(), ReadOptions{})
	require.ErrorIs(t, err, base.ErrClosed)
	for what, err := range map[string]error{
		"wait": c.Wait(t.Context()), "persist": c.Persist(t.Context()), "seek": c.Seek(0), "delete": c.Delete(t.Context()),
		"acknowledge": c.Ack(span(4, 5)), "mark": c.MarkConsumed(5, nil),
	} {
		require.ErrorIs(t, err, base.ErrClosed, what)
	}
	c.Close()
}

func TestAMarkNeverGoesBackUnlessItIsReset(t *testing.T) {
	w := newWorld(coordtest.NewClock())
	c := w.cursor(t, Place{w.stream("orders", 1, 10), 0}, "audit")
	require.NoError(t, c.MarkConsumed(5, map[string]string{"a": "1"}))
	require.NoError(t, c.MarkConsumed(2, map[string]string{"a": "2"}))
	require.EqualValues(t, 6, c.Next())
	require.Equal(t, map[string]string{"a": "1"}, c.Properties())
	require.ErrorIs(t, c.MarkConsumed(10, nil), base.ErrInvalid, "no record has that offset")
	require.ErrorIs(t, c.Ack(span(9, 11)), base.ErrInvalid)
	require.ErrorIs(t, c.Seek(11), base.ErrInvalid)

	require.NoError(t, c.Reset(t.Context(), 1))
	require.EqualValues(t, 1, c.Next())
	require.ErrorIs(t, c.Reset(t.Context(), 11), base.ErrInvalid)
	require.ErrorIs(t, c.Reset(t.Context(), -1), base.ErrInvalid)
}

func TestAnOwnerThatWasReplacedChangesNothing(t *testing.T) {
	w := newWorld(coordtest.NewClock())
	place := Place{w.stream("orders", 1, 10), 0}
	old := w.cursor(t, place, "audit")
	require.NoError(t, old.MarkConsumed(2, nil))
	require.NoError(t, old.Persist(t.Context()))
	fresh := w.cursor(t, place, "audit")
	require.NoError(t, fresh.MarkConsumed(5, nil))
	require.NoError(t, fresh.Persist(t.Context()))

	require.NoError(t, old.MarkConsumed(3, nil))
	require.ErrorIs(t, old.Persist(t.Context()), base.ErrFenced)
	require.ErrorIs(t, old.Persist(t.Context()), base.ErrFenced, "for ever")
	require.ErrorIs(t, old.Delete(t.Context()), base.ErrFenced)
	require.EqualValues(t, 6, w.cursor(t, place, "audit").Next())
}

func TestADeletedCursorIsGone(t *testing.T) {
	w := newWorld(coordtest.NewClock())
	place := Place{w.stream("orders", 1, 10), 0}
	c := w.cursor(t, place, "audit")
	require.NoError(t, c.MarkConsumed(2, nil))
	require.NoError(t, c.Persist(t.Context()))
	require.NoError(t, c.Delete(t.Context()))
	require.ErrorIs(t, c.Delete(t.Context()), base.ErrClosed)
	found, err := w.documents.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, found)
	require.False(t, w.cursor(t, place, "audit").Marked())
}

// A name is of one incarnation: what was consumed of a dropped stream says nothing
// about the one that has its name now.
func TestACursorOfARecreatedStreamStartsAnew(t *testing.T) {
	w := newWorld(coordtest.NewClock())
	first, second := w.stream("orders", 1, 10), w.stream("orders", 1, 10)
	c := w.cursor(t, Place{first, 0}, "audit")
	require.NoError(t, c.MarkConsumed(7, nil))
	require.NoError(t, c.Persist(t.Context()))
	require.False(t, w.cursor(t, Place{second, 0}, "audit").Marked())
}

func TestAnEphemeralCursorIsRememberedByNobody(t *testing.T) {
	w := newWorld(coordtest.NewClock())
	c := NewEphemeral(newMemLog(10), 4)
	defer c.Close()
	require.NoError(t, c.MarkConsumed(5, nil))
	require.NoError(t, c.Persist(t.Context()))
	batch, err := c.Read(t.Context(), ReadOptions{})
	require.NoError(t, err)
	require.Equal(t, []base.Offset{6, 7, 8, 9}, offsetsOf(batch))
	require.NoError(t, c.Delete(t.Context()))
	found, err := w.documents.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestWhatIsAcknowledgedAfterTheMarkIsBounded(t *testing.T) {
	w := newWorld(coordtest.NewClock())
	place := Place{w.stream("orders", 1, 3*MaxAcks), 0}
	c := w.cursor(t, place, "audit")
	for i := range base.Offset(MaxAcks) {
		require.NoError(t, c.Ack(span(2*i+1, 2*i+2)))
	}
	require.ErrorIs(t, c.Ack(span(2*MaxAcks+5, 2*MaxAcks+6)), base.ErrInvalid)
	require.NoError(t, c.Ack(span(2*MaxAcks, 2*MaxAcks+1)), "it joins one that is there")
	require.NoError(t, c.Persist(t.Context()), "it fits into a document")
	require.NoError(t, c.Ack(span(0, 1)), "the mark always moves")
	require.EqualValues(t, 2, c.Next())
	again := w.cursor(t, place, "audit")
	require.EqualValues(t, 0, again.Next())
	require.Len(t, again.acks, MaxAcks)
}

func TestPropertiesAreBounded(t *testing.T) {
	c := NewEphemeral(newMemLog(10), 0)
	defer c.Close()
	require.ErrorIs(t, c.MarkConsumed(1, map[string]string{"a": strings.Repeat("x", MaxPropertyBytes)}), base.ErrInvalid)
	many := map[string]string{}
	for i := range MaxProperties + 1 {
		many[strings.Repeat("k", i+1)] = ""
	}
	require.ErrorIs(t, c.MarkConsumed(1, many), base.ErrInvalid)
	require.Zero(t, c.Next())
}

func TestAWaitEndsWithARecordAndWithItsContext(t *testing.T) {
	source := newMemLog(3)
	c := NewEphemeral(source, 3)
	defer c.Close()
	waited := make(chan error, 1)
	go func() { waited <- c.Wait(context.Background()) }()
	source.append(1)
	require.NoError(t, <-waited)
	require.NoError(t, c.Seek(4))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { waited <- c.Wait(ctx) }()
	cancel()
	require.ErrorIs(t, <-waited, context.Canceled)
}

func TestReadingGoesOnWhereTheLogBeginsOnlyWhenTold(t *testing.T) {
	source := newMemLog(10)
	c := NewEphemeral(source, 0)
	defer c.Close()
	source.trim(6)
	_, err := c.Read(t.Context(), ReadOptions{})
	require.ErrorIs(t, err, base.ErrTrimmed)
	require.Zero(t, c.ReadPosition())
	backlog, err := c.Backlog()
	require.NoError(t, err)
	require.EqualValues(t, 4, backlog, "only what lives")
	first, err := c.FirstUnconsumed()
	require.NoError(t, err)
	require.EqualValues(t, 6, first)
}

// Replies may be lost at any write: what a cursor then holds is what it was told.
func TestLostRepliesLoseNothing(t *testing.T) {
	for _, op := range []coord.Op{coord.OpCreate, coord.OpUpdate} {
		w := newWorld(coordtest.NewClock())
		store := coord.NewFaulty(mem.NewServer(w.clock).Open("test"), func(call coord.Call) coord.Fault {
			if call.Op == op && call.N%3 == 1 {
				return coord.Fault{After: base.ErrUnknown}
			}
			return coord.Fault{}
		})
		w.documents = store.Documents()
		place := Place{w.stream("orders", 1, 100), 0}
		c := w.cursor(t, place, "audit")
		for i := range base.Offset(20) {
			require.NoError(t, c.MarkConsumed(i, nil))
			if err := c.Persist(t.Context()); err != nil {
				require.ErrorIs(t, err, base.ErrUnknown)
				require.NoError(t, c.Persist(t.Context()))
			}
		}
		require.EqualValues(t, 20, w.cursor(t, place, "audit").Next())
	}
}

func TestACursorOfAnUnreachableStoreSaysSo(t *testing.T) {
	w := newWorld(coordtest.NewClock())
	down := coord.NewFaulty(mem.NewServer(w.clock).Open("test"), func(coord.Call) coord.Fault { return coord.Fault{Before: base.ErrUnavailable} })
	w.documents = down.Documents()
	place := Place{w.stream("orders", 1, 1), 0}
	_, err := Open(t.Context(), w.cursorOptions(place, "audit"))
	require.ErrorIs(t, err, base.ErrUnavailable)
	_, err = Open(t.Context(), w.cursorOptions(place, "no name"))
	require.ErrorIs(t, err, base.ErrInvalid)
}

// model is a cursor as a set of offsets.
type model struct{ consumed map[base.Offset]bool }

func (m *model) consume(start, end base.Offset) {
	for o := start; o < end; o++ {
		m.consumed[o] = true
	}
}

func (m *model) next() base.Offset {
	next := base.Offset(0)
	for m.consumed[next] {
		next++
	}
	return next
}

func (m *model) left(head base.Offset) (offsets []base.Offset) {
	for o := range head {
		if !m.consumed[o] {
			offsets = append(offsets, o)
		}
	}
	return offsets
}

// readToHead reads all that is left.
func readToHead(t require.TestingT, c *Cursor) (offsets []base.Offset) {
	require.NoError(t, c.Seek(0))
	for {
		before := c.ReadPosition()
		batch, err := c.Read(context.Background(), ReadOptions{Limits: log.Limits{MaxMessages: 7}})
		require.NoError(t, err)
		offsets = append(offsets, offsetsOf(batch)...)
		if len(batch.Records) == 0 && c.ReadPosition() == before {
			return offsets
		}
	}
}

func TestACursorIsASetOfConsumedOffsets(t *testing.T) {
	const head = 60
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(coordtest.NewClock())
		place := Place{w.stream("orders", 1, head), 0}
		c, err := Open(context.Background(), w.cursorOptions(place, "audit"))
		require.NoError(t, err)
		m := model{consumed: map[base.Offset]bool{}}
		t.Repeat(map[string]func(*rapid.T){
			"ack": func(t *rapid.T) {
				start := base.Offset(rapid.IntRange(0, head-1).Draw(t, "start"))
				end := base.Offset(rapid.IntRange(int(start), head).Draw(t, "end"))
				require.NoError(t, c.Ack(span(start, end)))
				m.consume(start, end)
			},
			"mark": func(t *rapid.T) {
				offset := base.Offset(rapid.IntRange(0, 5).Draw(t, "by")) + c.Next()
				if offset < head {
					require.NoError(t, c.MarkConsumed(offset, nil))
					m.consume(0, offset+1)
				}
			},
			"reopen": func(t *rapid.T) {
				require.NoError(t, c.Persist(context.Background()))
				c.Close()
				c, err = Open(context.Background(), w.cursorOptions(place, "audit"))
				require.NoError(t, err)
			},
			"": func(t *rapid.T) {
				require.Equal(t, m.next(), c.Next())
				backlog, err := c.Backlog()
				require.NoError(t, err)
				require.EqualValues(t, head-len(m.consumed), backlog)
				require.Equal(t, m.left(head), readToHead(t, c))
			},
		})
		c.Close()
	})
}

func TestRangesAreAUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ranges
		var in [50]bool
		for range rapid.IntRange(0, 30).Draw(t, "n") {
			start := rapid.IntRange(0, 49).Draw(t, "start")
			end := rapid.IntRange(start, 50).Draw(t, "end")
			joins, before := r.joins(span(base.Offset(start), base.Offset(end))), len(r)
			r = r.add(span(base.Offset(start), base.Offset(end)))
			require.False(t, joins && len(r) > before, "what joins makes no more of them")
			for i := start; i < end; i++ {
				in[i] = true
			}
		}
		cut := rapid.IntRange(0, 50).Draw(t, "cut")
		r = r.from(base.Offset(cut))
		require.True(t, slices.IsSortedFunc(r, func(a, b base.OffsetRange) int { return int(a.Start - b.Start) }))
		count := int64(0)
		for i := range in {
			_, found := r.find(base.Offset(i))
			require.Equal(t, in[i] && i >= cut, found, "offset %d of %v", i, r)
			if found {
				count++
			}
		}
		require.Equal(t, count, r.within(span(0, 50)))
		for i := 1; i < len(r); i++ {
			require.Greater(t, r[i].Start, r[i-1].End, "they do not touch: %v", r)
		}
	})
}
