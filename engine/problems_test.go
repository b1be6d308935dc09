package engine

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
)

var suspended = tableTrouble{Table: "shop.orders", State: "SUSPENDED", Reason: "it was dropped", NextAction: "reset it"}

// world is two instances on one coordination store.
type world struct {
	clock     *coordtest.Clock
	store     coord.Store
	documents coord.Documents
	publisher publisher
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock := coordtest.NewClock()
	store := mem.NewServer(clock).Open("a")
	t.Cleanup(func() { require.NoError(t, store.Close(t.Context())) })
	return &world{clock: clock, store: store, documents: store.Documents(), publisher: publisher{documents: store.Documents(), key: reportPrefix + "a"}}
}

// seen is what instance b shows, when a lives.
func (w *world) seen(t *testing.T) Status {
	t.Helper()
	st := Status{
		Instances: []string{"a", "b"},
		Streams: []StreamStatus{
			{Name: "shop/orders", Table: &TableStatus{Name: "shop.orders", State: "RUNNING"}},
			{Name: "shop/returns", Table: &TableStatus{Name: "shop.returns", State: "RUNNING"}},
			{Name: "shop/raw"},
		},
	}
	st.mergeReports(t.Context(), w.documents, "b")
	return st
}

func (w *world) publish(t *testing.T, r report) {
	t.Helper()
	require.NoError(t, w.publisher.publish(t.Context(), r))
}

func (w *world) documentsOf(t *testing.T) int {
	t.Helper()
	found, err := w.documents.List(t.Context(), reportPrefix)
	require.NoError(t, err)
	return len(found)
}

// Given an instance with a suspended table, when another shows its status, then it
// shows the table's state, the reason and what to do, and nothing of it once the
// trouble is over.
func TestOthersSeeWhatOnlyOneInstanceKnows(t *testing.T) {
	w := newWorld(t)
	require.Empty(t, w.seen(t).Problems)

	w.publish(t, report{
		Tables:   []tableTrouble{suspended},
		Problems: []Problem{{What: "log 2-0 of shard s00", Reason: "corrupt", NextAction: "restore the object"}},
	})
	st := w.seen(t)
	require.Equal(t, &TableStatus{Name: "shop.orders", State: "SUSPENDED", Reason: "it was dropped", NextAction: "reset it"}, st.Streams[0].Table)
	require.Equal(t, "RUNNING", st.Streams[1].Table.State)
	require.Equal(t, []Problem{
		{What: "log 2-0 of shard s00 (instance a)", Reason: "corrupt", NextAction: "restore the object"},
		{What: "table shop.orders is SUSPENDED", Reason: "it was dropped", NextAction: "reset it"},
	}, st.Problems)

	w.publish(t, report{})
	require.Empty(t, w.seen(t).Problems)
	require.Zero(t, w.documentsOf(t))
}

// Given an instance without trouble, when time passes, then it writes nothing.
func TestAHealthyInstanceWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.publisher.documents = nil // would panic
	for range 3 {
		w.publish(t, report{})
	}
}

// Given an instance that told its problems, when it goes away without a word, then
// nobody shows them: at once where it is known to be gone, later in any case.
func TestProblemsOfADeadInstanceVanish(t *testing.T) {
	w := newWorld(t)
	w.publish(t, report{Tables: []tableTrouble{suspended}})
	gone := Status{Instances: []string{"b"}}
	gone.mergeReports(t.Context(), w.documents, "b")
	require.Empty(t, gone.Problems)

	w.clock.Advance(reportTTL)
	require.Empty(t, w.seen(t).Problems)

	// It was only asleep: it tells its problems again.
	w.publish(t, report{Tables: []tableTrouble{suspended}})
	require.Len(t, w.seen(t).Problems, 1)
}

// Given a report that is renewed in time, when more than its time to live passes,
// then it stays.
func TestAReportLivesWhileItIsRenewed(t *testing.T) {
	w := newWorld(t)
	for range 5 {
		w.publish(t, report{Tables: []tableTrouble{suspended}})
		w.clock.Advance(reportEvery)
	}
	require.Len(t, w.seen(t).Problems, 1)
	require.Equal(t, 1, w.documentsOf(t))
}

// Given an instance that knows of a table's trouble itself, when another reports
// the same table, then its own knowledge stands, once.
func TestOwnKnowledgeOfATableComesFirst(t *testing.T) {
	st := Status{Streams: []StreamStatus{{Table: &TableStatus{Name: "shop.orders", State: "DEGRADED", Reason: "own"}}}}
	st.merge("a", report{Tables: []tableTrouble{suspended}})
	require.Equal(t, "own", st.Streams[0].Table.Reason)
	require.Empty(t, st.Problems)
}

// Given a report that nobody can read, when a status is made, then that is shown.
func TestAnUnreadableReportIsAProblem(t *testing.T) {
	w := newWorld(t)
	_, err := w.documents.Create(t.Context(), reportPrefix+"a", []byte("{"), 0)
	require.NoError(t, err)
	st := w.seen(t)
	require.Len(t, st.Problems, 1)
	require.Equal(t, "instance a", st.Problems[0].What)
}

// Given coordination that fails or loses answers while a report is withdrawn, when
// it works again, then the report goes.
func TestWithdrawingIsTriedAgain(t *testing.T) {
	for name, fault := range map[string]coord.Fault{
		"nothing was done":    {Before: base.ErrUnavailable},
		"the answer was lost": {After: base.ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.publish(t, report{Tables: []tableTrouble{suspended}})
			faulty := coord.NewFaulty(w.store, func(c coord.Call) coord.Fault {
				if c.Op == coord.OpDelete && c.N == 1 {
					return fault
				}
				return coord.Fault{}
			})
			w.publisher.documents = faulty.Documents()
			require.Error(t, w.publisher.publish(t.Context(), report{}))
			w.publish(t, report{})
			require.Zero(t, w.documentsOf(t))
		})
	}
}

// Whatever goes wrong however often, a report is valid text and far below what
// coordination takes, and counts what it leaves out.
func TestAReportIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, -1, 4*maxReportTextBytes)
		tables := rapid.IntRange(0, 2*maxReportItems).Draw(t, "tables")
		problems := rapid.IntRange(0, 2*maxReportItems).Draw(t, "problems")
		reason := text.Draw(t, "reason")
		var r report
		for range problems {
			r.addProblem(Problem{What: reason, Reason: reason, NextAction: reason})
		}
		for range tables {
			r.addTable(tableTrouble{Table: strings.Repeat("t", 2*base.MaxNameBytes), State: "DEGRADED", Reason: reason, NextAction: reason})
		}
		require.Equal(t, tables+problems, len(r.Tables)+len(r.Problems)+r.Omitted)
		require.LessOrEqual(t, len(r.Tables)+len(r.Problems), maxReportItems)
		data, err := json.Marshal(r)
		require.NoError(t, err)
		require.Less(t, len(data), coord.MaxRecordBytes/2)
		for _, p := range r.Problems {
			require.True(t, utf8.ValidString(p.Reason))
			require.True(t, len(reason) > maxReportTextBytes || p.Reason == reason)
		}
	})
}
