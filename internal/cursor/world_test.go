package cursor

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/log"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits for what must happen; no test passes by waiting for it.
const patience = 120 * time.Second

// fastClock runs faster than the machine's.
type fastClock struct {
	start  time.Time
	factor time.Duration
}

func newFastClock(factor time.Duration) fastClock {
	return fastClock{start: time.Now(), factor: factor}
}

func (c fastClock) Now() time.Time { return c.start.Add(time.Since(c.start) * c.factor) }

func (c fastClock) After(d time.Duration) <-chan time.Time { return time.After(d / c.factor) }

// memLog is a log whose records hold their offsets. It is safe for concurrent use.
type memLog struct {
	mu          sync.Mutex
	start, head base.Offset   // guarded by mu
	grown       chan struct{} // guarded by mu; closed at the next append
}

func newMemLog(head base.Offset) *memLog { return &memLog{head: head, grown: make(chan struct{})} }

func (l *memLog) append(n base.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head += n
	close(l.grown)
	l.grown = make(chan struct{})
}

func (l *memLog) trim(start base.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start = start
}

func (l *memLog) Bounds() (start, head base.Offset, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.start, l.head, nil
}

func (l *memLog) Read(_ context.Context, from base.Offset, limits log.Limits) (log.Batch, error) {
	start, head, _ := l.Bounds()
	if from < start {
		return log.Batch{}, base.ErrTrimmed
	}
	n := limits.MaxMessages
	if n == 0 {
		n = 5000
	}
	batch := log.Batch{Next: from}
	for ; batch.Next < head && len(batch.Records) < n; batch.Next++ {
		r := recordbatch.Positioned{Offset: batch.Next}
		r.Value = fmt.Append(nil, batch.Next)
		batch.Records = append(batch.Records, r)
	}
	return batch, nil
}

func (l *memLog) Tail(ctx context.Context, from base.Offset, limits log.Limits) (log.Batch, error) {
	for {
		l.mu.Lock()
		grown := l.grown
		l.mu.Unlock()
		if batch, err := l.Read(ctx, from, limits); err != nil || len(batch.Records) > 0 {
			return batch, err
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return log.Batch{}, ctx.Err()
		}
	}
}

// world is coordination and the logs of streams.
type world struct {
	documents coord.Documents
	clock     base.Clock
	ids       atomic.Uint64

	mu   sync.Mutex
	logs map[Place]*memLog // guarded by mu
	gone map[Stream]bool   // guarded by mu
}

func newWorld(clock base.Clock) *world {
	return &world{
		documents: mem.NewServer(clock).Open("test").Documents(), clock: clock,
		logs: map[Place]*memLog{}, gone: map[Stream]bool{},
	}
}

// stream makes a stream of n partitions that hold records.
func (w *world) stream(name string, n base.Partition, records base.Offset) Stream {
	s := Stream{ID: base.StreamID(w.ids.Add(1)), Name: base.StreamName{Namespace: "shop", Name: name}}
	w.grow(s, 0, n, records)
	return s
}

func (w *world) grow(s Stream, from, to base.Partition, records base.Offset) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := from; p < to; p++ {
		w.logs[Place{s, p}] = newMemLog(records)
	}
}

func (w *world) log(p Place) *memLog {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logs[p]
}

func (w *world) places() (places []Place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for place := range w.logs {
		places = append(places, place)
	}
	return places
}

func (w *world) open(p Place) (Log, error) {
	if l := w.log(p); l != nil {
		return l, nil
	}
	return nil, base.ErrNotFound
}

// all wants every partition of streams, as many as there are.
func (w *world) all(streams ...Stream) func() ([]Range, error) {
	return func() (wants []Range, _ error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, s := range streams {
			n := base.Partition(0)
			for w.logs[Place{s, n}] != nil {
				n++
			}
			if n > 0 && !w.gone[s] {
				wants = append(wants, Range{Stream: s, Last: n - 1})
			}
		}
		return wants, nil
	}
}

func (w *world) isGone(s Stream) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone[s]
}

func (w *world) drop(s Stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone[s] = true
}

// options of a member of the group "audit".
func (w *world) options(wants func() ([]Range, error)) MemberOptions {
	return MemberOptions{
		Documents: w.documents, Clock: w.clock, Logger: quiet(), NewID: func() string { return ulid.Make().String() },
		Group: "audit", Label: "host", Wants: wants, Gone: w.isGone, Open: w.open,
		SessionTimeout: 10 * time.Second, RebalanceTimeout: 5 * time.Second, Heartbeat: time.Second,
	}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func (w *world) cursorOptions(place Place, name string) OpenOptions {
	return OpenOptions{Documents: w.documents, Clock: w.clock, Place: place, Name: name, Owner: ulid.Make().String(), Log: w.log(place)}
}

func (w *world) cursor(t *testing.T, place Place, name string) *Cursor {
	t.Helper()
	c, err := Open(t.Context(), w.cursorOptions(place, name))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func offsetsOf(b log.Batch) (offsets []base.Offset) {
	for i := range b.Records {
		offsets = append(offsets, b.Records[i].Offset)
	}
	return offsets
}

func span(start, end base.Offset) base.OffsetRange { return base.OffsetRange{Start: start, End: end} }
