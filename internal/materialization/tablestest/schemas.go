package tablestest

import (
	"io"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// with returns a schema with more top-level fields.
func with(current *iceberg.Schema, fields ...iceberg.NestedField) *iceberg.Schema {
	return iceberg.NewSchema(current.ID, append(current.Fields(), fields...)...)
}

func structOf(fields ...iceberg.NestedField) *iceberg.StructType {
	return &iceberg.StructType{FieldList: fields}
}

func field(id int, name string, typ iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: typ}
}

func evolveNested(t *testing.T, s Subject) {
	shown := create(t, s)
	text, long := iceberg.PrimitiveTypes.String, iceberg.PrimitiveTypes.Int64
	shown, err := s.Catalog.Evolve(t.Context(), shown, with(Schema(),
		field(4, "user", structOf(field(5, "id", iceberg.PrimitiveTypes.Int32))),
		field(6, "tags", &iceberg.ListType{ElementID: 7, Element: structOf(field(8, "k", text))}),
		field(9, "by", &iceberg.MapType{KeyID: 10, KeyType: text, ValueID: 11, ValueType: structOf(field(12, "n", long))}),
	))
	require.NoError(t, err)
	require.Equal(t, 12, shown.LastColumnID)
	grown := with(Schema(),
		field(4, "user", structOf(field(5, "id", long), field(13, "name", text))),
		field(6, "tags", &iceberg.ListType{ElementID: 7, Element: structOf(field(8, "k", text), field(14, "v", text))}),
		field(9, "by", &iceberg.MapType{KeyID: 10, KeyType: text, ValueID: 11, ValueType: structOf(field(12, "n", long), field(15, "m", long))}),
	)
	evolved, err := s.Catalog.Evolve(t.Context(), shown, grown)
	require.NoError(t, err)
	loaded := load(t, s)
	require.True(t, loaded.Schema.Equals(grown), loaded.Schema.String())
	require.Equal(t, 15, loaded.LastColumnID)
	require.NotEqual(t, shown.Schema.ID, loaded.Schema.ID)
	again, err := s.Catalog.Evolve(t.Context(), evolved, grown)
	require.NoError(t, err)
	require.Equal(t, loaded.Schema.ID, again.Schema.ID, "a schema that is current already makes no new one")
}

func evolveStale(t *testing.T, s Subject) {
	stale := create(t, s)
	_, err := s.Catalog.Evolve(t.Context(), stale, with(Schema(), field(4, "a", iceberg.PrimitiveTypes.String)))
	require.NoError(t, err)
	_, err = s.Catalog.Evolve(t.Context(), stale, with(Schema(), field(4, "b", iceberg.PrimitiveTypes.Int64)))
	require.ErrorIs(t, err, base.ErrConflict)
	_, found := load(t, s).Schema.FindFieldByName("b")
	require.False(t, found)
}

func evolveRefused(t *testing.T, s Subject) {
	shown := create(t, s)
	reused := iceberg.NewSchema(0, append(Schema().Fields()[:2], field(3, "b", iceberg.PrimitiveTypes.String))...)
	dropped := iceberg.NewSchema(0, Schema().Fields()[:2]...)
	for name, schema := range map[string]*iceberg.Schema{"an id used twice": reused, "a column dropped": dropped} {
		_, err := s.Catalog.Evolve(t.Context(), shown, schema)
		require.ErrorIs(t, err, base.ErrInvalid, name)
	}
	require.True(t, load(t, s).Schema.Equals(Schema()))
}

func evolveRace(t *testing.T, s Subject) {
	shown := create(t, s)
	errs := make(chan error, 2)
	for range cap(errs) {
		go func() {
			_, err := s.Catalog.Evolve(t.Context(), shown, with(Schema(), field(4, "a", iceberg.PrimitiveTypes.String)))
			errs <- err
		}()
	}
	landed := 0
	for range cap(errs) {
		if err := <-errs; err == nil {
			landed++
		} else {
			require.ErrorIs(t, err, base.ErrConflict)
		}
	}
	require.Equal(t, 1, landed)
	require.Len(t, load(t, s).Schema.Fields(), 4)
}

func files(t *testing.T, s Subject) {
	path := create(t, s).Location + "/data/some file.bin"
	_, err := s.Catalog.OpenFile(t.Context(), path)
	require.ErrorIs(t, err, base.ErrNotFound)
	created, err := s.Catalog.CreateFile(t.Context(), path)
	require.NoError(t, err)
	_, err = created.Write([]byte("lake"))
	require.NoError(t, err)
	require.NoError(t, created.Close())

	_, err = s.Catalog.CreateFile(t.Context(), path)
	require.ErrorIs(t, err, base.ErrExists)
	opened, err := s.Catalog.OpenFile(t.Context(), path)
	require.NoError(t, err)
	require.EqualValues(t, 4, opened.Size())
	part := make([]byte, 2)
	_, err = opened.ReadAt(part, 1)
	require.NoError(t, err)
	require.Equal(t, "ak", string(part))
	whole, err := io.ReadAll(opened)
	require.NoError(t, err)
	require.Equal(t, "lake", string(whole))
	require.NoError(t, opened.Close())

	require.NoError(t, s.Catalog.RemoveFile(t.Context(), path))
	require.NoError(t, s.Catalog.RemoveFile(t.Context(), path), "an absent file is no error")
	_, err = s.Catalog.OpenFile(t.Context(), path)
	require.ErrorIs(t, err, base.ErrNotFound)
}

func scanLoaded(t *testing.T, s Subject) {
	before := commit(t.Context(), t, s, create(t, s), "c1", RangeRows(0, base.OffsetRange{End: 2})...)
	commit(t.Context(), t, s, before, "c2", RangeRows(0, base.OffsetRange{Start: 2, End: 4})...)
	require.ElementsMatch(t, RangeRows(0, base.OffsetRange{End: 2}), Rows(t.Context(), t, s.Catalog, before))
	require.ElementsMatch(t, RangeRows(0, base.OffsetRange{End: 4}), Rows(t.Context(), t, s.Catalog, load(t, s)))
}

func scanChosen(t *testing.T, s Subject) {
	shown := commit(t.Context(), t, s, create(t, s), "c1", RangeRows(0, base.OffsetRange{End: 10})...)
	rows, err := materialization.Head(t.Context(), s.Catalog, shown, []string{"__offset", "text"}, 3)
	require.NoError(t, err)
	require.Len(t, rows, 3)
	require.Len(t, rows[0], 2)
	require.JSONEq(t, `"record 0 of partition 0"`, string(rows[0]["text"]))
	all, err := materialization.Head(t.Context(), s.Catalog, shown, nil, 100)
	require.NoError(t, err)
	require.Len(t, all, 10)
	require.Len(t, all[0], 3)
	_, err = materialization.Head(t.Context(), s.Catalog, shown, []string{"nope"}, 3)
	require.ErrorIs(t, err, base.ErrInvalid)
}

func scanEvolved(t *testing.T, s Subject) {
	shown := commit(t.Context(), t, s, create(t, s), "c1", RangeRows(0, base.OffsetRange{End: 2})...)
	evolved, err := s.Catalog.Evolve(t.Context(), shown, with(shown.Schema, field(4, "more", iceberg.PrimitiveTypes.Int64)))
	require.NoError(t, err)
	shown = commit(t.Context(), t, s, evolved, "c2", RangeRows(0, base.OffsetRange{Start: 2, End: 4})...)
	require.Len(t, Rows(t.Context(), t, s.Catalog, shown), 4)
	rows, err := materialization.Head(t.Context(), s.Catalog, shown, []string{"__offset", "more"}, 10)
	require.NoError(t, err)
	require.Len(t, rows, 4)
	for _, row := range rows {
		require.Contains(t, []string{"", "null"}, string(row["more"]))
	}
}
