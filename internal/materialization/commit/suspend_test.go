package commit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/materialization/tablestest"
)

// each story does something to the tables of a stream that has two commits in
// each, and says what the reason must name.
var suspensions = []struct {
	name   string
	reason string
	do     func(t *testing.T, w *world)
}{
	{"the table is rolled back to an older snapshot", "rolled back", func(t *testing.T, w *world) {
		require.NoError(t, w.admin.Rollback(events, 1))
	}},
	{"the table is dropped", "dropped", func(t *testing.T, w *world) {
		require.NoError(t, w.admin.Drop(events))
	}},
	{"the table is dropped and created again", "dropped and created again", func(t *testing.T, w *world) {
		require.NoError(t, w.admin.Drop(events))
		w.create(t.Context(), t, events)
	}},
	{"another table takes its place", "dropped and created again", func(t *testing.T, w *world) {
		require.NoError(t, w.admin.Drop(events))
		_, err := w.catalog.Create(t.Context(), events, tablestest.Schema(), nil)
		require.NoError(t, err)
	}},
	{"the commit id is stripped", materialization.PropertyCommitID, func(t *testing.T, w *world) {
		require.NoError(t, w.admin.Strip(events, materialization.PropertyCommitID))
	}},
	{"the end offsets are stripped", materialization.PropertyEndOffsets, func(t *testing.T, w *world) {
		require.NoError(t, w.admin.Strip(events, materialization.PropertyEndOffsets))
	}},
	{"the owner is stripped", materialization.PropertyOwner, func(t *testing.T, w *world) {
		require.NoError(t, w.admin.Strip(events, materialization.PropertyOwner))
	}},
	{"all is stripped", materialization.PropertyOwner, func(t *testing.T, w *world) {
		require.NoError(t, w.admin.Strip(events, materialization.PropertyOwner, materialization.PropertyRole,
			materialization.PropertyCommitID, materialization.PropertyEndOffsets))
	}},
	{"the stream is created anew over the old table", "belongs to " + owner, func(_ *testing.T, w *world) {
		w.fold.view.Owner = "00000000000000000000000000000001/s00/99"
	}},
	{"the log counts on a commit that the table does not have", "which the log counts on", func(_ *testing.T, w *world) {
		w.fold.view.Main.CommitID = "01JBDQ7XGV0000000000000000"
	}},
	{"the table ends before what was materialized", "older state", func(_ *testing.T, w *world) {
		w.fold.view.Logs[0].Materialized++
		w.fold.view.Logs[0].Prepared[0].Range.Start++
	}},
	{"the table ends inside a prepared range", "inside or short of", func(_ *testing.T, w *world) {
		w.fold.view.Logs[0].Materialized--
		w.fold.view.Logs[0].Prepared[0].Range.Start--
	}},
	{"a range was prepared for another table", "was prepared for table uuid", func(_ *testing.T, w *world) {
		w.fold.view.Logs[0].Prepared[0].TableUUID = "somebody else's"
	}},
	{"the tables are swapped by role", "it is a dead-letter table", func(t *testing.T, w *world) {
		table := w.load(t.Context(), t, events)
		_, err := w.catalog.Commit(t.Context(), table, materialization.Update{
			Properties: map[string]string{materialization.PropertyRole: commit.RoleDeadLetter},
		})
		require.NoError(t, err)
	}},
	{"the end offsets are nonsense", "want partition:offset", func(t *testing.T, w *world) {
		table := w.load(t.Context(), t, events)
		_, err := w.catalog.Commit(t.Context(), table, materialization.Update{
			Properties: map[string]string{materialization.PropertyEndOffsets: "zero"},
		})
		require.NoError(t, err)
	}},
	{"the dead-letter table is rolled back", "rolled back", func(t *testing.T, w *world) {
		require.NoError(t, w.admin.Rollback(letters, 1))
	}},
	{"the dead-letter table is dropped", "dropped", func(t *testing.T, w *world) {
		require.NoError(t, w.admin.Drop(letters))
	}},
	{"the dead-letter table is created again", "dropped and created again", func(t *testing.T, w *world) {
		require.NoError(t, w.admin.Drop(letters))
		w.create(t.Context(), t, letters)
	}},
	{"the dead-letter table is stripped", materialization.PropertyCommitID, func(t *testing.T, w *world) {
		require.NoError(t, w.admin.Strip(letters, materialization.PropertyCommitID))
	}},
}

func TestATableThatIsNotWhatItWasIsSuspendedWithTheRemedy(t *testing.T) {
	for _, story := range suspensions {
		t.Run(story.name, func(t *testing.T) {
			overEach(t, func(t *testing.T, w *world) {
				for range 2 {
					w.prepare(t.Context(), t, 0, 2, 1)
					w.settle(t.Context(), t, w.committer(t))
				}
				w.prepare(t.Context(), t, 0, 2, 1)
				story.do(t, w)
				before := w.rows(t)
				status := w.settle(t.Context(), t, w.committer(t))
				require.Equal(t, commit.StateSuspended, status.State)
				require.Contains(t, status.Reason, story.reason)
				require.Contains(t, status.NextAction, "lakestream table reset web.events")
				require.NotZero(t, status.Delay)
				require.Equal(t, 2, w.fold.published)
				require.ElementsMatch(t, before, w.rows(t), "nothing is added to a suspended table")
			})
		})
	}
}

// rows returns the rows of those tables that there are.
func (w *world) rows(t *testing.T) []tablestest.Row {
	t.Helper()
	var rows []tablestest.Row
	for _, ident := range []materialization.Ident{events, letters} {
		table, err := w.catalog.Load(t.Context(), ident)
		if err != nil {
			require.ErrorIs(t, err, base.ErrNotFound)
			continue
		}
		rows = append(rows, tablestest.Rows(t.Context(), t, w.catalog, table)...)
	}
	return rows
}

func TestASuspendedTableRecoversWhenItIsRestored(t *testing.T) {
	w := memWorld(t.Context(), t)
	w.prepare(t.Context(), t, 0, 2, 0)
	w.settle(t.Context(), t, w.committer(t))
	w.fold.view.Owner = "someone"
	w.prepare(t.Context(), t, 0, 2, 0)
	c := w.committer(t)
	require.Equal(t, commit.StateSuspended, w.settle(t.Context(), t, c).State)
	w.fold.view.Owner = owner
	status, err := c.Step(t.Context())
	require.NoError(t, err)
	require.Equal(t, commit.StateSuspended, status.State, "it is looked at now and then")
	w.clock.advance(status.Delay)
	require.Equal(t, commit.StateRunning, w.settle(t.Context(), t, c).State)
	w.requireExactlyOnce(t.Context(), t)
}

func TestATableOfOthersIsNeverAdopted(t *testing.T) {
	overEach(t, func(t *testing.T, w *world) {
		require.NoError(t, w.admin.Drop(events))
		_, err := w.catalog.Create(t.Context(), events, tablestest.Schema(), nil)
		require.NoError(t, err)
		theirs := w.write(t.Context(), t, w.load(t.Context(), t, events), nil)
		require.NoError(t, w.admin.Append(events, theirs...))
		w.prepare(t.Context(), t, 0, 2, 0)
		status := w.settle(t.Context(), t, w.committer(t))
		require.Equal(t, commit.StateSuspended, status.State)
		require.Contains(t, status.Reason, "never this stream's")
	})
}

func TestAnEmptyTableOfNobodyIsAdopted(t *testing.T) {
	overEach(t, func(t *testing.T, w *world) {
		require.NoError(t, w.admin.Drop(events))
		_, err := w.catalog.Create(t.Context(), events, tablestest.Schema(), nil)
		require.NoError(t, err)
		w.prepare(t.Context(), t, 0, 2, 0)
		require.Equal(t, commit.StateRunning, w.settle(t.Context(), t, w.committer(t)).State)
		w.requireExactlyOnce(t.Context(), t)
		require.Equal(t, owner, w.load(t.Context(), t, events).Properties[materialization.PropertyOwner])
	})
}
