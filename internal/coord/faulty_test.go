package coord_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
)

var errFault = errors.New("fault")

func call(op coord.Op, n int) coord.Call { return coord.Call{Op: op, Target: "s00", N: n} }

func openLog(t *testing.T, s coord.Store) coord.CommitLog {
	t.Helper()
	log, err := s.Log(t.Context(), "s00")
	require.NoError(t, err)
	return log
}

// contents reads a log without faults.
func (w *world) contents(t *testing.T) []string {
	t.Helper()
	watch, err := openLog(t, w.server.Open("reader")).Watch(t.Context(), 1)
	require.NoError(t, err)
	watch.Stop() // closes behind what is there
	var texts []string
	for entry := range watch.Entries() {
		texts = append(texts, string(entry.Data))
	}
	return texts
}

// A wrapper that decides on no fault is a store like any other.
func TestAFaultyWithoutFaultsPassesTheSuite(t *testing.T) {
	coordtest.Run(t, func(*testing.T) coordtest.Cluster {
		w := newWorld(nil)
		var stores []*mem.Store
		return coordtest.Cluster{
			Open: func(t *testing.T) coord.Store {
				s := w.server.Open("wrapped")
				stores = append(stores, s)
				t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
				return coord.NewFaulty(s, func(coord.Call) coord.Fault { return coord.Fault{} })
			},
			Interrupt: func(*testing.T) {
				for _, s := range stores {
					s.Interrupt()
				}
			},
			Pass:  func(_ *testing.T, d time.Duration) { w.clock.Advance(d) },
			Stray: func(_ *testing.T, log string, data []byte) { w.server.Stray(log, data) },
		}
	})
}

func TestFaultsOfAPut(t *testing.T) {
	for name, story := range map[string]struct {
		fault coord.Fault
		err   error
		want  []string
	}{
		"none":                 {coord.Fault{}, nil, []string{"a"}},
		"before the effect":    {coord.Fault{Before: errFault}, errFault, nil},
		"after the effect":     {coord.Fault{After: errFault}, errFault, []string{"a"}},
		"twice":                {coord.Fault{Twice: true}, nil, []string{"a", "a"}},
		"twice and lost":       {coord.Fault{Twice: true, After: errFault}, errFault, []string{"a", "a"}},
		"stale means no write": {coord.Fault{Stale: true}, nil, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(map[coord.Call]coord.Fault{call(coord.OpPut, 1): story.fault})
			at, err := openLog(t, w.store).Put(t.Context(), []byte("a"))
			require.ErrorIs(t, err, story.err)
			assert.Equal(t, story.want, w.contents(t))
			if err == nil {
				assert.Equal(t, base.Revision(1), at)
			}
		})
	}
}

func TestAHeldCallWaits(t *testing.T) {
	hold := make(chan struct{})
	w := newWorld(map[coord.Call]coord.Fault{
		call(coord.OpPut, 1): {Hold: hold}, call(coord.OpPut, 2): {Hold: hold},
	})
	log := openLog(t, w.store)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := log.Put(ctx, []byte("a"))
	require.ErrorIs(t, err, base.ErrUnavailable)
	done := make(chan error)
	go func() {
		_, err := log.Put(t.Context(), []byte("b"))
		done <- err
	}()
	require.Empty(t, w.contents(t))
	close(hold)
	require.NoError(t, <-done)
	assert.Equal(t, []string{"b"}, w.contents(t))
}

func TestStaleReadsRepeatTheLastAnswer(t *testing.T) {
	w := newWorld(map[coord.Call]coord.Fault{
		call(coord.OpBounds, 2):                 {Stale: true},
		{Op: coord.OpGet, Target: "k", N: 2}:    {Stale: true},
		{Op: coord.OpList, Target: "", N: 1}:    {Stale: true}, // nothing to repeat
		{Op: coord.OpList, Target: "", N: 2}:    {Stale: true},
		{Op: coord.OpGet, Target: "none", N: 1}: {Stale: true},
	})
	log, docs := openLog(t, w.store), w.store.Documents()
	var seen []string
	look := func() {
		_, last, err := log.Bounds(t.Context())
		require.NoError(t, err)
		doc, err := docs.Get(t.Context(), "k")
		require.NoError(t, err)
		list, err := docs.List(t.Context(), "")
		require.NoError(t, err)
		seen = append(seen, fmt.Sprintf("%d %s %d", last, doc.Value, len(list)))
	}
	at, err := docs.Create(t.Context(), "k", []byte("old"), 0)
	require.NoError(t, err)
	look()
	_, err = log.Put(t.Context(), nil)
	require.NoError(t, err)
	_, err = docs.Update(t.Context(), "k", []byte("new"), at, 0)
	require.NoError(t, err)
	_, err = docs.Create(t.Context(), "l", nil, 0)
	require.NoError(t, err)
	look()
	look()
	assert.Equal(t, []string{"0 old 1", "0 old 1", "1 new 2"}, seen)
	_, err = docs.Get(t.Context(), "none")
	require.ErrorIs(t, err, base.ErrNotFound)
}

func TestFaultsOfAWatch(t *testing.T) {
	hold := make(chan struct{})
	for name, story := range map[string]struct {
		fault coord.Fault
		want  []string // before the watch ends or falls silent
		ends  bool
	}{
		"none":   {coord.Fault{}, []string{"1", "2", "3"}, false},
		"cut":    {coord.Fault{Cut: true}, []string{"1"}, true},
		"silent": {coord.Fault{Hold: hold}, []string{"1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(map[coord.Call]coord.Fault{call(coord.OpDeliver, 2): story.fault})
			log := openLog(t, w.store)
			watch, err := log.Watch(t.Context(), 1)
			require.NoError(t, err)
			defer watch.Stop()
			for _, text := range []string{"1", "2", "3"} {
				_, err := log.Put(t.Context(), []byte(text))
				require.NoError(t, err)
			}
			for _, want := range story.want {
				require.Equal(t, want, string((<-watch.Entries()).Data))
			}
			if story.ends {
				_, open := <-watch.Entries()
				require.False(t, open)
				return
			}
			watch.Stop()
			watch.Stop()
			for range watch.Entries() {
				require.Fail(t, "an entry after silence")
			}
		})
	}
}

func TestADelayedDeliveryArrives(t *testing.T) {
	hold := make(chan struct{})
	w := newWorld(map[coord.Call]coord.Fault{call(coord.OpDeliver, 1): {Hold: hold}})
	log := openLog(t, w.store)
	watch, err := log.Watch(t.Context(), 1)
	require.NoError(t, err)
	defer watch.Stop()
	_, err = log.Put(t.Context(), []byte("late"))
	require.NoError(t, err)
	close(hold)
	assert.Equal(t, "late", string((<-watch.Entries()).Data))
}

func TestFaultsReachEachOperation(t *testing.T) {
	for op, run := range map[coord.Op]func(context.Context, *world) error{
		coord.OpLog:     func(ctx context.Context, w *world) error { _, err := w.store.Log(ctx, "x"); return err },
		coord.OpLogFrom: func(ctx context.Context, w *world) error { _, err := w.store.LogFrom(ctx, "x", 2); return err },
		coord.OpPurge: func(ctx context.Context, w *world) error {
			log, err := w.store.Log(ctx, "z")
			if err == nil {
				err = log.Purge(ctx, 1)
			}
			return err
		},
		coord.OpWatch: func(ctx context.Context, w *world) error {
			log, err := w.store.Log(ctx, "y")
			if err == nil {
				_, err = log.Watch(ctx, 1)
			}
			return err
		},
		coord.OpCreate: func(ctx context.Context, w *world) error {
			_, err := w.store.Documents().Create(ctx, "k", nil, 0)
			return err
		},
		coord.OpUpdate: func(ctx context.Context, w *world) error {
			_, err := w.store.Documents().Update(ctx, "k", nil, 1, 0)
			return err
		},
		coord.OpDelete: func(ctx context.Context, w *world) error { return w.store.Documents().Delete(ctx, "k", 1) },
	} {
		for _, fault := range []coord.Fault{{Before: errFault}, {After: errFault}, {After: errFault, Twice: true}} {
			t.Run(fmt.Sprint(op, fault), func(t *testing.T) {
				w := newWorld(nil)
				w.store = coord.NewFaulty(w.server.Open("faulty"), func(c coord.Call) coord.Fault {
					if c.Op == op {
						return fault
					}
					return coord.Fault{}
				})
				require.ErrorIs(t, run(t.Context(), w), errFault)
			})
		}
	}
}
