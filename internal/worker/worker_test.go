package worker_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 5 * time.Second

// cluster is coordination in memory whose time stands still but for pass.
type cluster struct {
	t      *testing.T
	clock  *coordtest.Clock
	server *mem.Server
	// ctx ends with the test, before what start started is waited for.
	ctx context.Context
}

func newCluster(t *testing.T) *cluster {
	clock := coordtest.NewClock()
	return &cluster{t: t, clock: clock, server: mem.NewServer(clock), ctx: t.Context()}
}

func (c *cluster) context() (context.Context, context.CancelFunc) {
	return context.WithCancel(c.t.Context())
}

// start returns what runs a function in the background until the test ends: it has to
// end when ctx does.
func (c *cluster) start() (run func(fn func())) {
	ctx, stop := c.context()
	c.ctx = ctx
	var running sync.WaitGroup
	c.t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return func(fn func()) { running.Go(fn) }
}

// neverLost is the fence of an instance that keeps its lease.
func (c *cluster) neverLost(context.Context) error {
	c.t.Error("the lease was lost")
	return nil
}

// settle lets what runs in the background get to where it waits for the clock.
func (c *cluster) settle() {
	for range 20 {
		time.Sleep(time.Millisecond)
	}
}

func (c *cluster) leases(holder string) worker.Leases {
	return worker.Leases{
		Documents: c.server.Open(holder).Documents(), Clock: c.clock, Holder: holder, TTL: ttl, Logger: slog.New(slog.DiscardHandler),
	}
}

// passUntil lets time pass in small steps until ok holds.
func (c *cluster) passUntil(ok func() bool, what string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		c.clock.Advance(ttl / 20)
		return ok()
	}, 20*time.Second, time.Millisecond, what)
}

// Given two instances that want one job, then one runs it, and when that one ends the
// other takes over.
func TestAJobRunsOnOneInstanceAndMovesOn(t *testing.T) {
	c := newCluster(t)
	var running [2]atomic.Bool
	var stops [2]context.CancelFunc
	done := make(chan struct{}, 2)
	for i, holder := range []string{"a", "b"} {
		ctx, stop := context.WithCancel(t.Context())
		stops[i] = stop
		go func() {
			c.leases(holder).Run(ctx, "job", func(ctx context.Context) {
				running[i].Store(true)
				<-ctx.Done()
				running[i].Store(false)
			})
			done <- struct{}{}
		}()
		c.passUntil(running[0].Load, "a runs")
	}
	for range 10 { // less than a time to live: the lease stands, renewed or not
		c.clock.Advance(ttl / 20)
		time.Sleep(time.Millisecond)
	}
	require.True(t, running[0].Load())
	require.False(t, running[1].Load(), "b waits for the lease")
	stops[0]()
	c.passUntil(running[1].Load, "b takes over")
	require.False(t, running[0].Load())
	stops[1]()
	<-done
	<-done
}

// view opens a view of a shard with two open writers: one of the instance "dead",
// one of the instance "alive".
func (c *cluster) view() *shard.View {
	store := c.server.Open("view")
	commits, err := store.Log(c.t.Context(), "s00")
	require.NoError(c.t, err)
	genesis, err := commitrecord.Encode(commitrecord.Envelope{Cluster: base.ClusterID{1}}, &commitpb.ClusterCreate{Shards: 1, FoldVersion: commitrecord.FoldVersion})
	require.NoError(c.t, err)
	_, err = commits.Put(c.t.Context(), genesis)
	require.NoError(c.t, err)
	view, err := shard.OpenView(c.t.Context(), shard.ViewOptions{
		Cluster: base.ClusterID{1}, Log: commits, Reconnects: store.Reconnects, Clock: base.SystemClock{},
		Logger: slog.New(slog.DiscardHandler), Entropy: rand.Reader,
	})
	require.NoError(c.t, err)
	c.t.Cleanup(view.Close)
	for _, instance := range []string{"dead", "alive"} {
		_, err := shard.OpenSession(c.t.Context(), view, instance, rand.Reader)
		require.NoError(c.t, err)
	}
	return view
}

func writers(view *shard.View) (instances []string) {
	view.Inspect(func(s *shard.State) {
		for _, w := range s.Writers() {
			instances = append(instances, w.Instance)
		}
	})
	return instances
}

// Given writers of a process that lives and of one that is gone, then those of the
// latter are closed, not before a full time to live, and those of the former stay.
func TestWritersOfDeadInstancesAreClosed(t *testing.T) {
	c := newCluster(t)
	view := c.view()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	go func() {
		c.leases("alive").KeepAlive(ctx, worker.Instance{ID: "alive"}, c.neverLost)
		done <- struct{}{}
	}()
	c.passUntil(func() bool { return len(c.told()) == 1 }, "the instance lives")
	require.Equal(t, "alive", c.told()[0].ID)

	began := c.clock.Now()
	go func() {
		c.leases("other").FenceDead(ctx, []worker.Ledger{view}, func() uint64 { return 0 })
		done <- struct{}{}
	}()
	c.passUntil(func() bool { return len(writers(view)) == 1 }, "the dead one's writer is closed")
	require.Equal(t, []string{"alive"}, writers(view))
	require.GreaterOrEqual(t, c.clock.Now().Sub(began), ttl)
	stop()
	<-done
	<-done
}

// stoppedLedger is a shard with the writers of another whose view has stopped.
type stoppedLedger struct {
	worker.Ledger
	refused atomic.Int64
}

func (l *stoppedLedger) Publish(context.Context, commitrecord.Payload) (shard.Outcome, error) {
	l.refused.Add(1)
	return shard.Outcome{}, base.ErrCorrupt
}

// Given a shard that takes no records, then the dead writers of the others are closed
// all the same.
func TestAShardThatStoppedKeepsNoOtherFromFencing(t *testing.T) {
	c := newCluster(t)
	view := c.view()
	stopped := &stoppedLedger{Ledger: view}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		c.leases("alive").FenceDead(ctx, []worker.Ledger{stopped, view}, func() uint64 { return 0 })
		close(done)
	}()
	c.passUntil(func() bool { return len(writers(view)) == 1 }, "the dead one's writer is closed")
	require.Positive(t, stopped.refused.Load())
	stop()
	<-done
}

// Given an instance whose own connection keeps being made again, then it closes
// nobody's writers: whom it does not see may have had no chance to come back.
func TestNobodyIsClosedRightAfterAReconnect(t *testing.T) {
	c := newCluster(t)
	view := c.view()
	ctx, stop := context.WithCancel(t.Context())
	var reconnects atomic.Uint64
	done := make(chan struct{})
	go func() {
		c.leases("other").FenceDead(ctx, []worker.Ledger{view}, func() uint64 { return reconnects.Add(1) })
		close(done)
	}()
	for range 400 {
		c.clock.Advance(ttl / 20)
		time.Sleep(100 * time.Microsecond)
	}
	require.Len(t, writers(view), 2)
	stop()
	<-done
}
