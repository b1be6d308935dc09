package mem_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAcceptance(t *testing.T) {
	coordtest.Run(t, func(*testing.T) coordtest.Cluster {
		clock := coordtest.NewClock()
		server := mem.NewServer(clock)
		var stores []*mem.Store
		return coordtest.Cluster{
			Open: func(t *testing.T) coord.Store {
				s := server.Open(fmt.Sprint(len(stores)))
				stores = append(stores, s)
				t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
				return s
			},
			Interrupt: func(*testing.T) {
				for _, s := range stores {
					s.Interrupt()
				}
			},
			Pass:  func(_ *testing.T, d time.Duration) { clock.Advance(d) },
			Stray: func(_ *testing.T, log string, data []byte) { server.Stray(log, data) },
		}
	})
}

func TestAWatchHoldsTheRecordWhenPutReturns(t *testing.T) {
	store := mem.NewServer(coordtest.NewClock()).Open("a")
	log, err := store.Log(t.Context(), "s00")
	require.NoError(t, err)
	w, err := log.Watch(t.Context(), 1)
	require.NoError(t, err)
	_, err = log.Put(t.Context(), []byte("record"))
	require.NoError(t, err)
	require.Len(t, w.Entries(), 1)
}

func TestAReceiverThatDoesNotDrainIsInterrupted(t *testing.T) {
	store := mem.NewServer(coordtest.NewClock()).Open("a")
	log, err := store.Log(t.Context(), "s00")
	require.NoError(t, err)
	w, err := log.Watch(t.Context(), 1)
	require.NoError(t, err)
	const puts = 3000
	for range puts {
		_, err = log.Put(t.Context(), nil)
		require.NoError(t, err)
	}
	var last base.Revision
	for entry := range w.Entries() { // ends only if the watch was closed
		require.Equal(t, last+1, entry.Revision)
		last = entry.Revision
	}
	assert.Less(t, last, base.Revision(puts))
}

func TestAnEndedContextIsUnavailable(t *testing.T) {
	store := mem.NewServer(coordtest.NewClock()).Open("a")
	log, err := store.Log(t.Context(), "s00")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = log.Put(ctx, nil)
	require.ErrorIs(t, err, base.ErrUnavailable)
	_, last, err := log.Bounds(t.Context())
	require.NoError(t, err)
	assert.Zero(t, last, "nothing was put")
}

// Given any sequence of calls, two servers that see the same calls at the same
// times hold the same entries.
func TestTheSameCallsGiveTheSameLog(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 60).Draw(rt, "steps")
		first := play(t, steps)
		require.Equal(rt, first, play(t, steps))
	})
}

// play runs steps on a fresh server and tells what could be seen.
func play(t *testing.T, steps []int) []string {
	clock := coordtest.NewClock()
	server := mem.NewServer(clock)
	a, b := server.Open("a"), server.Open("b")
	var seen []string
	for i, step := range steps {
		store := []*mem.Store{a, b}[i%2]
		switch step {
		case 0, 1:
			log, err := store.Log(t.Context(), "s00")
			require.NoError(t, err)
			at, err := log.Put(t.Context(), fmt.Append(nil, i))
			seen = append(seen, fmt.Sprint(at, err))
		case 2:
			server.Stray("s00", nil)
		case 3:
			at, err := store.Documents().Create(t.Context(), "k", nil, time.Second)
			seen = append(seen, fmt.Sprint(at, err))
		case 4:
			clock.Advance(time.Second)
		}
	}
	log, err := b.Log(t.Context(), "s00")
	require.NoError(t, err)
	w, err := log.Watch(t.Context(), 1)
	require.NoError(t, err)
	w.Stop()
	for entry := range w.Entries() {
		seen = append(seen, fmt.Sprint(entry))
	}
	return seen
}
