package tablestest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

var events = materialization.Ident{Namespace: "web", Name: "events"}

// create makes the suite's table.
func create(t *testing.T, s Subject) *materialization.Table {
	t.Helper()
	created, err := s.Catalog.Create(t.Context(), events, Schema(), nil)
	require.NoError(t, err)
	return created
}

// commit commits one file of rows, or none, with an id.
func commit(ctx context.Context, t *testing.T, s Subject, shown *materialization.Table, id string, rows ...Row) *materialization.Table {
	t.Helper()
	update := marked(id)
	if len(rows) > 0 {
		update.Files = []materialization.DataFile{Write(ctx, t, s.Catalog, shown, id, rows)}
	}
	committed, err := s.Catalog.Commit(ctx, shown, update)
	require.NoError(t, err)
	return committed
}

// marked is an update that says which commit it is, in both places.
func marked(id string) materialization.Update {
	return materialization.Update{
		Summary:    map[string]string{materialization.PropertyCommitID: id},
		Properties: map[string]string{materialization.PropertyCommitID: id},
	}
}

func load(t *testing.T, s Subject) *materialization.Table {
	t.Helper()
	loaded, err := s.Catalog.Load(t.Context(), events)
	require.NoError(t, err)
	return loaded
}

func absentTable(t *testing.T, s Subject) {
	_, err := s.Catalog.Load(t.Context(), events)
	require.ErrorIs(t, err, base.ErrNotFound)
	create(t, s)
	_, err = s.Catalog.Load(t.Context(), materialization.Ident{Namespace: "web", Name: "other"})
	require.ErrorIs(t, err, base.ErrNotFound)
}

func createRace(t *testing.T, s Subject) {
	const racers = 4
	uuids := make([]string, racers)
	errs := make([]error, racers)
	var all sync.WaitGroup
	for i := range racers {
		all.Go(func() {
			created, err := s.Catalog.Create(t.Context(), events, Schema(), nil)
			errs[i] = err
			if err == nil {
				uuids[i] = created.UUID
			}
		})
	}
	all.Wait()
	winners := 0
	for i, err := range errs {
		if err == nil {
			winners++
			require.Equal(t, load(t, s).UUID, uuids[i])
			continue
		}
		require.ErrorIs(t, err, base.ErrExists)
	}
	require.Equal(t, 1, winners)
}

func newTable(t *testing.T, s Subject) {
	properties := map[string]string{materialization.PropertyOwner: "cluster/s00/7"}
	created, err := s.Catalog.Create(t.Context(), events, Schema(), properties)
	require.NoError(t, err)
	loaded := load(t, s)
	require.Equal(t, created.UUID, loaded.UUID)
	require.NotEmpty(t, loaded.UUID)
	require.NotEmpty(t, loaded.Location)
	require.Zero(t, loaded.Head)
	require.Empty(t, loaded.CommitIDs)
	require.True(t, loaded.AncestryComplete)
	require.Equal(t, 3, loaded.LastColumnID)
	require.Equal(t, "cluster/s00/7", loaded.Properties[materialization.PropertyOwner])
	require.True(t, loaded.Schema.Equals(Schema()), loaded.Schema.String())
	require.Empty(t, Rows(t.Context(), t, s.Catalog, loaded))
}

func commitLandsWhole(t *testing.T, s Subject) {
	first := commit(t.Context(), t, s, create(t, s), "c1", RangeRows(0, base.OffsetRange{End: 3})...)
	second := commit(t.Context(), t, s, first, "c2", RangeRows(0, base.OffsetRange{Start: 3, End: 5})...)
	loaded := load(t, s)
	require.Equal(t, second.Head, loaded.Head)
	require.NotEqual(t, first.Head, second.Head)
	require.Equal(t, []string{"c2", "c1"}, loaded.CommitIDs)
	require.Equal(t, "c2", loaded.Properties[materialization.PropertyCommitID])
	require.True(t, loaded.AncestryComplete)
	require.ElementsMatch(t, RangeRows(0, base.OffsetRange{End: 5}), Rows(t.Context(), t, s.Catalog, loaded))
}

func emptyCommit(t *testing.T, s Subject) {
	empty := commit(t.Context(), t, s, create(t, s), "c1")
	require.NotZero(t, empty.Head)
	filled := commit(t.Context(), t, s, empty, "c2", RangeRows(1, base.OffsetRange{End: 2})...)
	again := commit(t.Context(), t, s, filled, "c3")
	require.NotEqual(t, filled.Head, again.Head)
	loaded := load(t, s)
	require.Equal(t, []string{"c3", "c2", "c1"}, loaded.CommitIDs)
	require.ElementsMatch(t, RangeRows(1, base.OffsetRange{End: 2}), Rows(t.Context(), t, s.Catalog, loaded))
}

func staleHead(t *testing.T, s Subject) {
	stale := create(t, s)
	commit(t.Context(), t, s, stale, "c1", RangeRows(0, base.OffsetRange{End: 1})...)
	for _, update := range []materialization.Update{
		marked("late"),
		{
			Files:      []materialization.DataFile{Write(t.Context(), t, s.Catalog, stale, "late", RangeRows(0, base.OffsetRange{End: 1}))},
			Properties: map[string]string{materialization.PropertyCommitID: "late"},
		},
	} {
		_, err := s.Catalog.Commit(t.Context(), stale, update)
		require.ErrorIs(t, err, base.ErrConflict)
	}
	loaded := load(t, s)
	require.Equal(t, "c1", loaded.Properties[materialization.PropertyCommitID])
	require.Equal(t, []string{"c1"}, loaded.CommitIDs)
	require.Len(t, Rows(t.Context(), t, s.Catalog, loaded), 1)
}

func replacedTable(t *testing.T, s Subject) {
	old := create(t, s)
	require.NoError(t, s.Admin.Drop(events))
	_, err := s.Catalog.Commit(t.Context(), old, marked("c1"))
	require.Error(t, err)
	require.NotErrorIs(t, err, base.ErrUnknown)
	replacement := create(t, s)
	require.NotEqual(t, old.UUID, replacement.UUID)
	_, err = s.Catalog.Commit(t.Context(), old, marked("c1"))
	require.ErrorIs(t, err, base.ErrConflict)
	require.Zero(t, load(t, s).Head)
}

func missingFile(t *testing.T, s Subject) {
	shown := create(t, s)
	lost := Write(t.Context(), t, s.Catalog, shown, "lost", RangeRows(0, base.OffsetRange{End: 1}))
	require.NoError(t, s.Catalog.RemoveFile(t.Context(), lost.Path))
	update := marked("c1")
	update.Files = []materialization.DataFile{lost}
	_, err := s.Catalog.Commit(t.Context(), shown, update)
	require.ErrorIs(t, err, base.ErrNotFound)
	require.NotErrorIs(t, err, base.ErrUnknown)
	require.Zero(t, load(t, s).Head)
}

// racingCommits lets writers commit at once, each trying again from a fresh
// load while it is told of a conflict.
func racingCommits(t *testing.T, s Subject) {
	created := create(t, s)
	const writers, each = 3, 4
	errs := make([]error, writers)
	files := make([][]materialization.DataFile, writers)
	var all, want []Row
	for w := range writers {
		for i := range each {
			at := base.Offset(i)
			rows := RangeRows(base.Partition(w), base.OffsetRange{Start: at, End: at + 1})
			files[w] = append(files[w], Write(t.Context(), t, s.Catalog, created, fmt.Sprintf("%d-%d", w, i), rows))
			want = append(want, rows...)
		}
	}
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := 0; i < each && errs[w] == nil; i++ {
				errs[w] = commitUntilLanded(t.Context(), s, materialization.Update{Files: files[w][i : i+1]})
			}
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	all = Rows(t.Context(), t, s.Catalog, load(t, s))
	require.ElementsMatch(t, want, all)
}

func commitUntilLanded(ctx context.Context, s Subject, update materialization.Update) error {
	for {
		loaded, err := s.Catalog.Load(ctx, events)
		if err != nil {
			return err
		}
		_, err = s.Catalog.Commit(ctx, loaded, update)
		if !errors.Is(err, base.ErrConflict) {
			return err
		}
	}
}

func rollback(t *testing.T, s Subject) {
	first := commit(t.Context(), t, s, create(t, s), "c1", RangeRows(0, base.OffsetRange{End: 1})...)
	commit(t.Context(), t, s, first, "c2", RangeRows(0, base.OffsetRange{Start: 1, End: 2})...)
	require.NoError(t, s.Admin.Rollback(events, 1))
	loaded := load(t, s)
	require.Equal(t, first.Head, loaded.Head)
	require.Equal(t, []string{"c1"}, loaded.CommitIDs)
	require.Equal(t, "c2", loaded.Properties[materialization.PropertyCommitID])
}

func foreignCommit(t *testing.T, s Subject) {
	ours := commit(t.Context(), t, s, create(t, s), "c1", RangeRows(0, base.OffsetRange{End: 1})...)
	require.NoError(t, s.Admin.Append(events, Write(t.Context(), t, s.Catalog, ours, "theirs", RangeRows(9, base.OffsetRange{End: 1}))))
	loaded := load(t, s)
	require.NotEqual(t, ours.Head, loaded.Head)
	require.Equal(t, []string{"c1"}, loaded.CommitIDs)
	_, err := s.Catalog.Commit(t.Context(), ours, marked("c2"))
	require.ErrorIs(t, err, base.ErrConflict)
	commit(t.Context(), t, s, loaded, "c2")
	require.Len(t, Rows(t.Context(), t, s.Catalog, load(t, s)), 2)
}

func stripped(t *testing.T, s Subject) {
	commit(t.Context(), t, s, create(t, s), "c1")
	require.NoError(t, s.Admin.Strip(events, materialization.PropertyCommitID))
	loaded := load(t, s)
	require.NotContains(t, loaded.Properties, materialization.PropertyCommitID)
	require.Equal(t, []string{"c1"}, loaded.CommitIDs)
}
