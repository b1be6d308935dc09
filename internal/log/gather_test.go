package log

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
)

const sharedObject = "wal/s03/5/shared.wal"

// putShared stores an object of so many bytes, none like its neighbours.
func (w *world) putShared(size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i>>8) ^ byte(i*7)
	}
	require.NoError(w.t, w.objects.Put(context.Background(), sharedObject, data))
	return data
}

func sharedPart(pos, length int64) cacheKey {
	return cacheKey{object: sharedObject, pos: pos, len: length, shared: true}
}

// Given an object that a thousand logs share, when all their readers want their parts
// at once, then few requests bring them, and hardly more bytes than they asked for.
func TestReadersOfManyLogsShareRequestsToOneObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := makeWorld(t, 64<<20)
		defer w.close()
		const logs, part = 1000, 8000
		object := w.putShared(logs * part)
		hold := make(chan struct{})
		w.faults = func(blob.Call) blob.Fault {
			return blob.Fault{Wait: func(context.Context) error { <-hold; return nil }}
		}
		var readers sync.WaitGroup
		for i := range int64(logs) {
			readers.Go(func() {
				got, err := w.fetcher.read(t.Context(), sharedPart(i*part, part))
				if err != nil || !bytes.Equal(object[i*part:(i+1)*part], got) {
					t.Errorf("part %d: %v", i, err)
				}
				if cap(got) > 2*part {
					t.Errorf("part %d keeps %d bytes", i, cap(got))
				}
			})
		}
		synctest.Wait()
		require.Len(t, w.reads(), 1, "the first goes out at once")
		close(hold)
		readers.Wait()
		stats := w.fetcher.Stats()
		require.LessOrEqual(t, stats.Gets, int64(1+1+logs*part/maxExtentBytes+1))
		require.LessOrEqual(t, stats.ReadBytes, int64(logs*part)+stats.Gets*maxGapBytes)
		require.Empty(t, w.fetcher.gather.busy)
	})
}

// Given parts that lie far apart, then what lies between them is not read.
func TestPartsFarApartAreReadByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := makeWorld(t, 64<<20)
		defer w.close()
		w.putShared(4 << 20)
		hold := make(chan struct{})
		w.faults = func(blob.Call) blob.Fault {
			return blob.Fault{Wait: func(context.Context) error { <-hold; return nil }}
		}
		var readers sync.WaitGroup
		for _, pos := range []int64{0, 2 << 20, 2<<20 + 100, 3 << 20, 3<<20 + 50} {
			readers.Go(func() {
				_, err := w.fetcher.read(t.Context(), sharedPart(pos, 200))
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		close(hold)
		readers.Wait()
		require.Equal(t, int64(3), w.fetcher.Stats().Gets)
		require.Equal(t, int64(200+300+250), w.fetcher.Stats().ReadBytes)
	})
}

// holding makes the first calls wait, each until its channel is closed or its caller
// gives up.
func holding(hold []chan struct{}) func(blob.Call) blob.Fault {
	calls := 0 // made under the world's lock
	return func(blob.Call) blob.Fault {
		calls++
		if calls > len(hold) {
			return blob.Fault{}
		}
		mine := hold[calls-1]
		return blob.Fault{Wait: func(ctx context.Context) error {
			select {
			case <-mine:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
	}
}

// Given a reader that makes a request for others too, when it gives up, then theirs go
// on.
func TestAReaderThatGivesUpFailsOnlyItself(t *testing.T) {
	for _, when := range []string{"while it waits", "while it asks for others"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := makeWorld(t, 1<<20)
				defer w.close()
				object := w.putShared(1000)
				hold := []chan struct{}{make(chan struct{}), make(chan struct{})}
				w.faults = holding(hold)
				ctx, giveUp := context.WithCancel(t.Context())
				var readers sync.WaitGroup
				for i, c := range []context.Context{t.Context(), ctx, t.Context(), t.Context()} {
					readers.Go(func() {
						pos := int64(i) * 100
						got, err := w.fetcher.read(c, sharedPart(pos, 100))
						if right := err == nil && bytes.Equal(object[pos:pos+100], got); right == (c == ctx) {
							t.Errorf("part %d: %v", i, err)
						}
					})
					synctest.Wait()
				}
				if when == "while it waits" {
					giveUp()
					synctest.Wait()
				}
				close(hold[0])
				synctest.Wait()
				giveUp()
				synctest.Wait()
				close(hold[1])
				readers.Wait()
				require.Empty(t, w.fetcher.gather.busy)
			})
		})
	}
}

// Given an object that lost its end, then only those who want that end fail.
func TestAMissingEndFailsOnlyWhoWantsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := makeWorld(t, 1<<20)
		defer w.close()
		w.putShared(450)
		hold := make(chan struct{})
		w.faults = func(blob.Call) blob.Fault {
			return blob.Fault{Wait: func(context.Context) error { <-hold; return nil }}
		}
		errs := make([]error, 5)
		var readers sync.WaitGroup
		for i := range errs {
			readers.Go(func() { _, errs[i] = w.fetcher.read(t.Context(), sharedPart(int64(i)*100, 100)) })
			synctest.Wait()
		}
		close(hold)
		readers.Wait()
		for _, err := range errs[:4] {
			require.NoError(t, err)
		}
		require.ErrorIs(t, errs[4], base.ErrCorrupt)
	})
}

// Given readers of random parts of a few objects, some of which give up at any moment,
// then everyone who does not gets exactly the bytes asked for.
func TestGatheringGivesEveryoneTheirOwnBytes(t *testing.T) {
	w := makeWorld(t, 30_000)
	defer w.close()
	object := w.putShared(200_000)
	var readers sync.WaitGroup
	for seed := range uint64(16) {
		readers.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for range 300 {
				pos, length := random.Int64N(190_000), 1+random.Int64N(9000)
				ctx, cancel := context.WithCancel(t.Context())
				if random.IntN(4) == 0 {
					go cancel()
				}
				got, err := w.fetcher.read(ctx, sharedPart(pos, length))
				if err == nil && !bytes.Equal(object[pos:pos+length], got) {
					t.Errorf("bytes [%d, %d) are others", pos, pos+length)
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	readers.Wait()
	require.Empty(t, w.fetcher.gather.busy)
	require.LessOrEqual(t, w.fetcher.Stats().CacheBytes, int64(30_000))
}
