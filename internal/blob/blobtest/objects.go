package blobtest

import (
	"context"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
)

// contenders is the number of goroutines that fight for one key.
const contenders = 16

func readsBack(t *testing.T, s blob.Store) {
	aligned := blob.AlignedBuffer(3 * blob.BlockSize)
	copy(aligned, Content(7, len(aligned)))
	objects := map[string][]byte{
		"empty":                            {},
		"one":                              {42},
		"wal/s00/7/00000000000000000001":   Content(1, blob.BlockSize+1),
		"wal/s00/7/aligned":                aligned,
		"wal/s00/7/aligned-address-only":   aligned[:blob.BlockSize+100],
		"wal/s00/7/aligned-length-only":    append([]byte{1}, aligned...)[1 : 1+blob.BlockSize],
		"warehouse/t/day=2026-11-29/a +2F": Content(3, 100_000),
	}
	for key, data := range objects {
		put(t, s, key, data)
	}
	for key, data := range objects {
		requireObject(t, s, key, data)
	}
}

func dataNotKept(t *testing.T, s blob.Store) {
	data := blob.AlignedBuffer(blob.BlockSize)
	put(t, s, "a", data)
	data[0] = 99
	requireObject(t, s, "a", make([]byte, blob.BlockSize))
}

func putOnce(t *testing.T, s blob.Store) {
	put(t, s, "wal/a", []byte("first"))
	err := s.Put(t.Context(), "wal/a", []byte("second, longer"))
	require.ErrorIs(t, err, base.ErrExists)
	require.Contains(t, err.Error(), "wal/a")
	requireObject(t, s, "wal/a", []byte("first"))
}

func putRace(t *testing.T, s blob.Store) {
	for round := range 5 {
		key := "wal/s00/" + string(rune('a'+round))
		winner := race(t, contenders, func(i int) error {
			return s.Put(t.Context(), key, contenderData(i))
		})
		requireObject(t, s, key, contenderData(winner))
	}
}

func ranges(t *testing.T, s blob.Store) {
	data := Content(5, 10_000)
	put(t, s, "a", data)
	tests := []struct {
		name           string
		offset, length int64
		want           []byte
		wantErr        error
	}{
		{"whole", 0, 10_000, data, nil},
		{"start", 0, 10, data[:10], nil},
		{"middle", 4095, 3, data[4095:4098], nil},
		{"last byte", 9_999, 1, data[9_999:], nil},
		{"nothing", 5, 0, nil, nil},
		{"nothing at the end", 10_000, 0, nil, nil},
		{"nothing past the end", 10_001, 0, nil, io.ErrUnexpectedEOF},
		{"past the end", 9_999, 2, nil, io.ErrUnexpectedEOF},
		{"from the end", 10_000, 1, nil, io.ErrUnexpectedEOF},
		{"far past the end", 1 << 40, 1, nil, io.ErrUnexpectedEOF},
		{"absurd length takes no memory", 1, math.MaxInt64, nil, io.ErrUnexpectedEOF},
		{"negative offset", -1, 1, nil, base.ErrInvalid},
		{"negative length", 0, -1, nil, base.ErrInvalid},
	}
	for _, test := range tests {
		got, err := s.ReadRange(t.Context(), "a", test.offset, test.length, nil)
		require.ErrorIs(t, err, test.wantErr, test.name)
		require.Equal(t, string(test.want), string(got), test.name)
	}
}

func destination(t *testing.T, s blob.Store) {
	data := Content(5, 1000)
	put(t, s, "a", data)
	roomy := make([]byte, 7, 1000)
	got, err := s.ReadRange(t.Context(), "a", 0, 1000, roomy)
	require.NoError(t, err)
	require.Equal(t, data, got)
	require.Same(t, &roomy[0], &got[0], "a destination that suffices was not used")
	tight := make([]byte, 7)
	got, err = s.ReadRange(t.Context(), "a", 0, 1000, tight)
	require.NoError(t, err)
	require.Equal(t, data, got)
}

func absent(t *testing.T, s blob.Store) {
	put(t, s, "folder/object", []byte("x"))
	for _, key := range []string{"nothing", "folder", "folder/nothing", "no/folder", "folder/object/below"} {
		_, err := s.Stat(t.Context(), key)
		require.ErrorIs(t, err, base.ErrNotFound, key)
		for _, length := range []int64{0, 1} {
			_, err = s.ReadRange(t.Context(), key, 0, length, nil)
			require.ErrorIs(t, err, base.ErrNotFound, key)
		}
	}
	found, err := s.List(t.Context(), "no/folder/", "", 10)
	require.NoError(t, err)
	require.Empty(t, found)
}

func invalidKeys(t *testing.T, s blob.Store) {
	keys := []string{
		"/", "/a", "a//b", "..", "../a", "a/..", "a/../b", ".", "./a", ".hidden", "a/.tmp/b", "a./b", "a../b", "a%2F",
		"a\\b", "a:b", "a\x00b", "a\nb", "é", "a*", strings.Repeat("a", blob.MaxKeyPartBytes+1),
		strings.Repeat("a/", blob.MaxKeyBytes/2) + "a",
	}
	for _, key := range keys {
		for call, err := range allCalls(t.Context(), s, key) {
			require.ErrorIs(t, err, base.ErrInvalid, "%s of %q", call, key)
		}
	}
	for call, err := range allCalls(t.Context(), s, "") {
		if call != "List" {
			require.ErrorIs(t, err, base.ErrInvalid, "%s of the empty key", call)
		}
	}
	longest := strings.Repeat("a", blob.MaxKeyPartBytes)
	put(t, s, longest, []byte("x"))
	requireObject(t, s, longest, []byte("x"))
}

func stat(t *testing.T, s blob.Store) {
	put(t, s, "wal/a", Content(1, 12_345))
	info, err := s.Stat(t.Context(), "wal/a")
	require.NoError(t, err)
	require.Equal(t, "wal/a", info.Key)
	require.Equal(t, int64(12_345), info.Size)
	require.Positive(t, info.Modified)
}

func deletes(t *testing.T, s blob.Store) {
	put(t, s, "wal/a", []byte("x"))
	put(t, s, "wal/b", []byte("y"))
	for range 2 {
		require.NoError(t, s.Delete(t.Context(), "wal/a"))
		requireAbsent(t, s, "wal/a")
	}
	require.NoError(t, s.Delete(t.Context(), "no/such/folder"))
	require.NoError(t, s.Delete(t.Context(), "wal"), "a folder is no object")
	requireObject(t, s, "wal/b", []byte("y"))
	put(t, s, "wal/a", []byte("again"))
	requireObject(t, s, "wal/a", []byte("again"))
}

func cancelledCalls(t *testing.T, s blob.Store) {
	put(t, s, "a", []byte("x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for call, err := range allCalls(ctx, s, "a") {
		require.ErrorIs(t, err, context.Canceled, call)
	}
	requireObject(t, s, "a", []byte("x"))
}

func closedStore(t *testing.T, s blob.Store) {
	put(t, s, "a", []byte("x"))
	require.NoError(t, s.Close())
	for call, err := range allCalls(t.Context(), s, "a") {
		require.ErrorIs(t, err, base.ErrClosed, call)
	}
	require.NoError(t, s.Close(), "closing again")
}
