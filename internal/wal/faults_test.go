package wal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/wal"
)

var (
	errDown    = base.WithClass(base.ErrUnavailable, errors.New("the store is down"))
	errNoReply = base.WithClass(base.ErrUnknown, errors.New("no reply"))
)

// fastRetries makes back-off short: time plays no part in these tests.
func fastRetries(o *wal.Options) { o.Clock = quickClock{} }

// quickClock makes every wait a thousand times shorter.
type quickClock struct{ base.SystemClock }

func (quickClock) After(d time.Duration) <-chan time.Time { return time.After(d / 1000) }

// firstPuts disturbs the first n puts of the object store.
func firstPuts(n int64, fault blob.Fault) faults {
	var puts atomic.Int64
	return faults{blob: func(c blob.Call) blob.Fault {
		if c.Op == blob.OpPut && puts.Add(1) <= n {
			return fault
		}
		return blob.Fault{}
	}}
}

// firstCommits disturbs the first n puts into the commit log.
func firstCommits(n int64, fault coord.Fault) faults {
	var puts atomic.Int64
	return faults{coord: func(c coord.Call) coord.Fault {
		if c.Op == coord.OpPut && puts.Add(1) <= n {
			return fault
		}
		return coord.Fault{}
	}}
}

func TestFaultsAreRetriedUntilTheAppendLandsOnce(t *testing.T) {
	for name, f := range map[string]faults{
		"object not put":           firstPuts(3, blob.Fault{Before: errDown}),
		"object put, reply lost":   firstPuts(1, blob.Fault{After: errNoReply}),
		"record not put":           firstCommits(4, coord.Fault{Before: errDown}),
		"record put, reply lost":   firstCommits(4, coord.Fault{After: errNoReply}),
		"record put twice":         firstCommits(4, coord.Fault{Twice: true}),
		"put twice and reply lost": firstCommits(4, coord.Fault{Twice: true, After: errNoReply}),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, f, fastRetries)
			require.EqualValues(t, 0, r.append(0, "a", "b"))
			require.EqualValues(t, 2, r.append(0, "c"))
			r.close()
			require.Equal(t, []string{"a", "b", "c"}, r.read(0))
		})
	}
}

func TestAPutThatLeftHalfAnObjectMovesTheWriterOn(t *testing.T) {
	half := func(data []byte) []byte { return data[:len(data)/2] }
	r := newRig(t, firstPuts(1, blob.Fault{Damage: half, After: errNoReply}), fastRetries)
	require.EqualValues(t, 0, r.append(0, "a"))
	require.EqualValues(t, 1, r.append(0, "b"))
	require.EqualValues(t, 2, r.writer.Stats().Writers, "the first one was fenced")
	require.Equal(t, []string{"a", "b"}, r.read(0))
}

func TestADamagedObjectUnderOurKeyIsNoticed(t *testing.T) {
	r := newRig(t, firstPuts(1, blob.Fault{Damage: blob.FlipBit(400), After: errNoReply}), fastRetries)
	r.append(0, "a")
	require.EqualValues(t, 2, r.writer.Stats().Writers)
	require.Equal(t, []string{"a"}, r.read(0))
}

func TestFencedByAnotherInstanceTheWriterGoesOnUnderANewIdentity(t *testing.T) {
	r := newRig(t, faults{}, nil)
	r.append(0, "a")
	r.fenceFromOutside()
	require.EqualValues(t, 1, r.append(0, "b"))
	require.EqualValues(t, 2, r.append(0, "c"))
	require.Equal(t, []string{"a", "b", "c"}, r.read(0))
	require.EqualValues(t, 2, r.writer.Stats().Writers)
}

// fenceFromOutside does what an instance does that holds ours for dead.
func (r *rig) fenceFromOutside() {
	var open []uint64
	r.view.Inspect(func(s *shard.State) {
		for _, w := range s.Writers() {
			open = append(open, uint64(w.ID))
		}
	})
	if len(open) == 0 {
		return
	}
	_, err := r.view.Publish(context.Background(), &commitpb.WriterFence{Writers: open})
	require.NoError(r.t, err)
}

func TestFencesUnderLoadLoseAndDoubleNothing(t *testing.T) {
	r := newRig(t, faults{}, func(o *wal.Options) { fastRetries(o); o.EagerBytes = 200 })
	const callers, each = 8, 60
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := range each {
				b := r.batch(base.Partition(caller%4), fmt.Sprintf("%d-%d", caller, i))
				if err := r.writer.Append(t.Context(), b); err != nil || b.Results[0].Err != nil {
					t.Errorf("append: %v, %v", err, b.Results[0].Err)
				}
				switch {
				case caller == 0 && i%20 == 10:
					r.fenceFromOutside()
				case caller == 1 && i%20 == 15:
					if err := r.writer.Fence(t.Context()); err != nil {
						t.Errorf("fence: %v", err)
					}
				}
			}
		})
	}
	group.Wait()
	r.requireEachOnce(callers * each)
	require.Greater(t, r.writer.Stats().Writers, int64(3))
}

// requireEachOnce reads all logs and wants n different values.
func (r *rig) requireEachOnce(n int) {
	r.t.Helper()
	seen := map[string]bool{}
	for p := range base.Partition(4) {
		for _, v := range r.read(p) {
			require.False(r.t, seen[v], "%s twice", v)
			seen[v] = true
		}
	}
	require.Len(r.t, seen, n)
}

func TestEveryKindOfFaultAtOnce(t *testing.T) {
	var calls atomic.Int64
	fault := func() (before, after error) {
		switch calls.Add(1) % 7 {
		case 2:
			return errDown, nil
		case 5:
			return nil, errNoReply
		default:
			return nil, nil
		}
	}
	f := faults{
		blob: func(c blob.Call) blob.Fault {
			before, after := fault()
			if c.Op == blob.OpPut {
				return blob.Fault{Before: before, After: after}
			}
			return blob.Fault{Before: before}
		},
		coord: func(c coord.Call) coord.Fault {
			if c.Op != coord.OpPut {
				return coord.Fault{}
			}
			before, after := fault()
			return coord.Fault{Before: before, After: after, Twice: calls.Load()%5 == 0 && before == nil}
		},
	}
	r := newRig(t, f, func(o *wal.Options) { fastRetries(o); o.EagerBytes = 100 })
	const callers, each = 6, 30
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := range each {
				b := r.batch(base.Partition(caller%4), fmt.Sprintf("%d-%d", caller, i))
				if err := r.writer.Append(t.Context(), b); err != nil || b.Results[0].Err != nil {
					t.Errorf("append: %v, %v", err, b.Results[0].Err)
				}
			}
		})
	}
	group.Wait()
	r.requireEachOnce(callers * each)
}

// Behaviour 32, of a writer.
func TestCloseDrainsAndFencesItself(t *testing.T) {
	f, release := stuck()
	r := newRig(t, f, nil)
	done := make(chan error, 1)
	go func() { done <- r.writer.Append(t.Context(), r.batch(0, "a")) }()
	eventually(t, "it is in flight", func() bool { return r.writer.Stats().InFlight == 1 })
	closed := make(chan error, 1)
	go func() { closed <- r.writer.Close(t.Context()) }()
	eventually(t, "it takes no more", func() bool {
		nothing := &wal.Batch{Logs: []wal.LogRecords{{Log: r.id(0)}}}
		return errors.Is(r.writer.Append(t.Context(), nothing), base.ErrClosed)
	})
	release()
	require.NoError(t, <-done)
	require.NoError(t, <-closed)
	require.Equal(t, []string{"a"}, r.read(0))
	r.view.Inspect(func(s *shard.State) { require.Empty(t, s.Writers(), "it fenced itself") })
	require.NoError(t, r.writer.Close(t.Context()), "again")
}

func TestCloseIsBoundedWhenTheStoreHangs(t *testing.T) {
	f, release := stuck()
	defer release()
	r := newRig(t, f, func(o *wal.Options) { o.MaxBufferedBytes = 100 })
	errs := make(chan error, 2)
	go func() { errs <- appendOne(t, r, strings.Repeat("x", 100)) }()
	eventually(t, "it is in flight", func() bool { return r.writer.Stats().InFlight == 1 })
	go func() { errs <- appendOne(t, r, "waits for room") }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, r.writer.Close(ctx), context.Canceled)
	for range 2 {
		err := <-errs
		require.ErrorIs(t, err, base.ErrClosed)
		require.NotErrorIs(t, err, base.ErrUnknown, "no record was put")
	}
}

// appendOne returns whichever error an append of one value gives.
func appendOne(t *testing.T, r *rig, value string) error {
	b := r.batch(0, value)
	if err := r.writer.Append(t.Context(), b); err != nil {
		return err
	}
	return b.Results[0].Err
}

func TestWhenTheViewStopsAppendsFail(t *testing.T) {
	f, release := stuck()
	defer release()
	r := newRig(t, f, fastRetries)
	errs := make(chan error, 1)
	go func() { errs <- appendOne(t, r, "a") }()
	eventually(t, "it is in flight", func() bool { return r.writer.Stats().InFlight == 1 })
	r.view.Stop(fmt.Errorf("a record of the future: %w", base.ErrNewerFormat))
	require.ErrorIs(t, <-errs, base.ErrNewerFormat)
	require.ErrorIs(t, appendOne(t, r, "b"), base.ErrNewerFormat)
}

func TestOneWarningNamesWhatBlocks(t *testing.T) {
	stuckStore, releaseStore := stuck()
	gate := make(chan struct{})
	stuckLog := faults{coord: func(c coord.Call) coord.Fault {
		if c.Op != coord.OpPut {
			return coord.Fault{}
		}
		return coord.Fault{Hold: gate}
	}}
	for what, test := range map[string]struct {
		faults  faults
		release func()
	}{
		"the object store mem://": {stuckStore, releaseStore},
		"the commit log of s00":   {stuckLog, func() { close(gate) }},
	} {
		t.Run(what, func(t *testing.T) {
			clock := newManual()
			r := newRig(t, test.faults, func(o *wal.Options) { o.Clock = clock })
			done := make(chan error, 1)
			go func() { done <- appendOne(t, r, "a") }()
			eventually(t, "it is in flight", func() bool { return r.writer.Stats().InFlight == 1 })
			for range 100 {
				eventually(t, "the watch waits", func() bool { return clock.waiting(time.Second) })
				clock.advance(time.Second)
			}
			require.Equal(t, what+": no answer", r.writer.Stats().Blocked)
			require.Equal(t, 1, strings.Count(r.log.String(), "appends are blocked"))
			require.Contains(t, r.log.String(), what)
			test.release()
			require.NoError(t, <-done)
			eventually(t, "it says so", func() bool {
				clock.advance(time.Second)
				return strings.Contains(r.log.String(), "appends move again")
			})
			require.Empty(t, r.writer.Stats().Blocked)
		})
	}
}
