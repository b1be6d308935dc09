package log

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// foldedShard is a followed shard whose records a test puts one by one.
type foldedShard struct {
	t        *testing.T
	follower *shard.Follower
	store    blob.Store
	revision base.Revision
	now      base.Millis
	all      []recordbatch.Positioned
	log      base.LogID
	writer   base.WriterID
	seq      base.Seq
}

func newFoldedShard(t *testing.T) *foldedShard {
	t.Helper()
	store, err := blob.Open(t.Context(), "mem://", blob.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	s := &foldedShard{t: t, follower: shard.NewFollower(testCluster, testShard), store: store, now: 1000}
	s.put(&commitpb.ClusterCreate{Shards: 4, FoldVersion: commitrecord.FoldVersion})
	s.log = base.LogID{Stream: base.StreamID(s.put(&commitpb.StreamCreate{Namespace: "n", Name: "s", Partitions: 2})), Partition: 1}
	s.writer = base.WriterID(s.put(&commitpb.WriterOpen{Token: []byte("0123456789abcdef"), Instance: "test"}))
	return s
}

func (s *foldedShard) put(payload commitrecord.Payload) base.Revision {
	s.t.Helper()
	s.revision++
	s.now += 5
	data, err := commitrecord.Encode(s.follower.Envelope(commitrecord.RequestID{}), payload)
	require.NoError(s.t, err)
	require.NoError(s.t, s.follower.Apply(coord.Entry{Revision: s.revision, Time: s.now, Data: data}))
	return s.revision
}

func (s *foldedShard) append(n int) {
	s.t.Helper()
	s.seq++
	added := records(len(s.all), n)
	block := recordbatch.AppendBlock(make([]byte, 64), slices.Values(runsOf(added)), recordbatch.Zstd)
	require.NoError(s.t, s.store.Put(s.t.Context(), base.WALKey(testShard, s.writer, s.seq), block))
	revision := s.put(&commitpb.Append{
		Writer: uint64(s.writer), Seq: uint64(s.seq), Size: uint64(len(block)),
		Stream: []uint64{uint64(s.log.Stream)}, Partition: []uint32{1}, Records: []uint32{uint32(n)}, //nolint:gosec // small
		Pos: []uint32{64}, Len: []uint32{uint32(len(block) - 64)}, MinTime: []int64{0}, MaxTime: []int64{0}, //nolint:gosec // small
	})
	for i := range added {
		s.all = append(s.all, recordbatch.Positioned{
			Record: added[i], Offset: base.Offset(len(s.all)), Revision: revision, AppendTime: s.now,
		})
	}
}

func (s *foldedShard) compact(start, end base.Offset) {
	s.t.Helper()
	s.seq++
	entry := shard.Entry{
		Log: s.log, Range: base.OffsetRange{Start: start, End: end}, Storage: shard.Compacted,
		Shard: testShard, Writer: s.writer, Seq: s.seq,
	}
	object := compactedObject(s.t, entry, s.all[start:end])
	require.NoError(s.t, s.store.Put(s.t.Context(), entry.Key(), object))
	s.put(&commitpb.Compact{
		Writer: uint64(s.writer), Seq: uint64(s.seq), ReadRevision: uint64(s.revision),
		Stream: []uint64{uint64(s.log.Stream)}, Partition: []uint32{1},
		Start: []uint64{uint64(start)}, End: []uint64{uint64(end)}, Size: []uint64{uint64(len(object))}, //nolint:gosec // small
	})
}

func TestALogIsReadThroughItsFoldedIndex(t *testing.T) {
	s := newFoldedShard(t)
	fetcher, err := NewFetcher(s.store, 0)
	require.NoError(t, err)
	defer fetcher.Close()
	index := NewIndex(s.follower)
	require.Equal(t, testCluster, index.Cluster())
	for range 6 {
		s.append(15)
	}
	reader := NewReader(fetcher, index, s.log)
	check := func() {
		t.Helper()
		got, err := readAll(t.Context(), reader, 0, Limits{MaxMessages: 7})
		require.NoError(t, err)
		require.Equal(t, s.all, got)
		for at := s.all[0].AppendTime - 1; at <= s.now+1; at++ {
			want := base.Offset(len(s.all))
			if i := slices.IndexFunc(s.all, func(p recordbatch.Positioned) bool { return p.AppendTime >= at }); i >= 0 {
				want = base.Offset(i)
			}
			offset, err := reader.OffsetOfTime(t.Context(), at)
			require.NoError(t, err)
			require.Equal(t, want, offset)
		}
	}
	check()
	s.compact(0, 45)
	check()
	s.append(4)
	s.compact(45, 75)
	check()
	s.compact(0, 75)
	check()
}

func TestTheIndexOfAFollowerWakesATailAndReportsItsEnd(t *testing.T) {
	s := newFoldedShard(t)
	fetcher, err := NewFetcher(s.store, 0)
	require.NoError(t, err)
	defer fetcher.Close()
	index := NewIndex(s.follower)

	got := make(chan Batch)
	go func() {
		batch, _ := NewReader(fetcher, index, s.log).Tail(t.Context(), 0, Limits{})
		got <- batch
	}()
	s.append(3)
	require.Equal(t, s.all, (<-got).Records)

	_, err = index.Lookup(base.LogID{Stream: 1000}, 0, 1)
	require.ErrorIs(t, err, base.ErrNotFound)

	stopped := make(chan error)
	go func() {
		_, err := NewReader(fetcher, index, s.log).Tail(context.WithoutCancel(t.Context()), 3, Limits{})
		stopped <- err
	}()
	s.follower.Stop(base.ErrClosed)
	require.ErrorIs(t, <-stopped, base.ErrClosed)
	_, err = NewReader(fetcher, index, s.log).Read(t.Context(), 0, Limits{})
	require.ErrorIs(t, err, base.ErrClosed, "a view that stopped fails the read")
	_, _, err = index.FindTime(s.log, 0)
	require.ErrorIs(t, err, base.ErrClosed)
}
