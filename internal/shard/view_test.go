package shard_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a coordination store with a clock that a test moves, and a log that
// holds a ClusterCreate record.
type world struct {
	t      *testing.T
	clock  *coordtest.Clock
	server *mem.Server
	// faults is asked for each call of views opened from now on; nil is none.
	faults     func(coord.Call) coord.Fault
	reconnects atomic.Uint64

	mu    sync.Mutex
	calls map[coord.Op]int // guarded by mu
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock := coordtest.NewClock()
	w := &world{t: t, clock: clock, server: mem.NewServer(clock), calls: make(map[coord.Op]int)}
	w.server.Stray(testShard.String(), shardtest.Encode(t, &commitpb.ClusterCreate{Shards: 4, FoldVersion: commitrecord.FoldVersion}))
	return w
}

func (w *world) open() *shard.View { return w.openLogging(io.Discard) }

// openLogging opens a view whose log goes to out, all of it.
func (w *world) openLogging(out io.Writer) *shard.View {
	w.t.Helper()
	store := coord.NewFaulty(w.server.Open("instance"), func(c coord.Call) coord.Fault {
		w.mu.Lock()
		w.calls[c.Op]++
		w.mu.Unlock()
		if w.faults == nil {
			return coord.Fault{}
		}
		return w.faults(c)
	})
	log, err := store.Log(w.t.Context(), testShard.String())
	require.NoError(w.t, err)
	opts := w.options(log)
	opts.Logger = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	view, err := shard.OpenView(w.t.Context(), opts)
	require.NoError(w.t, err)
	w.t.Cleanup(view.Close)
	return view
}

func (w *world) openOn(log coord.CommitLog) *shard.View {
	w.t.Helper()
	view, err := shard.OpenView(w.t.Context(), w.options(log))
	require.NoError(w.t, err)
	w.t.Cleanup(view.Close)
	return view
}

func (w *world) options(log coord.CommitLog) shard.ViewOptions {
	return shard.ViewOptions{
		Cluster: shardtest.Cluster, Shard: testShard, Log: log, Reconnects: w.reconnects.Load,
		Clock: w.clock, Logger: slog.New(slog.DiscardHandler), Entropy: rand.Reader,
	}
}

func (w *world) count(op coord.Op) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[op]
}

// until lets the clock run until ok holds.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-deadline:
			require.FailNow(w.t, "never happened: "+what)
		case <-time.After(time.Millisecond):
			w.clock.Advance(250 * time.Millisecond)
		}
	}
}

func (w *world) reaches(v *shard.View, revision base.Revision) {
	w.t.Helper()
	w.until(fmt.Sprintf("the view reaches revision %d", revision), func() bool { return v.Revision() >= revision })
}

// publish publishes in the background while the clock runs.
func (w *world) publish(v *shard.View, name string) (out shard.Outcome, err error) {
	w.t.Helper()
	var done atomic.Bool
	go func() {
		defer done.Store(true)
		out, err = v.Publish(w.t.Context(), stream(name))
	}()
	w.until("the record's outcome", done.Load)
	return out, err
}

func stream(name string) *commitpb.StreamCreate {
	return &commitpb.StreamCreate{Namespace: "shop", Name: name, Partitions: 1}
}

func hashes(v *shard.View) (revision base.Revision, state, chain base.Hash) {
	v.Inspect(func(s *shard.State) { revision, state, chain = s.Revision(), s.Hash(), s.ChainHash() })
	return revision, state, chain
}

func TestAViewOpensAtTheLastRecord(t *testing.T) {
	w := newWorld(t)
	for i := range 100 {
		w.server.Stray(testShard.String(), shardtest.Encode(t, stream(fmt.Sprint(i))))
	}
	v := w.open()
	require.EqualValues(t, 101, v.Revision())
	v.Inspect(func(s *shard.State) { require.Len(t, s.Streams(), 100) })
}

func TestAViewOfAStoreThatDoesNotAnswerDoesNotOpen(t *testing.T) {
	w := newWorld(t)
	w.faults = func(c coord.Call) coord.Fault {
		if c.Op == coord.OpBounds {
			return coord.Fault{Before: base.ErrUnavailable}
		}
		return coord.Fault{}
	}
	log, err := coord.NewFaulty(w.server.Open("a"), w.faults).Log(t.Context(), testShard.String())
	require.NoError(t, err)
	_, err = shard.OpenView(t.Context(), w.options(log))
	require.ErrorIs(t, err, base.ErrUnavailable)
}

func TestOpeningAViewEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	silent := coord.NewFaulty(w.server.Open("a"), func(c coord.Call) coord.Fault {
		if c.Op == coord.OpDeliver {
			return coord.Fault{Hold: make(chan struct{})}
		}
		return coord.Fault{}
	})
	log, err := silent.Log(t.Context(), testShard.String())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = shard.OpenView(ctx, w.options(log))
	require.Error(t, err)
}

// What became of one put: for each, one outcome is delivered, it is the accepted
// one, and it stands for one stream.
func TestPublishDeliversOneAcceptedOutcomeWhateverHappensToItsReply(t *testing.T) {
	lost := errors.New("no reply")
	for name, fault := range map[string]coord.Fault{
		"nothing":                      {},
		"the reply was lost":           {After: base.WithClass(base.ErrUnknown, lost)},
		"the record was lost":          {Before: base.WithClass(base.ErrUnknown, lost)},
		"it was delivered twice":       {Twice: true},
		"twice, and no reply for both": {Twice: true, After: base.WithClass(base.ErrUnknown, lost)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.faults = func(c coord.Call) coord.Fault {
				if c.Op == coord.OpPut && c.N == 1 {
					return fault
				}
				return coord.Fault{}
			}
			v := w.open()
			out, err := w.publish(v, "orders")
			require.NoError(t, err)
			require.True(t, out.OK(), out.Rejected)
			other := newWorldView(w)
			other.Inspect(func(s *shard.State) {
				require.Len(t, s.Streams(), 1)
				require.Equal(t, out.Stream, s.Streams()[0].ID)
			})
		})
	}
}

// newWorldView opens a view without faults.
func newWorldView(w *world) *shard.View {
	w.t.Helper()
	log, err := w.server.Open("other").Log(w.t.Context(), testShard.String())
	require.NoError(w.t, err)
	return w.openOn(log)
}

func TestAPutThatWasRefusedAppendsNothing(t *testing.T) {
	w := newWorld(t)
	w.faults = func(c coord.Call) coord.Fault {
		if c.Op == coord.OpPut {
			return coord.Fault{Before: base.ErrUnavailable}
		}
		return coord.Fault{}
	}
	v := w.open()
	_, err := v.Publish(t.Context(), stream("orders"))
	require.ErrorIs(t, err, base.ErrUnavailable)
	require.NotErrorIs(t, err, base.ErrUnknown)
	require.EqualValues(t, 1, newWorldView(w).Revision())
}

func TestAPublishWhoseContextEndsMayYetHappen(t *testing.T) {
	w := newWorld(t)
	release := make(chan struct{})
	w.faults = func(c coord.Call) coord.Fault {
		if c.Op == coord.OpDeliver && c.N > 1 {
			return coord.Fault{Hold: release}
		}
		return coord.Fault{}
	}
	v := w.open()
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := v.Publish(ctx, stream("orders"))
		result <- err
	}()
	w.until("the record is put", func() bool { return w.count(coord.OpPut) == 1 })
	cancel()
	err := <-result
	require.ErrorIs(t, err, base.ErrUnknown)
	require.ErrorIs(t, err, context.Canceled)
	close(release)
	w.reaches(v, 2)
}

func TestAWatchIsMadeAgain(t *testing.T) {
	silence := coord.Fault{Hold: make(chan struct{})}
	for name, story := range map[string]struct {
		// second is the fault of the second delivery, of revision 2.
		second coord.Fault
		// stale is whether the leader answers what it answered at first.
		stale bool
		// act puts revision 2.
		act func(w *world, v *shard.View)
	}{
		"when it closes": {coord.Fault{Cut: true}, true, func(w *world, _ *shard.View) {
			w.server.Stray(testShard.String(), shardtest.Encode(w.t, stream("orders")))
		}},
		"when a record that was put does not arrive": {silence, true, func(w *world, v *shard.View) {
			_, err := v.Put(w.t.Context(), [16]byte{1}, stream("orders"))
			require.NoError(w.t, err)
		}},
		"when the leader knows of more records": {silence, false, func(w *world, _ *shard.View) {
			w.server.Stray(testShard.String(), shardtest.Encode(w.t, stream("orders")))
		}},
		"when the connection was made again": {silence, true, func(w *world, _ *shard.View) {
			w.server.Stray(testShard.String(), shardtest.Encode(w.t, stream("orders")))
			w.reconnects.Add(1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.faults = func(c coord.Call) coord.Fault {
				if c.Op == coord.OpDeliver && c.N == 2 {
					return story.second
				}
				return coord.Fault{Stale: story.stale && c.Op == coord.OpBounds}
			}
			v := w.open()
			story.act(w, v)
			w.reaches(v, 2)
			require.NoError(t, v.Err())
			require.Equal(t, 2, w.count(coord.OpWatch))
		})
	}
}

func TestAViewOutlivesStoresThatFailForAWhile(t *testing.T) {
	w := newWorld(t)
	var broken atomic.Bool
	w.faults = func(c coord.Call) coord.Fault {
		if broken.Load() && (c.Op == coord.OpWatch || c.Op == coord.OpBounds) {
			return coord.Fault{Before: base.ErrUnavailable}
		}
		return coord.Fault{Cut: broken.Load() && c.Op == coord.OpDeliver}
	}
	v := w.open()
	broken.Store(true)
	w.server.Stray(testShard.String(), shardtest.Encode(t, stream("orders")))
	w.until("some watches fail", func() bool { return w.count(coord.OpWatch) > 4 })
	require.EqualValues(t, 1, v.Revision())
	broken.Store(false)
	w.reaches(v, 2)
}

func TestAClosedViewEndsEveryWaitAndAppendsNothing(t *testing.T) {
	w := newWorld(t)
	v := w.open()
	out, err := w.publish(v, "orders")
	require.NoError(t, err)
	log := base.LogID{Stream: out.Stream}
	waits := make(chan error, 3)
	go func() { waits <- v.WaitHead(t.Context(), log, 0) }()
	go func() { waits <- v.WaitUntil(t.Context(), func(*shard.State) bool { return false }) }()
	go func() { waits <- v.WaitHead(t.Context(), log, 7) }()
	v.Close()
	for range cap(waits) {
		require.ErrorIs(t, <-waits, base.ErrClosed)
	}
	before := newWorldView(w).Revision()
	_, err = v.Publish(t.Context(), stream("late"))
	require.ErrorIs(t, err, base.ErrClosed)
	require.Equal(t, before, newWorldView(w).Revision())
	v.Close()
	v.Inspect(func(s *shard.State) { require.Len(t, s.Streams(), 1, "the last state can still be seen") })
}

func TestViewsAgreeWhileManyPublish(t *testing.T) {
	w := newWorld(t)
	const instances, each = 4, 25
	views := make([]*shard.View, instances)
	for i := range views {
		views[i] = w.open()
	}
	var group sync.WaitGroup
	for i, v := range views {
		group.Go(func() {
			for n := range each {
				// Half of the names are wanted by every instance.
				name := fmt.Sprintf("shared-%d", n)
				if n%2 == 0 {
					name = fmt.Sprintf("own-%d-%d", i, n)
				}
				out, err := v.Publish(t.Context(), stream(name))
				if err != nil || out.Stream == 0 {
					t.Errorf("publishing %s: %+v, %v", name, out, err)
				}
			}
		})
	}
	group.Wait()
	w.server.Stray(testShard.String(), nil)
	const last = 1 + instances*each + 1
	for _, v := range views {
		w.reaches(v, last)
	}
	_, state, chain := hashes(views[0])
	for _, v := range views {
		revision, s, c := hashes(v)
		require.EqualValues(t, last, revision)
		require.Equal(t, state, s)
		require.Equal(t, chain, c)
		v.Inspect(func(s *shard.State) { require.Len(t, s.Streams(), instances*13+12) })
	}
}
