package blob_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/blob/blobtest"
)

func TestCountedAcceptance(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return blob.NewCounted(openURL(t, "mem://")) })
}

func TestEachCallIsCountedOnceWithItsBytes(t *testing.T) {
	s := blob.NewCounted(openURL(t, "mem://"))
	require.Zero(t, s.Stats())
	require.NoError(t, s.Put(t.Context(), "a", make([]byte, 10)))
	require.Error(t, s.Put(t.Context(), "a", make([]byte, 10)), "refused, and yet asked")
	_, err := s.ReadRange(t.Context(), "a", 2, 3, nil)
	require.NoError(t, err)
	_, err = s.ReadRange(t.Context(), "absent", 2, 3, nil)
	require.Error(t, err)
	_, err = s.Stat(t.Context(), "a")
	require.NoError(t, err)
	_, err = s.List(t.Context(), "", "", 10)
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), "a"))
	require.NoError(t, s.Close())
	require.Equal(t, blob.Stats{Puts: 2, Gets: 2, Heads: 1, Lists: 1, Deletes: 1, PutBytes: 10, GetBytes: 3}, s.Stats())
}

func TestAStreamedObjectCountsWhenItIsCommitted(t *testing.T) {
	s := blob.NewCounted(openURL(t, "mem://"))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	w, err := s.Create(t.Context(), "a")
	require.NoError(t, err)
	for range 3 {
		_, err = w.Write(make([]byte, 5))
		require.NoError(t, err)
	}
	require.Zero(t, s.Stats(), "nothing is there yet")
	require.NoError(t, w.Commit())
	require.Equal(t, blob.Stats{Puts: 1, PutBytes: 15}, s.Stats())

	aborted, err := s.Create(t.Context(), "b")
	require.NoError(t, err)
	aborted.Abort()
	require.Equal(t, blob.Stats{Puts: 1, PutBytes: 15}, s.Stats())
}

func TestBytesOfACallThatFailedAreNotCounted(t *testing.T) {
	lost := errors.New("lost")
	s := blob.NewCounted(blob.NewFaulty(openURL(t, "mem://"), func(blob.Call) blob.Fault { return blob.Fault{After: lost} }))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.ErrorIs(t, s.Put(t.Context(), "a", make([]byte, 7)), lost)
	_, err := s.ReadRange(t.Context(), "a", 0, 7, nil)
	require.ErrorIs(t, err, lost)
	require.Equal(t, blob.Stats{Puts: 1, Gets: 1}, s.Stats())
}

func TestConcurrentCallsAreAllCounted(t *testing.T) {
	s := blob.NewCounted(openURL(t, "mem://"))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Put(t.Context(), "a", []byte("x")))
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for range 100 {
				_, _ = s.ReadRange(t.Context(), "a", 0, 1, nil)
			}
		})
	}
	readers.Wait()
	require.Equal(t, blob.Stats{Puts: 1, PutBytes: 1, Gets: 800, GetBytes: 800}, s.Stats())
}
