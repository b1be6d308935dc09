package crash_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
	"github.com/lakestream-go/lakestream/internal/crash"
)

// follower tails every partition of a stream from its start, as another process
// than the writer's.
type follower struct {
	t      *testing.T
	engine *engine.Engine
	logs   []*engine.Log
	stop   context.CancelFunc
	tails  sync.WaitGroup

	mu sync.Mutex
	// read is guarded by mu: the payloads of each partition, in their order.
	read [][][]byte
	// failed is guarded by mu: what ended a tail early.
	failed error
}

func follow(t *testing.T, dir string) *follower {
	t.Helper()
	return followWith(t, engine.Options{DataDir: dir, Observe: true, Logger: slog.New(slog.DiscardHandler)})
}

func followWith(t *testing.T, opts engine.Options) *follower {
	t.Helper()
	e, err := engine.Open(t.Context(), opts)
	require.NoError(t, err)
	s, err := e.Stream(stream)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	f := &follower{t: t, engine: e, stop: stop, read: make([][][]byte, s.Partitions())}
	for p := range f.read {
		log, err := s.Log(engine.Partition(p))
		require.NoError(t, err)
		f.logs = append(f.logs, log)
	}
	for p := range f.logs {
		f.tails.Go(func() {
			if err := f.tail(ctx, p); ctx.Err() == nil {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.failed = errors.Join(f.failed, err)
			}
		})
	}
	t.Cleanup(f.close)
	return f
}

func (f *follower) close() {
	f.stop()
	f.tails.Wait()
	require.NoError(f.t, f.engine.Close(context.WithoutCancel(f.t.Context())))
}

func (f *follower) tail(ctx context.Context, p int) error {
	for next := engine.Offset(0); ; {
		batch, err := f.logs[p].Tail(ctx, next, engine.ReadLimits{})
		if err != nil {
			return err
		}
		f.mu.Lock()
		for _, r := range batch.Records {
			if r.Offset != next {
				f.failed = errors.Join(f.failed, errors.New("the tail has a gap or a duplicate"))
			}
			next++
			f.read[p] = append(f.read[p], bytes.Clone(r.Value))
		}
		f.mu.Unlock()
	}
}

// count returns how many records were read of a partition.
func (f *follower) count(p int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.read[p])
}

// requireAll requires that the tails get to the ends of their partitions, and that
// they have read just what is there.
func (f *follower) requireAll() {
	f.t.Helper()
	s, err := f.engine.Stream(stream)
	require.NoError(f.t, err)
	for p := range f.logs {
		log, err := s.Log(engine.Partition(p))
		require.NoError(f.t, err)
		_, head, err := log.Bounds()
		require.NoError(f.t, err)
		require.Eventually(f.t, func() bool { return f.count(p) >= int(head) }, patience, 5*time.Millisecond)
		require.Equal(f.t, int(head), f.count(p))
		for next := engine.Offset(0); next < head; {
			batch, err := log.Read(f.t.Context(), next, engine.ReadLimits{})
			require.NoError(f.t, err)
			for _, r := range batch.Records {
				require.Equal(f.t, string(r.Value), string(f.read[p][next]))
				next++
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	require.NoError(f.t, f.failed)
}

// busy is a life that goes on until it is killed.
func (w *world) busy() crash.Spec {
	spec := w.spec()
	spec.Batches, spec.Pause, spec.LeaseTTL = 100_000, 5*time.Millisecond, 5*time.Second
	return spec
}

// kill ends a life once it has so many acknowledgements.
func (w *world) kill(p *crash.Process, spec *crash.Spec, acks int) {
	w.t.Helper()
	require.NoError(w.t, crash.AwaitAcks(w.t.Context(), spec, acks))
	require.NoError(w.t, p.Kill())
	end := p.Wait()
	require.True(w.t, end.Killed, end.Output)
}

// Given a process that tails a stream while the process that writes it, which runs
// the server for both, is killed and started again and again, then the tail goes on,
// from the raw part of the log into what is compacted meanwhile, without a gap or a
// duplicate.
func TestATailGoesOnWhileTheWriterIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.busy()
	p := w.start(first)
	require.NoError(t, crash.AwaitAcks(t.Context(), &first, 1))
	f := follow(t, w.dir)
	w.kill(p, &first, 1000)

	second := w.busy()
	w.kill(w.start(second), &second, 1000)

	last := w.spec()
	last.LeaseTTL = 5 * time.Second // the server lives on, and with it the leases of the dead
	end, err := crash.Live(t.Context(), last)
	require.NoError(t, err)
	w.requireClean(end)
	f.requireAll()
	report, err := crash.CheckEngine(t.Context(), f.engine, w.dir)
	require.NoError(t, err)
	t.Logf("%d lives: %s", w.lives, report)
}

// Given two processes that write one stream in one directory, when the one that
// runs the server for both is killed, then the other takes the server over and goes
// on, and all that either was told to be durable is there once.
func TestTwoWritersAndTheHolderIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	holder := w.busy()
	dying := w.start(holder)
	require.NoError(t, crash.AwaitAcks(t.Context(), &holder, 1))

	other := w.spec()
	other.Batches, other.Pause, other.LeaseTTL = 200, 5*time.Millisecond, 5*time.Second
	surviving := w.start(other)
	require.NoError(t, crash.AwaitAcks(t.Context(), &other, 100))
	w.kill(dying, &holder, 100)

	w.requireClean(surviving.Wait())
	w.check()
}

// Given two such processes, when the one that joined is killed, then the holder
// does not notice, but for the leases that it takes over.
func TestTwoWritersAndTheOtherIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	holder := w.spec()
	holder.Batches, holder.Pause, holder.LeaseTTL = 200, 5*time.Millisecond, 5*time.Second
	surviving := w.start(holder)
	require.NoError(t, crash.AwaitAcks(t.Context(), &holder, 1))

	other := w.busy()
	w.kill(w.start(other), &other, 100)

	w.requireClean(surviving.Wait())
	w.check()
}
