package shard_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

// ahead returns a follower that went on from where f is, with these records.
func ahead(t *testing.T, f *shard.Follower, records ...commitrecord.Payload) *shard.Follower {
	t.Helper()
	other := shard.NewFollowerAt(f.Snapshot())
	for _, p := range records {
		deliver(t, other, p)
	}
	return other
}

func TestAFollowerGoesOnFromASnapshot(t *testing.T) {
	f := follow(t)
	other := ahead(t, f, appendOf(1, 0, 5), appendOf(2, 1, 3))
	entry := next(t, other, other.Envelope(commitrecord.RequestID{}), appendOf(3, 0, 1))

	var heads []base.Offset
	head := func(f *shard.Follower) (head base.Offset) {
		f.Inspect(func(s *shard.State) {
			l, _ := s.Log(base.LogID{Stream: orders})
			head = l.Head()
		})
		return head
	}
	require.NoError(t, f.Jump(other.Snapshot()))
	heads = append(heads, head(f))
	require.NoError(t, f.Jump(follow(t).Snapshot()), "an older snapshot changes nothing")
	heads = append(heads, head(f))
	require.NoError(t, f.Apply(entry))
	heads = append(heads, head(f))
	require.Equal(t, []base.Offset{5, 5, 6}, heads)
	require.EqualValues(t, 5, f.Jumped())
}

// The entry where a checkpoint ends is delivered again where the log still holds
// it: another one in its place is a fork.
func TestTheOverlapWithACheckpointIsCompared(t *testing.T) {
	f := follow(t)
	entry := next(t, f, f.Envelope(commitrecord.RequestID{}), open('b'))
	require.NoError(t, f.Apply(entry))
	data, err := f.Snapshot().Encode()
	require.NoError(t, err)
	sn, err := shard.LoadCheckpoint(data, shardtest.Cluster, testShard)
	require.NoError(t, err)

	loaded := shard.NewFollowerAt(sn)
	require.NoError(t, loaded.Apply(entry))
	again, err := loaded.Snapshot().Encode()
	require.NoError(t, err)
	require.Equal(t, data, again)
	entry.Data = append([]byte("x"), entry.Data...)
	require.ErrorIs(t, loaded.Apply(entry), base.ErrCorrupt)
}

// A publisher that was behind when the checkpoint was made cannot be compared; one
// that saw it, or what came after it, is.
func TestHistoryIsComparedFromTheCheckpointOn(t *testing.T) {
	f := follow(t)
	early := f.Envelope(commitrecord.RequestID{})
	deliver(t, f, open('b'))
	for name, try := range map[string]struct {
		spoil func(*commitrecord.Envelope)
		want  error
	}{
		"saw the checkpoint":          {func(*commitrecord.Envelope) {}, nil},
		"was behind":                  {func(e *commitrecord.Envelope) { *e = early }, nil},
		"another checkpoint":          {func(e *commitrecord.Envelope) { e.SeenHash[0] ^= 1 }, base.ErrCorrupt},
		"a revision that never was":   {func(e *commitrecord.Envelope) { e.SeenRevision++ }, base.ErrCorrupt},
		"was behind in another fork?": {func(e *commitrecord.Envelope) { e.SeenRevision, e.SeenHash = 2, commitrecord.HashPrefix{9} }, nil},
	} {
		at := shard.NewFollowerAt(f.Snapshot())
		env := at.Envelope(commitrecord.RequestID{})
		try.spoil(&env)
		require.ErrorIs(t, at.Apply(next(t, at, env, open('c'))), try.want, name)
	}
}

func TestAnInstanceFromBeforeARecoveryStops(t *testing.T) {
	f := follow(t)
	changed := f.Changed()
	require.ErrorIs(t, f.Jump(ahead(t, f, &commitpb.Recovered{Epoch: 1}).Snapshot()), base.ErrCorrupt)
	require.ErrorContains(t, f.Err(), "restart this instance")
	<-changed
	require.ErrorIs(t, f.Jump(follow(t).Snapshot()), base.ErrCorrupt, "for good")
}

func TestEveryoneWhoWaitsIsWokenByAJump(t *testing.T) {
	f := follow(t)
	changed := f.Changed()
	waiting := make(chan error, 1)
	go func() { waiting <- f.WaitHead(t.Context(), base.LogID{Stream: orders}, 4) }()
	require.NoError(t, f.Jump(ahead(t, f, appendOf(1, 0, 5)).Snapshot()))
	<-changed
	require.NoError(t, <-waiting)
}

// recalled returns what a writer's subscriber learns when the follower passes over
// these records.
func recalled(t *testing.T, records ...commitrecord.Payload) shard.Outcome {
	t.Helper()
	f := follow(t)
	var got []shard.Outcome
	f.OnWriter(writer, func(out shard.Outcome) { got = append(got, out) })
	require.NoError(t, f.Jump(ahead(t, f, records...).Snapshot()))
	require.Len(t, got, 1)
	require.True(t, got[0].Recalled)
	require.EqualValues(t, writer, got[0].Writer)
	return got[0]
}

func TestAWriterLearnsWhatTheStateTellsOfWhatWasPassedOver(t *testing.T) {
	both := appendOf(1, 1, 7)
	both.Stream, both.Partition, both.Records = []uint64{orders, orders}, []uint32{1, 0}, []uint32{7, 5}
	both.Pos, both.Len = []uint32{0, 100}, []uint32{100, 100}
	both.MinTime, both.MaxTime = []int64{0, 0}, []int64{1, 1}
	log := func(partition base.Partition) base.LogID { return base.LogID{Stream: orders, Partition: partition} }

	out := recalled(t, appendOf(1, 0, 5))
	require.EqualValues(t, 1, out.Seq)
	require.EqualValues(t, 4, out.Revision)
	require.True(t, out.OK())
	require.Equal(t, []shard.LogOutcome{{Log: log(0), Base: 0, Records: 5}}, out.Logs)

	out = recalled(t, both)
	require.Equal(t, []shard.LogOutcome{{Log: log(0), Base: 0, Records: 5}, {Log: log(1), Base: 0, Records: 7}}, out.Logs)

	out = recalled(t, open('b'))
	require.Zero(t, out.Seq, "nothing of it was taken")
	require.Empty(t, out.Logs)

	out = recalled(t, appendOf(1, 0, 5), compactOf(2, 4, 0, 5))
	require.EqualValues(t, 2, out.Seq)
	require.Empty(t, out.Logs, "compacted: the state no longer tells whose records they are")

	out = recalled(t, both, &commitpb.WriterFence{Writers: []uint64{writer}})
	require.Equal(t, shard.WriterClosed, out.Rejected)
	require.EqualValues(t, 1, out.Seq)
	require.Len(t, out.Logs, 2)

	out = recalled(t, &commitpb.WriterFence{Writers: []uint64{writer}})
	require.Equal(t, shard.WriterClosed, out.Rejected)
	require.Zero(t, out.Seq)
}

// remember notes the newest record of each writer that was taken.
func remember(last map[base.WriterID]shard.Outcome, out shard.Outcome) {
	if out.Seq > 0 && out.Rejected != shard.AlreadyPublished && out.Rejected != shard.WriterClosed {
		last[out.Writer] = out
	}
}

// requireRecalled checks that an outcome says nothing that did not happen.
func requireRecalled(t require.TestingT, want, got shard.Outcome) {
	require.Equal(t, want.Seq, got.Seq)
	bases := make(map[base.LogID]base.Offset)
	for _, l := range want.Logs {
		if l.Rejected == shard.Accepted {
			bases[l.Log] = l.Base
		}
	}
	for _, l := range got.Logs {
		require.Contains(t, bases, l.Log)
		require.Equal(t, bases[l.Log], l.Base)
	}
}

// Whatever was passed over, what is recalled of a writer that is open is what its
// last outcome had said of the logs that are named.
func TestWhatIsRecalledIsWhatHappened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(1, historyLength).Draw(t, "jump from")
		f := shard.NewFollower(shardtest.Cluster, testShard)
		s := shard.NewState(shardtest.Cluster, testShard)
		last := make(map[base.WriterID]shard.Outcome)
		for i, step := range shardtest.Draw(t, testShard, historyLength) {
			if i < at {
				require.NoError(t, f.Apply(step.Entry))
			}
			remember(last, fold(t, s, step))
		}
		for _, w := range s.Writers() {
			f.OnWriter(w.ID, func(out shard.Outcome) { requireRecalled(t, last[w.ID], out) })
		}
		err := f.Jump(shard.Snapshot{State: s})
		if f.Snapshot().State.Epoch() != s.Epoch() {
			require.ErrorIs(t, err, base.ErrCorrupt)
			return
		}
		require.NoError(t, err)
	})
}

// shelf is where a test's views find checkpoints.
type shelf struct {
	data []byte
	err  error
}

func (s *shelf) Load(context.Context) (shard.Snapshot, error) {
	if s.err != nil || s.data == nil {
		return shard.Snapshot{}, s.err
	}
	return shard.LoadCheckpoint(s.data, shardtest.Cluster, testShard)
}

// take makes a checkpoint of what the view shows.
func (s *shelf) take(t *testing.T, v *shard.View) {
	t.Helper()
	data, err := v.Snapshot().Encode()
	require.NoError(t, err)
	s.data = data
}

// shelved opens a view that knows checkpoints.
func (w *world) shelved(s *shelf, log coord.CommitLog) (*shard.View, error) {
	w.t.Helper()
	opts := w.options(log)
	opts.Checkpoints = s
	view, err := shard.OpenView(w.t.Context(), opts)
	if err == nil {
		w.t.Cleanup(view.Close)
	}
	return view, err
}

func (w *world) log() coord.CommitLog {
	w.t.Helper()
	log, err := w.server.Open("instance").Log(w.t.Context(), testShard.String())
	require.NoError(w.t, err)
	return log
}

func TestAViewOpensAtTheCheckpointAndFoldsTheTail(t *testing.T) {
	w, s := newWorld(t), &shelf{}
	first, err := w.shelved(s, w.log())
	require.NoError(t, err)
	for i := range 30 {
		_, err := w.publish(first, fmt.Sprint(i))
		require.NoError(t, err)
		if i == 20 {
			s.take(t, first)
			require.NoError(t, w.log().Purge(t.Context(), first.Revision()))
		}
	}
	second, err := w.shelved(s, w.log())
	require.NoError(t, err)
	revision, state, chain := hashes(first)
	gotRevision, gotState, gotChain := hashes(second)
	require.Equal(t, revision, gotRevision)
	require.Equal(t, state, gotState)
	require.Equal(t, chain, gotChain)
	require.NotZero(t, second.Jumped())
	_, err = w.publish(second, "new")
	require.NoError(t, err)
}

func TestAViewDoesNotOpenWithoutAReadableCheckpoint(t *testing.T) {
	for name, shelved := range map[string]*shelf{
		"of a newer binary":  {err: base.ErrNewerFormat},
		"damaged":            {err: base.ErrCorrupt},
		"behind an outage":   {err: base.ErrUnavailable},
		"none, purged":       {},
		"of another cluster": {err: base.ErrForeign},
	} {
		w := newWorld(t)
		w.server.Stray(testShard.String(), shardtest.Encode(t, stream("a")))
		require.NoError(t, w.log().Purge(t.Context(), 2))
		_, err := w.shelved(shelved, w.log())
		want := shelved.err
		if want == nil {
			want = base.ErrCorrupt
			require.ErrorContains(t, err, "lakestream recover", name)
		}
		require.ErrorIs(t, err, want, name)
	}
}

// held is a log that delivers nothing while it is held.
type held struct {
	coord.CommitLog
	hold atomic.Bool
}

func (h *held) Watch(ctx context.Context, from base.Revision) (coord.Watch, error) {
	if h.hold.Load() {
		return nil, fmt.Errorf("watching: %w", base.ErrUnavailable)
	}
	return h.CommitLog.Watch(ctx, from)
}

// A view that was away while the history went on and was purged comes back from the
// checkpoint, and goes on, without a restart.
func TestAViewBehindThePurgeGoesOnFromTheCheckpoint(t *testing.T) {
	w, s := newWorld(t), &shelf{}
	store := w.server.Open("away")
	log, err := store.Log(t.Context(), testShard.String())
	require.NoError(t, err)
	h := &held{CommitLog: log}
	away, err := w.shelved(s, h)
	require.NoError(t, err)
	other, err := w.shelved(s, w.log())
	require.NoError(t, err)

	h.hold.Store(true)
	store.Interrupt()
	for i := range 5 {
		_, err := w.publish(other, fmt.Sprint(i))
		require.NoError(t, err)
	}
	var passed atomic.Bool
	var outcome error
	go func() { // its outcome will not be seen
		defer passed.Store(true)
		_, outcome = away.Publish(t.Context(), stream("passed-over"))
	}()
	w.until("the record is in the log", func() bool {
		found := false
		other.Inspect(func(s *shard.State) {
			_, found = s.StreamByName(base.StreamName{Namespace: "shop", Name: "passed-over"})
		})
		return found
	})
	_, err = w.publish(other, "later")
	require.NoError(t, err)
	s.take(t, other)
	require.NoError(t, w.log().Purge(t.Context(), other.Revision()))
	require.False(t, passed.Load())

	h.hold.Store(false)
	w.reaches(away, other.Revision())
	w.until("the publisher is told that it is not known", passed.Load)
	require.ErrorIs(t, outcome, base.ErrUnknown)
	_, state, chain := hashes(other)
	_, gotState, gotChain := hashes(away)
	require.Equal(t, state, gotState)
	require.Equal(t, chain, gotChain)
	_, err = w.publish(away, "after")
	require.NoError(t, err)
	require.NoError(t, away.Err())
}
