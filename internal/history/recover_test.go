package history_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/cluster"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/history"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// lake is a whole cluster of one shard, whose coordination a test throws away.
type lake struct {
	*world
	id cluster.Identity
	// ends is where the table of every stream ends.
	ends map[base.Partition]base.Offset
}

func (l *lake) bootstrap() (cluster.Identity, error) {
	return cluster.Bootstrap{
		Coordination: l.coord, Objects: l.objects, Shards: 1, FoldVersion: commitrecord.FoldVersion,
		Clock: l.clock, Entropy: rand.Reader, Logger: slog.New(slog.DiscardHandler),
	}.Run(l.t.Context())
}

func newLake(t *testing.T) *lake {
	t.Helper()
	w := newWorld(t)
	l := &lake{world: w}
	l.lose()
	id, err := l.bootstrap()
	require.NoError(t, err)
	l.id = id
	return l
}

// lose throws the coordination store away and takes an empty one.
func (l *lake) lose() {
	l.server = mem.NewServer(l.clock)
	l.coord = l.server.Open("instance")
}

func (l *lake) shardLog() coord.CommitLog {
	l.t.Helper()
	log, err := l.coord.Log(l.t.Context(), base.Shard(0).String())
	require.NoError(l.t, err)
	return log
}

func (l *lake) shardLoader() history.Loader {
	loader := l.loader()
	loader.Cluster, loader.Shard = l.id.Cluster, 0
	return loader
}

func (l *lake) open() *shard.View {
	l.t.Helper()
	view, err := shard.OpenView(l.t.Context(), shard.ViewOptions{
		Cluster: l.id.Cluster, Shard: 0, Log: l.shardLog(), Checkpoints: l.shardLoader(), Reconnects: l.coord.Reconnects,
		Clock: l.clock, Logger: slog.New(slog.DiscardHandler), Entropy: rand.Reader,
	})
	require.NoError(l.t, err)
	l.t.Cleanup(view.Close)
	return view
}

// archiveAll archives the shard's log, and makes a checkpoint if asked to.
func (l *lake) archiveAll(v *shard.View, checkpoint bool) {
	l.t.Helper()
	archiver := history.NewArchiver(history.ArchiverOptions{
		Cluster: l.id.Cluster, Shard: 0, Log: l.shardLog(), Objects: l.objects, View: v,
		Interval: 1, Clock: l.clock, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(l.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		archiver.Run(ctx)
	}()
	l.until("everything is archived", func() bool {
		stored, err := history.List(l.t.Context(), l.objects, 0)
		return err == nil && stored.Archived() == v.Revision()
	})
	cancel()
	<-ended
	if checkpoint {
		require.NoError(l.t, history.NewCheckpointer(history.CheckpointerOptions{
			Loader: l.shardLoader(), Log: l.shardLog(), View: v, Instance: "me", Clock: l.clock, Interval: 1,
		}).Checkpoint(l.t.Context()))
	}
}

func (l *lake) recovery() history.Recovery {
	return history.Recovery{
		Coordination: l.coord, Objects: l.objects, Instance: "recoverer", Clock: l.clock, Logger: slog.New(slog.DiscardHandler),
		Ends: func(context.Context, *shard.State, *shard.Stream) (map[base.Partition]base.Offset, error) {
			return l.ends, nil
		},
		Progress: func(string) {},
	}
}

// write opens a writer and appends n records to each of two logs of a new stream.
func (l *lake) write(v *shard.View, name string, n uint32) (writer uint64, stream base.StreamID) {
	l.t.Helper()
	publish := func(p commitrecord.Payload) shard.Outcome {
		out, err := v.Publish(l.t.Context(), p)
		require.NoError(l.t, err)
		require.Equal(l.t, shard.Accepted, out.Rejected)
		return out
	}
	stream = publish(&commitpb.StreamCreate{Namespace: "shop", Name: name, Partitions: 2}).Stream
	token := make([]byte, 16)
	_, _ = rand.Read(token)
	writer = uint64(publish(&commitpb.WriterOpen{Token: token, Instance: "machine"}).Writer)
	publish(&commitpb.Append{
		Writer: writer, Seq: 1, Size: 1000, Stream: []uint64{uint64(stream), uint64(stream)}, Partition: []uint32{0, 1},
		Records: []uint32{n, n}, Pos: []uint32{0, 100}, Len: []uint32{100, 100}, MinTime: []int64{0, 0}, MaxTime: []int64{1, 1},
	})
	return writer, stream
}

func TestALostCoordinationStoreIsRebuilt(t *testing.T) {
	for _, checkpoint := range []bool{false, true} {
		t.Run(fmt.Sprint("checkpoint ", checkpoint), func(t *testing.T) {
			l := newLake(t)
			view := l.open()
			writer, stream := l.write(view, "orders", 7)
			l.archiveAll(view, checkpoint)
			archived := view.Revision()
			l.write(view, "lost", 3) // after the last segment
			beyond := base.WALKey(0, base.WriterID(writer), 2)
			require.NoError(t, l.objects.Put(t.Context(), beyond, []byte("an upload whose record was lost")))
			view.Close()
			l.lose()
			_, err := l.bootstrap()
			require.ErrorIs(t, err, base.ErrForeign)
			require.ErrorContains(t, err, "lakestream recover")

			plan, err := l.recovery().Plan(t.Context())
			require.NoError(t, err)
			require.True(t, plan.Whole())
			require.Equal(t, archived, plan.Shards[1].Revision)
			require.Equal(t, []string{beyond}, plan.Shards[1].Beyond)
			_, err = l.bootstrap()
			require.ErrorIs(t, err, base.ErrForeign, "a plan changes nothing")

			report, err := l.recovery().Run(t.Context())
			require.NoError(t, err)
			require.Greater(t, report.Shards[1].First, archived+1000, "no lost revision comes again")
			id, err := l.bootstrap()
			require.NoError(t, err)
			require.Equal(t, l.id, id)
			after := l.open()
			after.Inspect(func(s *shard.State) {
				log, ok := s.Log(base.LogID{Stream: stream, Partition: 1})
				require.True(t, ok)
				require.EqualValues(t, 7, log.Head())
				require.Empty(t, s.Writers(), "every writer is closed")
				require.EqualValues(t, 1, s.Epoch())
				_, found := s.StreamByName(base.StreamName{Namespace: "shop", Name: "lost"})
				require.False(t, found)
			})
			l.write(after, "next", 1)
			l.archiveAll(after, true)
			_, err = l.recovery().Run(t.Context())
			require.ErrorIs(t, err, base.ErrExists, "there is nothing to recover any more")
		})
	}
}

// A second loss is recovered like the first.
func TestARecoveredClusterCanBeRecoveredAgain(t *testing.T) {
	l := newLake(t)
	for round := range uint64(3) {
		view := l.open()
		l.write(view, fmt.Sprint("round-", round), 5)
		l.archiveAll(view, round == 1)
		view.Close()
		l.lose()
		_, err := l.recovery().Run(t.Context())
		require.NoError(t, err)
		l.open().Inspect(func(s *shard.State) {
			require.Equal(t, round+1, s.Epoch())
			require.Len(t, s.Streams(), int(round)+1) //nolint:gosec // small
		})
	}
}

// What cannot be read of the archive had revisions too, which a new log must not give
// again: its own archive begins after them.
func TestARecoveredLogBeginsBeyondWhatCannotBeRead(t *testing.T) {
	const far = 1 << 30
	for name, key := range map[string]string{
		"segment":    base.SegmentKey(0, far-10, far),
		"checkpoint": base.CheckpointKey(0, far, "someone"),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t)
			view := l.open()
			l.write(view, "orders", 7)
			l.archiveAll(view, true)
			view.Close()
			require.NoError(t, l.objects.Put(t.Context(), key, []byte("damaged")))
			l.lose()
			report, err := l.recovery().Run(t.Context())
			require.NoError(t, err)
			for _, s := range report.Shards {
				if s.Shard == 0 {
					require.Greater(t, s.First, base.Revision(far))
				}
			}
			again := l.open()
			l.write(again, "events", 3)
			l.archiveAll(again, true)
		})
	}
}

// Wherever a recovery is cut short, the next attempt finishes it, and no instance
// opens the cluster before.
// A log that was made anew leaves revisions out, which only its first checkpoint
// bridges. One object alone would be all that the cluster hangs on.
func TestARecoveredClusterOutlivesALostCheckpoint(t *testing.T) {
	l := newLake(t)
	v := l.open()
	l.write(v, "orders", 7)
	l.archiveAll(v, true)
	v.Close()
	l.lose()
	_, err := l.recovery().Run(t.Context())
	require.NoError(t, err)
	p, _, err := history.ReadPointer(t.Context(), l.coord.Documents(), 0)
	require.NoError(t, err)
	require.NotEqual(t, p.Current.Key, p.Previous.Key)
	require.NoError(t, l.objects.Delete(t.Context(), p.Current.Key))
	v = l.open()
	require.Equal(t, p.Current.Revision, v.Revision())
	l.archiveAll(v, false)
	v.Close()
	l.lose()
	_, err = l.recovery().Run(t.Context())
	require.NoError(t, err)
	l.open().Inspect(func(s *shard.State) { require.Len(t, s.Streams(), 1) })
}

func TestARecoveryThatIsCutShortIsFinished(t *testing.T) {
	failed := 0
	for cut := 1; cut <= 15; cut++ {
		l := newLake(t)
		view := l.open()
		_, stream := l.write(view, "orders", 7)
		l.archiveAll(view, true)
		view.Close()
		l.lose()
		l.ends = map[base.Partition]base.Offset{1: 9}
		calls := 0
		whole := l.coord
		l.coord = coord.NewFaulty(whole, func(coord.Call) coord.Fault {
			if calls++; calls != cut {
				return coord.Fault{}
			}
			return coord.Fault{Before: base.ErrUnavailable}
		})
		_, err := l.recovery().Run(t.Context())
		l.coord = whole
		if err == nil {
			continue // it was over before, or got around it
		}
		failed++
		_, err = l.bootstrap()
		require.Error(t, err, "cut at call %d", cut)
		report, err := l.recovery().Run(t.Context())
		require.NoError(t, err, "cut at call %d", cut)
		require.Len(t, report.Ahead, 1)
		_, err = l.bootstrap()
		require.NoError(t, err)
		l.open().Inspect(func(s *shard.State) {
			require.EqualValues(t, 1, s.Epoch(), "cut at call %d", cut)
			log, ok := s.Log(base.LogID{Stream: stream, Partition: 1})
			require.True(t, ok)
			require.NotEmpty(t, log.Fence())
		})
	}
	require.GreaterOrEqual(t, failed, 6)
}

// No offset that a table holds is given to another record.
func TestALogWhoseTableIsAheadIsFencedAndNamed(t *testing.T) {
	l := newLake(t)
	view := l.open()
	_, stream := l.write(view, "orders", 7)
	l.archiveAll(view, false)
	view.Close()
	l.lose()
	l.ends = map[base.Partition]base.Offset{0: 7, 1: 12}
	report, err := l.recovery().Run(t.Context())
	require.NoError(t, err)
	require.False(t, report.Whole())
	require.Equal(t, []history.Ahead{{
		Stream: base.StreamName{Namespace: "shop", Name: "orders"}, Log: base.LogID{Stream: stream, Partition: 1}, Head: 7, End: 12,
	}}, report.Ahead)
	l.open().Inspect(func(s *shard.State) {
		for partition, fenced := range map[base.Partition]bool{0: false, 1: true} {
			log, _ := s.Log(base.LogID{Stream: stream, Partition: partition})
			require.Equal(t, fenced, log.Fence() != "")
		}
	})
}

func TestAShardWithoutAnyHistoryIsLostAndNothingIsChanged(t *testing.T) {
	l := newLake(t)
	view := l.open()
	l.write(view, "orders", 7)
	require.NoError(t, l.objects.Put(t.Context(), base.WALKey(0, 3, 1), []byte("data")))
	view.Close()
	l.lose()
	report, err := l.recovery().Run(t.Context())
	require.ErrorIs(t, err, history.ErrIncomplete)
	require.True(t, report.Shards[1].Lost)
	require.False(t, report.Whole())
	_, err = l.bootstrap()
	require.ErrorIs(t, err, base.ErrForeign)
}

// An instance that lived through the loss must not go on as if nothing had happened.
func TestAnInstanceFromBeforeTheRecoveryStops(t *testing.T) {
	l := newLake(t)
	view := l.open()
	l.write(view, "orders", 7)
	l.archiveAll(view, true)
	sn := view.Snapshot()
	view.Close()
	l.lose()
	_, err := l.recovery().Run(t.Context())
	require.NoError(t, err)
	after, err := l.shardLoader().Load(t.Context())
	require.NoError(t, err)
	old := shard.NewFollowerAt(sn)
	require.ErrorIs(t, old.Jump(after), base.ErrCorrupt)
	require.ErrorContains(t, old.Err(), "restart this instance")
}
