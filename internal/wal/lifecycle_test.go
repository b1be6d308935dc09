package wal_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/wal"
)

func TestAWriterThatNeverWroteLeavesNoTrace(t *testing.T) {
	r := newRig(t, faults{}, nil)
	before := r.view.Revision()
	require.NoError(t, r.writer.Fence(t.Context()), "nothing to fence")
	require.NoError(t, r.writer.Flush(t.Context()))
	r.close()
	require.Equal(t, before, r.view.Revision())
}

func TestOneWriterServesManyAppends(t *testing.T) {
	r := newRig(t, faults{}, nil)
	for range 5 {
		r.append(0, "v")
	}
	require.EqualValues(t, 1, r.writer.Stats().Writers)
	r.view.Inspect(func(s *shard.State) {
		require.Len(t, s.Writers(), 1)
		require.Equal(t, "test", s.Writers()[0].Instance)
		require.EqualValues(t, 6, s.Writers()[0].Next)
	})
}

func TestAfterItsOwnFenceTheWriterGoesOn(t *testing.T) {
	r := newRig(t, faults{}, nil)
	r.append(0, "a")
	require.NoError(t, r.writer.Fence(t.Context()))
	r.view.Inspect(func(s *shard.State) { require.Empty(t, s.Writers()) })
	require.EqualValues(t, 1, r.append(0, "b"))
	require.EqualValues(t, 2, r.writer.Stats().Writers)
	require.Equal(t, []string{"a", "b"}, r.read(0))
}

func TestAFenceThatCannotBePublishedIsReported(t *testing.T) {
	var down atomic.Bool
	r := newRig(t, faults{coord: func(c coord.Call) coord.Fault {
		if c.Op == coord.OpPut && down.Load() {
			return coord.Fault{Before: errDown}
		}
		return coord.Fault{}
	}}, nil)
	r.append(0, "a")
	down.Store(true)
	require.ErrorIs(t, r.writer.Fence(t.Context()), base.ErrUnavailable)
	require.ErrorIs(t, r.writer.Close(t.Context()), base.ErrUnavailable, "closed all the same")
	require.ErrorIs(t, appendOne(t, r, "late"), base.ErrClosed)
}

func TestFlushGivesUpWithItsContext(t *testing.T) {
	f, release := stuck()
	r := newRig(t, f, nil)
	done := make(chan error, 1)
	go func() { done <- appendOne(t, r, "a") }()
	eventually(t, "it is in flight", func() bool { return r.writer.Stats().InFlight == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, r.writer.Flush(ctx), context.Canceled)
	release()
	require.NoError(t, <-done, "the append is not harmed")
}

func TestTheWriterOpensOnceTokensCanBeDrawn(t *testing.T) {
	var reads atomic.Int64
	r := newRig(t, faults{}, func(o *wal.Options) {
		fastRetries(o)
		entropy := o.Entropy
		o.Entropy = readerFunc(func(p []byte) (int, error) {
			if reads.Add(1) <= 2 {
				return 0, errors.New("no entropy yet")
			}
			return entropy.Read(p)
		})
	})
	r.append(0, "a")
	require.EqualValues(t, 2, r.writer.Stats().CommitErrors)
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

var _ io.Reader = readerFunc(nil)

func TestACommittedAppendIsUnknownWhenTheViewShowsNothing(t *testing.T) {
	gate := make(chan struct{})
	defer close(gate)
	var watching atomic.Bool
	var commits atomic.Int64
	r := newRig(t, faults{coord: func(c coord.Call) coord.Fault {
		if c.Op == coord.OpDeliver && watching.Load() {
			return coord.Fault{Hold: gate} // silence
		}
		return coord.Fault{}
	}}, func(o *wal.Options) {
		o.CrashPoint = func(name string) {
			if name == wal.CrashAfterCommit {
				commits.Add(1)
			}
		}
	})
	r.append(0, "a")
	watching.Store(true)
	result := make(chan error, 1)
	go func() { result <- appendOne(t, r, "b") }()
	eventually(t, "its record was put", func() bool { return commits.Load() == 2 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, r.writer.Close(ctx), context.Canceled)
	err := <-result
	require.ErrorIs(t, err, base.ErrClosed)
	require.ErrorIs(t, err, base.ErrUnknown)
}

func TestStatsAddUp(t *testing.T) {
	r := newRig(t, firstPuts(2, blob.Fault{Before: errDown}), func(o *wal.Options) {
		fastRetries(o)
		o.Compression = recordbatch.Zstd
	})
	r.append(0, "a", "b")
	r.append(1, "c")
	stats := r.writer.Stats()
	require.EqualValues(t, 2, stats.Appends)
	require.EqualValues(t, 3, stats.Records)
	require.EqualValues(t, 2, stats.Objects)
	require.EqualValues(t, 2, stats.PutErrors)
	require.Zero(t, stats.CommitErrors)
	require.Positive(t, stats.PutTime)
	require.Positive(t, stats.CommitTime)
	require.EqualValues(t, 2, stats.Flushes["idle"])
	require.Empty(t, stats.Blocked)
	var sizes int64
	objects, err := r.store.List(t.Context(), base.WALPrefix, "", 10)
	require.NoError(t, err)
	for _, o := range objects {
		sizes += o.Size
	}
	require.Equal(t, sizes, stats.ObjectBytes)
}
