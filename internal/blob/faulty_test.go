package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
)

// errInjected is what the tests make a store fail with.
var errInjected = errors.New("injected")

// failing returns an empty store whose n-th call has the given fault.
func failing(t *testing.T, n int, fault Fault) *Faulty {
	t.Helper()
	s := NewFaulty(memoryBucket(), func(c Call) Fault {
		if c.N == n {
			return fault
		}
		return Fault{}
	})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestFaultBeforePreventsTheEffectAndAfterHidesIt(t *testing.T) {
	tests := []struct {
		name   string
		fault  Fault
		stored bool
	}{
		{"before", Fault{Before: errInjected}, false},
		{"after", Fault{After: errInjected}, true},
		{"wait", Fault{Wait: func(context.Context) error { return errInjected }}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := failing(t, 1, test.fault)
			require.ErrorIs(t, s.Put(t.Context(), "a", []byte("x")), errInjected)
			_, err := s.Stat(t.Context(), "a")
			require.Equal(t, test.stored, err == nil)
		})
	}
}

func TestEffectsOwnErrorWinsOverFaultAfter(t *testing.T) {
	s := failing(t, 1, Fault{After: errInjected})
	_, err := s.Stat(t.Context(), "nothing")
	require.ErrorIs(t, err, base.ErrNotFound)
}

func TestDamageOnReadLeavesTheObjectWhole(t *testing.T) {
	s := failing(t, 2, Fault{Damage: FlipBit(9)})
	data := []byte{1, 2, 3}
	require.NoError(t, s.Put(t.Context(), "a", data))
	got, err := s.ReadRange(t.Context(), "a", 0, 3, nil)
	require.NoError(t, err)
	require.Equal(t, []byte{1, 0, 3}, got)
	got, err = s.ReadRange(t.Context(), "a", 0, 3, nil)
	require.NoError(t, err)
	require.Equal(t, data, got)
}

func TestTruncatedReadIsShort(t *testing.T) {
	s := failing(t, 2, Fault{Damage: Truncate(2)})
	require.NoError(t, s.Put(t.Context(), "a", []byte{1, 2, 3}))
	_, err := s.ReadRange(t.Context(), "a", 0, 3, nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestPutCutShortStoresAPart(t *testing.T) {
	s := failing(t, 1, Fault{Damage: Truncate(2), After: errInjected})
	data := []byte{1, 2, 3}
	require.ErrorIs(t, s.Put(t.Context(), "a", data), errInjected)
	require.Equal(t, []byte{1, 2, 3}, data, "the caller's data is untouched")
	info, err := s.Stat(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, int64(2), info.Size)
}

func TestFailedCommitDiscardsOrKeepsTheObject(t *testing.T) {
	const commit = 3 // after Create and Write
	for stored, fault := range map[bool]Fault{false: {Before: errInjected}, true: {After: errInjected}} {
		s := failing(t, commit, fault)
		w, err := s.Create(t.Context(), "a")
		require.NoError(t, err)
		_, err = w.Write([]byte("x"))
		require.NoError(t, err)
		require.ErrorIs(t, w.Commit(), errInjected)
		w.Abort()
		_, err = s.Stat(t.Context(), "a")
		require.Equal(t, stored, err == nil)
	}
}

func TestFailedCreateAndWriteReachTheCaller(t *testing.T) {
	for _, fault := range []Fault{{Before: errInjected}, {After: errInjected}} {
		_, err := failing(t, 1, fault).Create(t.Context(), "a")
		require.ErrorIs(t, err, errInjected)
		w, err := failing(t, 2, fault).Create(t.Context(), "a")
		require.NoError(t, err)
		_, err = w.Write([]byte("x"))
		require.ErrorIs(t, err, errInjected)
		w.Abort()
	}
}

func TestDecisionSeesEveryCallInOrder(t *testing.T) {
	var seen []string
	s := NewFaulty(memoryBucket(), func(c Call) Fault {
		seen = append(seen, fmt.Sprintf("%d %s %s", c.N, c.Op, c.Key))
		return Fault{}
	})
	ctx := t.Context()
	require.NoError(t, s.Put(ctx, "a", nil))
	w, err := s.Create(ctx, "b")
	require.NoError(t, err)
	_, err = w.Write(nil)
	require.NoError(t, err)
	require.NoError(t, w.Commit())
	_, err = s.ReadRange(ctx, "a", 0, 0, nil)
	require.NoError(t, err)
	_, err = s.Stat(ctx, "a")
	require.NoError(t, err)
	_, err = s.List(ctx, "pre", "", 1)
	require.NoError(t, err)
	require.NoError(t, s.Delete(ctx, "a"))
	require.NoError(t, s.Close())
	require.Equal(t, []string{
		"1 Put a", "2 Create b", "3 Write b", "4 Commit b",
		"5 ReadRange a", "6 Stat a", "7 List pre", "8 Delete a",
	}, seen)
	require.Equal(t, "Op(0)", Op(0).String())
	require.Equal(t, "Op(99)", Op(99).String())
}

func TestFlipBitStaysInsideTheData(t *testing.T) {
	require.Empty(t, FlipBit(3)(nil))
	require.Equal(t, []byte{0, 1}, FlipBit(8)(make([]byte, 2)))
	require.Equal(t, []byte{2, 0}, FlipBit(17)(make([]byte, 2)))
}
