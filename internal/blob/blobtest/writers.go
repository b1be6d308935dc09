package blobtest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
)

func create(t *testing.T, s blob.Store, key string, chunks ...[]byte) blob.Writer {
	t.Helper()
	w, err := s.Create(t.Context(), key)
	require.NoError(t, err)
	for _, chunk := range chunks {
		n, err := w.Write(chunk)
		require.NoError(t, err)
		require.Equal(t, len(chunk), n)
	}
	return w
}

func commitShows(t *testing.T, s blob.Store) {
	data := Content(9, 1_000_000)
	w := create(t, s, "compacted/s00/a.parquet", data[:10], nil, data[10:700_000], data[700_000:])
	requireAbsent(t, s, "compacted/s00/a.parquet")
	found, err := s.List(t.Context(), "", "", 10)
	require.NoError(t, err)
	require.Empty(t, found, "an unfinished write is listed")
	require.NoError(t, w.Commit())
	requireObject(t, s, "compacted/s00/a.parquet", data)
	w.Abort()
	requireObject(t, s, "compacted/s00/a.parquet", data)
	require.ErrorIs(t, w.Commit(), base.ErrClosed, "a second commit")
	require.NoError(t, create(t, s, "compacted/empty").Commit())
	requireObject(t, s, "compacted/empty", nil)
}

func abortHides(t *testing.T, s blob.Store) {
	w := create(t, s, "a", Content(1, 500_000))
	w.Abort()
	w.Abort()
	requireAbsent(t, s, "a")
	require.ErrorIs(t, w.Commit(), base.ErrClosed)
	requireAbsent(t, s, "a")
	put(t, s, "a", []byte("free"))
	requireObject(t, s, "a", []byte("free"))
}

func commitOnce(t *testing.T, s blob.Store) {
	late := create(t, s, "a", []byte("late, and longer"))
	put(t, s, "a", []byte("early"))
	require.ErrorIs(t, late.Commit(), base.ErrExists)
	requireObject(t, s, "a", []byte("early"))
	require.ErrorIs(t, create(t, s, "a", []byte("later")).Commit(), base.ErrExists)
	requireObject(t, s, "a", []byte("early"))
	require.ErrorIs(t, s.Put(t.Context(), "a", nil), base.ErrExists)
}

func commitRace(t *testing.T, s blob.Store) {
	writers := make([]blob.Writer, contenders)
	for i := range writers {
		writers[i] = create(t, s, "catalog/a", contenderData(i))
	}
	winner := race(t, contenders, func(i int) error { return writers[i].Commit() })
	requireObject(t, s, "catalog/a", contenderData(winner))
}

func cancelledWrite(t *testing.T, s blob.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	w, err := s.Create(ctx, "a")
	require.NoError(t, err)
	_, err = w.Write([]byte("some"))
	require.NoError(t, err)
	cancel()
	_, err = w.Write([]byte("more"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, w.Commit(), context.Canceled)
	requireAbsent(t, s, "a")
}
