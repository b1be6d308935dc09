package outage_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord/natskv"
	"github.com/lakestream-go/lakestream/internal/coord/natskv/natstest"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	bucket  = "lake-s00"
	orders  = base.StreamID(2)
	enough  = 15 // appends that show that they go on
	waiting = 90 * time.Second
)

// instance is one process: its connection and its view of the shard.
type instance struct {
	store *natskv.Store
	view  *shard.View
}

// join opens an instance whose client knows these servers.
func join(t *testing.T, urls ...string) *instance {
	t.Helper()
	store, err := natskv.Open(t.Context(), natskv.External{
		Options: natskv.Options{Prefix: "lake", Timeout: 2 * time.Second}, URLs: urls,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close(context.WithoutCancel(t.Context()))) })
	log, err := store.Log(t.Context(), "s00")
	require.NoError(t, err)
	view, err := shard.OpenView(t.Context(), shard.ViewOptions{
		Cluster: shardtest.Cluster, Shard: 0, Log: log, Reconnects: store.Reconnects,
		Clock: base.SystemClock{}, Logger: slog.New(slog.DiscardHandler), Entropy: rand.Reader,
	})
	require.NoError(t, err)
	t.Cleanup(view.Close)
	return &instance{store: store, view: view}
}

// appender appends as a writer does: one record after another, each acknowledged
// with its offsets. When its session is lost it opens another and leaves alone what
// it does not know the outcome of.
type appender struct {
	*instance

	mu    sync.Mutex
	acked map[position]int // guarded by mu; the first offset that each was told
}

// position is what names an append for good.
type position struct {
	writer base.WriterID
	seq    base.Seq
}

func (a *appender) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.acked)
}

func (a *appender) run(ctx context.Context) {
	for ctx.Err() == nil {
		session, err := shard.OpenSession(ctx, a.view, "machine", rand.Reader)
		for err == nil {
			err = a.append(ctx, session)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (a *appender) append(ctx context.Context, s *shard.Session) error {
	at := position{s.Writer(), s.Next()}
	out, err := s.Publish(ctx, &commitpb.Append{
		Writer: uint64(at.writer), Seq: uint64(at.seq), Size: 1000, Stream: []uint64{uint64(orders)},
		Partition: []uint32{0}, Records: []uint32{3}, Pos: []uint32{64}, Len: []uint32{100}, MinTime: []int64{0}, MaxTime: []int64{1},
	})
	if err != nil {
		return err
	}
	if !out.OK() || len(out.Logs) != 1 {
		return fmt.Errorf("append %v was rejected: %v", at, out.Rejected)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.acked[at] = int(out.Logs[0].Base)
	return nil
}

// scene is a cluster with two writers and a reader.
type scene struct {
	t       *testing.T
	servers *natstest.Cluster
	writers []*appender
	reader  *instance
}

// stage starts the servers; the reader's client begins at server at, the first
// follower of the log.
func stage(t *testing.T) (s *scene, at int) {
	t.Helper()
	s = &scene{t: t, servers: natstest.Start(t)}
	first := join(t, s.servers.URLs()...)
	for _, record := range []commitrecord.Payload{
		&commitpb.ClusterCreate{Shards: 4, FoldVersion: commitrecord.FoldVersion},
		&commitpb.StreamCreate{Namespace: "shop", Name: "orders", Partitions: 1},
	} {
		out, err := first.view.Publish(t.Context(), record)
		require.NoError(t, err)
		require.True(t, out.OK())
	}
	at = s.servers.Follower(t, bucket)
	s.reader = join(t, s.servers.URL(at))
	leader := s.servers.Leader(t, bucket)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 2 {
		a := &appender{instance: join(t, s.servers.URL(leader)), acked: make(map[position]int)}
		s.writers = append(s.writers, a)
		running.Go(func() { a.run(ctx) })
	}
	t.Cleanup(func() { stop(); running.Wait() })
	s.goOn()
	return s, at
}

// goOn requires that every writer appends more than it has.
func (s *scene) goOn() {
	s.t.Helper()
	s.progress(s.writers...)
}

func (s *scene) progress(writers ...*appender) {
	s.t.Helper()
	for i, a := range writers {
		before := a.count()
		require.Eventually(s.t, func() bool { return a.count() >= before+enough }, waiting, 10*time.Millisecond,
			"writer %d does not go on: %v", i, a.view.Err())
	}
}

// settle requires that the reader holds what each writer was acknowledged, each
// append once and where it was told to be.
func (s *scene) settle() {
	s.t.Helper()
	var last base.Revision
	for _, a := range s.writers {
		last = max(last, a.view.Revision())
	}
	acked := map[position]int{}
	for _, a := range s.writers {
		a.mu.Lock()
		maps.Copy(acked, a.acked)
		a.mu.Unlock()
	}
	require.Eventually(s.t, func() bool { return s.reader.view.Revision() >= last }, waiting, 10*time.Millisecond,
		"the reader stays at revision %d of %d: %v", s.reader.view.Revision(), last, s.reader.view.Err())
	found := map[position]int{}
	s.reader.view.Inspect(func(state *shard.State) {
		log, ok := state.Log(base.LogID{Stream: orders})
		require.True(s.t, ok)
		next := base.Offset(0)
		for _, e := range state.Entries(log, 0, 1<<20) {
			require.Equal(s.t, next, e.Range.Start, "offsets are dense")
			at := position{e.Writer, e.Seq}
			require.NotContains(s.t, found, at, "appended twice")
			found[at] = int(next)
			next = e.Range.End
		}
	})
	for at, offset := range acked {
		got, ok := found[at]
		require.True(s.t, ok, "acknowledged append %v is lost", at)
		assert.Equal(s.t, offset, got)
	}
}

func TestTheLeaderStops(t *testing.T) {
	s, _ := stage(t)
	leader := s.servers.Leader(t, bucket)
	s.servers.Stop(leader)
	s.goOn()
	s.settle()
	s.servers.Restart(t, leader)
	s.goOn()
	s.settle()
}

// The server that feeds the reader's watch goes away.
func TestTheServerOfAWatchStops(t *testing.T) {
	s, at := stage(t)
	s.servers.Stop(at)
	s.goOn()
	s.settle()
	s.servers.Restart(t, at)
	s.goOn()
	s.settle()
}

func TestServersAreRestartedOneAfterAnother(t *testing.T) {
	s, _ := stage(t)
	for _, i := range s.servers.Members() {
		s.servers.Stop(i)
		s.goOn()
		s.servers.Restart(t, i)
	}
	s.goOn()
	s.settle()
}

func TestAllServersAreDownAndUp(t *testing.T) {
	s, _ := stage(t)
	for _, i := range s.servers.Members() {
		s.servers.Stop(i)
	}
	s.servers.RestartAll(t)
	s.goOn()
	s.settle()
}

// A follower that is cut off from its peers keeps its clients and knows nothing new.
// A reader there moves to another server, or catches up at the latest when it heals;
// writers elsewhere go on meanwhile.
func TestAFollowerIsCutOff(t *testing.T) {
	s, at := stage(t)
	s.servers.Isolate(at)
	s.goOn()
	s.settle()
	s.servers.Heal(at)
	s.goOn()
	s.settle()
}

// A leader that is cut off can acknowledge nothing; its clients find the next one.
func TestTheLeaderIsCutOff(t *testing.T) {
	s, _ := stage(t)
	leader := s.servers.Leader(t, bucket)
	s.servers.Isolate(leader)
	s.goOn()
	s.settle()
	s.servers.Heal(leader)
	s.goOn()
	s.settle()
}
