package wal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/wal"
)

// Behaviour 1.
func TestOffsetsAreDenseAcrossBatches(t *testing.T) {
	r := newRig(t, faults{}, nil)
	require.EqualValues(t, 0, r.append(0, "a", "b", "c"))
	require.EqualValues(t, 3, r.append(0, "d"))
	require.EqualValues(t, 4, r.append(0, "e", "f"))
	require.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, r.read(0))
}

// Behaviours 2 and 3: read compares the size of the log with the sum of its blocks.
func TestInterleavedLogsKeepTheirOwnOrder(t *testing.T) {
	r := newRig(t, faults{}, nil)
	for i := range 10 {
		r.append(base.Partition(i%2), fmt.Sprint(i))
	}
	both := r.batch(0, "x")
	both.Logs = append(both.Logs, r.batch(1, "y", "z").Logs...)
	require.NoError(t, r.writer.Append(t.Context(), both))
	require.EqualValues(t, 5, both.Results[0].Base)
	require.EqualValues(t, 5, both.Results[1].Base)
	require.Equal(t, 2, both.Results[1].Records)
	require.Equal(t, both.Results[0].Revision, both.Results[1].Revision, "one object, one commit")
	require.Equal(t, []string{"0", "2", "4", "6", "8", "x"}, r.read(0))
	require.Equal(t, []string{"1", "3", "5", "7", "9", "y", "z"}, r.read(1))
	require.Empty(t, r.read(2), "an empty log has no records")
}

func TestAppendTimesNeverDecrease(t *testing.T) {
	r := newRig(t, faults{}, nil)
	var last base.Millis
	for range 5 {
		b := r.batch(0, "v")
		require.NoError(t, r.writer.Append(t.Context(), b))
		require.GreaterOrEqual(t, b.Results[0].Time, last)
		last = b.Results[0].Time
	}
}

func TestALogThatIsGoneDoesNotFailTheOthers(t *testing.T) {
	r := newRig(t, faults{}, nil)
	b := r.batch(0, "kept")
	b.Logs = append(b.Logs, r.batch(9, "no such partition").Logs...)
	b.Logs = append(b.Logs, wal.LogRecords{Log: base.LogID{Stream: 999}, Records: b.Logs[0].Records})
	require.NoError(t, r.writer.Append(t.Context(), b))
	require.NoError(t, b.Results[0].Err)
	require.ErrorIs(t, b.Results[1].Err, base.ErrNotFound)
	require.ErrorIs(t, b.Results[2].Err, base.ErrNotFound)
	require.Zero(t, b.Results[2].Records)
	require.Equal(t, []string{"kept"}, r.read(0))
}

func TestARecordOverTheLimitIsLeftOut(t *testing.T) {
	r := newRig(t, faults{}, func(o *wal.Options) { o.MaxRecordBytes = 10 })
	b := r.batch(0, "one", strings.Repeat("x", 11), "ten bytes!", strings.Repeat("y", 50))
	b.Logs = append(b.Logs, r.batch(1, strings.Repeat("z", 11)).Logs...)
	require.NoError(t, r.writer.Append(t.Context(), b))
	require.NoError(t, b.Results[0].Err)
	require.Equal(t, 2, b.Results[0].Records)
	require.Len(t, b.Results[0].Invalid, 2)
	require.Equal(t, 1, b.Results[0].Invalid[0].Index)
	require.Equal(t, 3, b.Results[0].Invalid[1].Index)
	require.ErrorIs(t, b.Results[0].Invalid[0].Err, base.ErrInvalid)
	require.ErrorContains(t, b.Results[0].Invalid[0].Err, "11 bytes, at most 10")
	require.Zero(t, b.Results[1].Records)
	require.Len(t, b.Results[1].Invalid, 1)
	require.Equal(t, []string{"one", "ten bytes!"}, r.read(0))
}

func TestInvalidBatches(t *testing.T) {
	r := newRig(t, faults{}, nil)
	require.ErrorIs(t, r.writer.Append(t.Context(), &wal.Batch{}), base.ErrInvalid)
	many := &wal.Batch{Logs: make([]wal.LogRecords, wal.MaxBlocks+1)}
	require.ErrorIs(t, r.writer.Append(t.Context(), many), base.ErrInvalid)
	empty := &wal.Batch{Logs: []wal.LogRecords{{Log: r.id(0)}}}
	require.NoError(t, r.writer.Append(t.Context(), empty), "no records: nothing to do")
	require.Zero(t, empty.Results[0].Records)
	require.Zero(t, r.writer.Stats().Objects)
}

// Behaviour 15.
func TestALongLingerIsCutShortBySize(t *testing.T) {
	clock := newManual()
	r := newRig(t, faults{}, func(o *wal.Options) {
		o.Clock, o.FlushWhenIdle, o.Linger = clock, false, time.Hour
		o.EagerBytes, o.MaxObjectBytes = 1<<20, 1<<20
	})
	r.append(0, strings.Repeat("x", 1<<20))
	require.EqualValues(t, 1, r.writer.Stats().Flushes["size"])
}

// Behaviour 14.
func TestAnAppendWaitsForCompanyOnlyForTheLingerTime(t *testing.T) {
	clock := newManual()
	r := newRig(t, faults{}, func(o *wal.Options) { o.Clock, o.FlushWhenIdle, o.Linger = clock, false, time.Minute })
	results := make(chan error, 2)
	for i := range 2 {
		go func() { results <- r.writer.Append(t.Context(), r.batch(0, fmt.Sprint(i))) }()
	}
	eventually(t, "both wait", func() bool {
		return clock.waiting(time.Minute) && r.writer.Stats().BufferedBytes >= 2*30
	})
	require.Empty(t, results)
	clock.advance(time.Minute)
	require.NoError(t, <-results)
	require.NoError(t, <-results)
	stats := r.writer.Stats()
	require.EqualValues(t, 1, stats.Objects)
	require.EqualValues(t, 1, stats.Flushes["linger"])
}

// Given many callers that append at once, when few of them are back, then these wait
// for others as long as others come, and all share one object; one that stays alone
// waits a moment.
func TestFewOfManyCallersWaitForTheOthers(t *testing.T) {
	clock := newManual()
	f, release := stuck()
	r := newRig(t, f, func(o *wal.Options) { o.Clock, o.Linger = clock, time.Minute })
	const pause = time.Millisecond
	results := make(chan error, 64)
	start := func(n, waiting int) {
		for range n {
			go func() { results <- r.writer.Append(t.Context(), r.batch(0, "x")) }()
		}
		eventually(t, "they wait", func() bool { return r.writer.Stats().Waiting == waiting })
	}
	finish := func(n int) {
		for range n {
			require.NoError(t, <-results)
		}
	}
	pausing := func() bool { return clock.waiting(pause) }
	start(64, 64)
	release()
	eventually(t, "all are done", func() bool {
		clock.advance(pause) // the last of them may wait for others
		return r.writer.Stats().Waiting == 0
	})
	finish(64)
	before := r.writer.Stats().Objects

	start(16, 16)
	eventually(t, "it pauses", pausing)
	start(16, 32)
	clock.advance(pause)
	finish(32)
	require.Equal(t, before+1, r.writer.Stats().Objects)

	start(1, 1)
	eventually(t, "it pauses", pausing)
	require.Empty(t, results)
	clock.advance(pause)
	finish(1)
	require.Equal(t, before+2, r.writer.Stats().Objects)
}

func TestAnUrgentAppendDoesNotWait(t *testing.T) {
	r := newRig(t, faults{}, func(o *wal.Options) { o.Clock, o.FlushWhenIdle, o.Linger = newManual(), false, time.Hour })
	b := r.batch(0, "now")
	b.Urgent = true
	require.NoError(t, r.writer.Append(t.Context(), b))
	require.EqualValues(t, 1, r.writer.Stats().Flushes["idle"])
}

func TestFlushDoesNotWaitForTheLinger(t *testing.T) {
	r := newRig(t, faults{}, func(o *wal.Options) { o.Clock, o.FlushWhenIdle, o.Linger = newManual(), false, time.Hour })
	done := make(chan error, 1)
	go func() { done <- r.writer.Append(t.Context(), r.batch(0, "a")) }()
	eventually(t, "it waits", func() bool { return r.writer.Stats().BufferedBytes > 0 })
	eventually(t, "it is flushed", func() bool {
		require.NoError(t, r.writer.Flush(t.Context()))
		return len(done) == 1
	})
	require.NoError(t, <-done)
	require.NoError(t, r.writer.Flush(t.Context()), "nothing to flush")
}

// stuck is a store whose puts wait until release is called.
func stuck() (f faults, release func()) {
	gate := make(chan struct{})
	f.blob = func(c blob.Call) blob.Fault {
		if c.Op != blob.OpPut {
			return blob.Fault{}
		}
		return blob.Fault{Wait: func(ctx context.Context) error {
			select {
			case <-gate:
				return nil
			case <-ctx.Done():
				return base.WithClass(base.ErrUnavailable, ctx.Err())
			}
		}}
	}
	return f, sync.OnceFunc(func() { close(gate) })
}

// Behaviours 12 and 13.
func TestAFullBufferPushesBackAndItsAccountIsRestored(t *testing.T) {
	f, release := stuck()
	r := newRig(t, f, func(o *wal.Options) { o.MaxBufferedBytes, o.MaxRecordBytes = 1000, 2000 })
	started := make(chan error, 3)
	large := strings.Repeat("x", 500)
	go func() { started <- r.writer.Append(t.Context(), r.batch(0, large)) }()
	eventually(t, "the first is in", func() bool { return r.writer.Stats().BufferedBytes >= 500 })
	held := r.writer.Stats().BufferedBytes

	// One that does not fit beside it waits, and gives up when its context ends:
	// definitely nothing happened.
	ctx, cancel := context.WithCancel(t.Context())
	go func() { started <- r.writer.Append(ctx, r.batch(0, large)) }()
	cancel()
	err := <-started
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, base.ErrUnknown)
	require.Equal(t, held, r.writer.Stats().BufferedBytes)

	// One larger than the whole buffer waits until it is alone.
	go func() { started <- r.writer.Append(t.Context(), r.batch(0, strings.Repeat("y", 1500))) }()
	release()
	require.NoError(t, <-started)
	require.NoError(t, <-started)
	require.Len(t, r.read(0), 2)
	eventually(t, "all room is free again", func() bool { return r.writer.Stats().BufferedBytes == 0 })
	entries, _ := r.entries(r.id(0))
	require.Len(t, entries, 2, "written alone")
}

func TestAnAppendThatEnteredIsUnknownWhenItsContextEnds(t *testing.T) {
	f, release := stuck()
	r := newRig(t, f, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	result := make(chan error, 1)
	go func() { result <- r.writer.Append(ctx, r.batch(0, "a")) }()
	eventually(t, "it is in flight", func() bool { return r.writer.Stats().InFlight == 1 })
	gone := errors.New("the caller left")
	cancel(gone)
	err := <-result
	require.ErrorIs(t, err, base.ErrUnknown)
	require.ErrorIs(t, err, gone)
	release()
	require.NoError(t, r.writer.Flush(t.Context()))
	require.Equal(t, []string{"a"}, r.read(0), "it landed all the same")
}

// watched is a store that shows what is put.
type watched struct {
	blob.Store
	put func(data []byte)
}

func (s watched) Put(ctx context.Context, key string, data []byte) error {
	s.put(data)
	return s.Store.Put(ctx, key, data)
}

func TestObjectsCanBeWrittenDirectly(t *testing.T) {
	var mu sync.Mutex
	var lengths, addresses []uintptr
	r := newRig(t, faults{}, func(o *wal.Options) {
		o.Alignment = blob.BlockSize
		o.Store = watched{Store: o.Store, put: func(data []byte) {
			mu.Lock()
			defer mu.Unlock()
			lengths = append(lengths, uintptr(len(data)))
			addresses = append(addresses, uintptr(unsafe.Pointer(unsafe.SliceData(data)))) //nolint:gosec // only looked at
		}}
	})
	for _, size := range []int{1, 5000, 900_000, 3} {
		r.append(0, strings.Repeat("x", size))
	}
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, lengths, 4)
	for i := range lengths {
		require.Zero(t, lengths[i]%blob.BlockSize)
		require.Zero(t, addresses[i]%blob.BlockSize)
	}
}

func TestAnAppendUnderAnEndedContextDoesNothing(t *testing.T) {
	r := newRig(t, faults{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := r.writer.Append(ctx, r.batch(0, "a"))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, base.ErrUnknown)
	require.Zero(t, r.writer.Stats().Appends)
	r.append(0, "b")
	require.Equal(t, []string{"b"}, r.read(0))
}

func TestManyCallersShareObjects(t *testing.T) {
	r := newRig(t, faults{}, func(o *wal.Options) { o.Compression = recordbatch.Zstd })
	const callers, each = 32, 40
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			var batch wal.Batch
			for i := range each {
				batch.Logs = append(batch.Logs[:0], r.batch(base.Partition(caller%4), fmt.Sprintf("%d-%d", caller, i)).Logs...)
				if err := r.writer.Append(t.Context(), &batch); err != nil || batch.Results[0].Err != nil {
					t.Errorf("append: %v, %v", err, batch.Results[0].Err)
				}
			}
		})
	}
	group.Wait()
	seen := map[string]bool{}
	for p := range base.Partition(4) {
		last := map[string]int{}
		for _, v := range r.read(p) {
			require.False(t, seen[v], "%s twice", v)
			seen[v] = true
			caller, n, _ := strings.Cut(v, "-")
			require.Equal(t, fmt.Sprint(last[caller]), n, "each caller's order is kept")
			last[caller]++
		}
	}
	require.Len(t, seen, callers*each)
	stats := r.writer.Stats()
	require.EqualValues(t, callers*each, stats.Records)
	require.EqualValues(t, callers*each, stats.Appends)
	require.Less(t, stats.Objects, stats.Appends, "callers share objects")
}

func TestCrashPointsAreReachedInOrder(t *testing.T) {
	var mu sync.Mutex
	var points []string
	r := newRig(t, faults{}, func(o *wal.Options) {
		o.CrashPoint = func(name string) {
			mu.Lock()
			defer mu.Unlock()
			points = append(points, name)
		}
	})
	r.append(0, "a")
	r.close()
	mu.Lock()
	defer mu.Unlock()
	require.True(t, slices.Equal(points, []string{
		wal.CrashBeforePut, wal.CrashAfterPut, wal.CrashBeforeCommit, wal.CrashAfterCommit,
	}), points)
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := wal.NewWriter(wal.Options{})
	require.ErrorIs(t, err, base.ErrInvalid)
	for _, field := range []string{"required", "object", "eager", "buffered", "record", "linger", "concurrency"} {
		require.ErrorContains(t, err, field)
	}
}

// Given two writers that share their room, when one's appends fill it, then the other's
// wait until they are done.
func TestWritersMayShareTheirRoom(t *testing.T) {
	room := semaphore.NewWeighted(1000)
	share := func(o *wal.Options) { o.MaxBufferedBytes, o.Room = 1000, room }
	f, release := stuck()
	full, other := newRig(t, f, share), newRig(t, faults{}, share)
	done := make(chan error, 2)
	go func() { done <- full.writer.Append(t.Context(), full.batch(0, strings.Repeat("x", 900))) }()
	eventually(t, "the first is in", func() bool { return full.writer.Stats().BufferedBytes > 0 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, other.writer.Append(ctx, other.batch(0, strings.Repeat("y", 900))), context.Canceled)
	go func() { done <- other.writer.Append(t.Context(), other.batch(0, strings.Repeat("y", 900))) }()
	release()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
}

// Behaviour 13. Given small appends around one that is larger than an object and than
// the whole buffer, then its object holds nothing else.
func TestAnAppendLargerThanTheBufferIsAnObjectAlone(t *testing.T) {
	r := newRig(t, faults{}, func(o *wal.Options) {
		o.MaxObjectBytes, o.EagerBytes, o.MaxBufferedBytes = 4000, 4000, 5000
	})
	var group sync.WaitGroup
	small := func(n int) {
		for range n {
			group.Go(func() {
				if err := r.writer.Append(t.Context(), r.batch(1, "small")); err != nil {
					t.Errorf("append: %v", err)
				}
			})
		}
	}
	small(20)
	r.append(0, strings.Repeat("x", 50_000))
	small(20)
	group.Wait()
	large, _ := r.entries(r.id(0))
	require.Len(t, large, 1)
	require.Greater(t, large[0].Size, int64(50_000))
	others, _ := r.entries(r.id(1))
	for _, e := range others {
		require.NotEqual(t, large[0].Key(), e.Key(), "it shares its object")
	}
	require.Len(t, r.read(0), 1)
	require.Len(t, r.read(1), 40)
	eventually(t, "all room is free again", func() bool { return r.writer.Stats().BufferedBytes == 0 })
}
