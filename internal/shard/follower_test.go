package shard_test

import (
	"context"
	"errors"
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

// follow returns a follower of ClusterCreate, a stream (id 2) and a writer (id 3).
func follow(t *testing.T) *shard.Follower {
	t.Helper()
	f := shard.NewFollower(shardtest.Cluster, testShard)
	for _, p := range []commitrecord.Payload{
		&commitpb.ClusterCreate{Shards: 4, FoldVersion: commitrecord.FoldVersion},
		&commitpb.StreamCreate{Namespace: "shop", Name: "orders", Partitions: 2},
		open('a'),
	} {
		deliver(t, f, p)
	}
	return f
}

// deliver applies a payload as a publisher that saw all of f would have put it.
func deliver(t *testing.T, f *shard.Follower, p commitrecord.Payload) {
	t.Helper()
	require.NoError(t, f.Apply(next(t, f, f.Envelope(commitrecord.RequestID{}), p)))
}

func next(t *testing.T, f *shard.Follower, env commitrecord.Envelope, p commitrecord.Payload) coord.Entry {
	t.Helper()
	data, err := commitrecord.Encode(env, p)
	require.NoError(t, err)
	return coord.Entry{Revision: f.Revision() + 1, Time: 1, Data: data}
}

func TestARecordWhosePublisherSawAnotherHistoryStopsTheFollower(t *testing.T) {
	for name, spoil := range map[string]func(*commitrecord.Envelope){
		"another hash at the same revision": func(e *commitrecord.Envelope) { e.SeenHash[0] ^= 1 },
		"another hash long ago":             func(e *commitrecord.Envelope) { e.SeenRevision, e.SeenHash = 1, commitrecord.HashPrefix{9} },
		"a hash before the first record":    func(e *commitrecord.Envelope) { e.SeenRevision, e.SeenHash = 0, commitrecord.HashPrefix{9} },
		"a revision of its own":             func(e *commitrecord.Envelope) { e.SeenRevision++ },
		"the end of time":                   func(e *commitrecord.Envelope) { e.SeenRevision = 1<<64 - 1 },
	} {
		f := follow(t)
		env := f.Envelope(commitrecord.RequestID{})
		spoil(&env)
		err := f.Apply(next(t, f, env, open('b')))
		require.ErrorIs(t, err, base.ErrCorrupt, name)
		require.Equal(t, err, f.Err())
		require.EqualValues(t, 3, f.Revision(), "the record is not folded")
		require.Equal(t, err, f.Apply(coord.Entry{Revision: 4}), "and none after it")
	}
}

func TestAPublisherMayBeBehind(t *testing.T) {
	f := follow(t)
	behind := f.Envelope(commitrecord.RequestID{})
	for range 5000 {
		require.NoError(t, f.Apply(next(t, f, behind, &commitpb.FoldVersion{})))
	}
	require.EqualValues(t, 5003, f.Revision())
	// Beyond the ring nothing can be compared, also not wrongly.
	behind.SeenHash[0] ^= 1
	require.NoError(t, f.Apply(next(t, f, behind, &commitpb.FoldVersion{})))
}

// Any way in which a store may deliver a history gives the same state, as long as
// nothing is left out or changed.
func TestDeliveryInPiecesWithOverlapsFoldsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := shardtest.Draw(t, testShard, 30)
		plain, pieces := shard.NewFollower(shardtest.Cluster, testShard), shard.NewFollower(shardtest.Cluster, testShard)
		for _, step := range steps {
			require.NoError(t, plain.Apply(step.Entry))
		}
		for at := 0; at < len(steps); at = int(pieces.Revision()) { //nolint:gosec // small
			from := rapid.IntRange(max(0, at-5), min(len(steps)-1, at+3)).Draw(t, "from")
			to := rapid.IntRange(from+1, len(steps)).Draw(t, "to")
			for _, step := range steps[from:to] {
				if err := pieces.Apply(step.Entry); err != nil {
					require.ErrorIs(t, err, shard.ErrGap)
					require.Greater(t, from, at)
					require.NoError(t, pieces.Err(), "a gap does no harm")
					break
				}
			}
		}
		plain.Inspect(func(a *shard.State) {
			pieces.Inspect(func(b *shard.State) {
				require.Equal(t, a.Hash(), b.Hash())
				require.Equal(t, a.ChainHash(), b.ChainHash())
			})
		})
	})
}

func TestSubscribersHearOfTheirRecordsOnly(t *testing.T) {
	f := follow(t)
	var seqs []base.Seq
	var requests int
	request := commitrecord.RequestID{7}
	f.OnWriter(writer, func(out shard.Outcome) { seqs = append(seqs, out.Seq) })
	f.OnRequest(request, func(out shard.Outcome) {
		requests++
		require.True(t, out.OK())
	})
	deliver(t, f, appendOf(1, 0, 1))
	deliver(t, f, open('b'))
	for range 2 {
		require.NoError(t, f.Apply(next(t, f, f.Envelope(request), stream("clicks"))))
	}
	deliver(t, f, appendOf(2, 0, 1))
	require.Equal(t, []base.Seq{1, 2}, seqs)
	require.Equal(t, 1, requests, "the second copy is nobody's business")
	f.OnWriter(writer, nil)
	deliver(t, f, appendOf(3, 0, 1))
	require.Len(t, seqs, 2)
}

func TestAReaderWakesWhenItsLogGrowsAndForNothingElse(t *testing.T) {
	f := follow(t)
	log := base.LogID{Stream: orders, Partition: 1}
	woken := make(chan error, 1)
	go func() { woken <- f.WaitHead(t.Context(), log, 1) }()
	deliver(t, f, appendOf(1, 0, 5))
	deliver(t, f, appendOf(2, 1, 1))
	require.Empty(t, woken, "the head is at 1, not beyond it")
	deliver(t, f, appendOf(3, 1, 1))
	require.NoError(t, <-woken)
	require.NoError(t, f.WaitHead(t.Context(), log, 1), "no wait where the head is beyond already")
	require.ErrorIs(t, f.WaitHead(t.Context(), base.LogID{Stream: orders, Partition: 9}, 0), base.ErrNotFound)
}

func TestWaitsEndWithTheirContextAndWithTheFollower(t *testing.T) {
	f := follow(t)
	log := base.LogID{Stream: orders}
	waits := map[string]func(context.Context) error{
		"head":  func(ctx context.Context) error { return f.WaitHead(ctx, log, 0) },
		"until": func(ctx context.Context) error { return f.WaitUntil(ctx, func(*shard.State) bool { return false }) },
	}
	for name, wait := range waits {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- wait(ctx) }()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled, name)
	}
	stopped := errors.New("stopped for a test")
	ended := make(chan error, 2*len(waits))
	started := make(chan struct{}, len(waits))
	for _, wait := range waits {
		go func() {
			started <- struct{}{}
			ended <- wait(t.Context())
		}()
	}
	for range waits {
		<-started
	}
	f.Stop(stopped)
	f.Stop(errors.New("a later reason"))
	for range waits {
		require.ErrorIs(t, <-ended, stopped, "the first reason stays")
	}
}

func TestChangedClosesWithTheNextRecord(t *testing.T) {
	f := follow(t)
	changed := f.Changed()
	select {
	case <-changed:
		require.FailNow(t, "nothing was applied")
	default:
	}
	deliver(t, f, open('b'))
	<-changed
}
