package engine_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// disturbed is a coordination store that misbehaves while a test says so.
type disturbed struct {
	mu    sync.Mutex
	fault func(coord.Call) coord.Fault // guarded by mu; nil while all is well
}

func (d *disturbed) set(fault func(coord.Call) coord.Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = fault
}

func (d *disturbed) wrap(store coord.Store) coord.Store {
	return coord.NewFaulty(store, func(c coord.Call) coord.Fault {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.fault == nil {
			return coord.Fault{}
		}
		return d.fault(c)
	})
}

// late closes a while from now.
func late() <-chan struct{} {
	gate := make(chan struct{})
	time.AfterFunc(200*time.Millisecond, func() { close(gate) })
	return gate
}

// Given a coordination store that answers late, loses answers, does things twice, refuses,
// is stale, or cuts its watches, while records are appended, then none is lost and none is
// there twice; once it is well again, all is healthy without a restart.
func TestAppendsOutliveACoordinationStoreThatMisbehaves(t *testing.T) {
	often := func(n int, fault coord.Fault, ops ...coord.Op) func(coord.Call) coord.Fault {
		return func(c coord.Call) coord.Fault {
			if c.N%n != 0 || !slices.Contains(ops, c.Op) {
				return coord.Fault{}
			}
			return fault
		}
	}
	for name, fault := range map[string]func(coord.Call) coord.Fault{
		"late": func(c coord.Call) coord.Fault {
			if c.Op == coord.OpWatch {
				return coord.Fault{}
			}
			return coord.Fault{Hold: late()}
		},
		"answers are lost":   often(2, coord.Fault{After: base.ErrUnknown}, coord.OpPut, coord.OpUpdate, coord.OpCreate),
		"done twice":         often(1, coord.Fault{Twice: true}, coord.OpPut),
		"refuses":            often(2, coord.Fault{Before: base.ErrUnavailable}, coord.OpPut, coord.OpUpdate, coord.OpGet, coord.OpList, coord.OpBounds),
		"a stale replica":    often(1, coord.Fault{Stale: true}, coord.OpBounds, coord.OpGet, coord.OpList),
		"watches are cut":    often(3, coord.Fault{Cut: true}, coord.OpDeliver),
		"silent for a while": often(4, coord.Fault{Hold: late()}, coord.OpDeliver),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := shortLease(t)
			var store disturbed
			e := closeAtEnd(t, open(t, opts.WithCoordination(store.wrap)))
			s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{Table: engine.TablePolicy{CommitInterval: time.Second}})
			require.NoError(t, err)
			appendOrders(t, s, 0, 5)
			store.set(fault)
			for n := 5; n < 50; n += 5 {
				appendOrders(t, s, n, 5)
			}
			store.set(nil)
			appendOrders(t, s, 50, 5)

			payloads := readAll(t, opts, "shop/orders")
			require.Len(t, payloads, 55)
			slices.Sort(payloads)
			require.Len(t, slices.Compact(payloads), 55)
			table, err := e.Table("shop.orders")
			require.NoError(t, err)
			require.NoError(t, table.WaitCaughtUp(t.Context()))
			require.Eventually(t, func() bool { return len(e.Status(t.Context()).Problems) == 0 }, patience, 50*time.Millisecond)
		})
	}
}

// Given a coordination store that falls silent, when appends wait for it, then the status
// of the instance says so and what happens next; when it speaks again, then they are
// acknowledged and all is healthy without a restart.
func TestASilentCoordinationStoreIsShownUntilItSpeaks(t *testing.T) {
	var store disturbed
	opts := shortLease(t)
	e := closeAtEnd(t, open(t, opts.WithCoordination(store.wrap)))
	s, err := e.EnsureStream(t.Context(), "shop/orders", engine.StreamConfig{})
	require.NoError(t, err)
	gate := make(chan struct{})
	store.set(func(c coord.Call) coord.Fault {
		if c.Op == coord.OpPut {
			return coord.Fault{Hold: gate}
		}
		return coord.Fault{}
	})
	done := make(chan error, 1)
	batch := engine.Batch{Logs: []engine.LogRecords{{Records: []engine.Record{{Value: []byte(`{"id":1}`)}}}}}
	go func() { done <- s.Append(t.Context(), &batch) }()
	var problems []engine.Problem
	require.Eventually(t, func() bool {
		problems = e.Status(t.Context()).Problems
		return len(problems) > 0
	}, patience, 50*time.Millisecond)
	require.Contains(t, problems[0].What, "appends of shard")
	require.Contains(t, problems[0].Reason, "the commit log of")
	require.NotEmpty(t, problems[0].NextAction)

	store.set(nil)
	close(gate)
	require.NoError(t, <-done)
	require.NoError(t, batch.Results[0].Err)
	require.Eventually(t, func() bool { return len(e.Status(t.Context()).Problems) == 0 }, patience, 50*time.Millisecond)
}
