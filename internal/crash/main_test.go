package crash_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lakestream-go/lakestream/internal/crash"
)

// long chooses the form of the tests that takes minutes.
var long = flag.Bool("long", os.Getenv("LAKESTREAM_CRASH_LONG") != "", "kill more often, in more ways")

// seed decides what chance decides, so that a failure can be repeated as far as
// processes can.
var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of random choices")

func TestMain(m *testing.M) {
	if crash.IsChild() {
		os.Exit(crash.BeChild(context.Background(), os.Stderr))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(binaryDir) // of no use to anyone
		os.Exit(code)
	}))
}

// chance is a source of random choices, one for each number.
func chance(number int) *rand.Rand {
	return rand.New(rand.NewPCG(*seed, uint64(number))) //nolint:gosec // never negative
}

// patience bounds waits for what must happen; no test passes by waiting for it.
const patience = 2 * time.Minute

// world is one data directory and the lives that are lived in it.
type world struct {
	t     *testing.T
	dir   string
	lives int
}

func newWorld(t *testing.T) *world { return &world{t: t, dir: filepath.Join(t.TempDir(), "data")} }

// stream is what the tests read. The next of all streams is in the same shard, so
// that objects and commits hold records of both, and the last is in another one.
const stream = "shop/orders"

func allStreams() []string { return []string{stream, "shop/customers", "shop/items"} }

// spec is the next life: a short one, which waits for nobody's lease.
func (w *world) spec() crash.Spec {
	w.lives++
	require.NoError(w.t, os.MkdirAll(w.dir, 0o700))
	return crash.Spec{
		Dir: w.dir, Life: fmt.Sprintf("life%02d", w.lives), Streams: allStreams(), Partitions: 3,
		Appenders: 4, Batches: 12, Pause: time.Millisecond, LeaseTTL: time.Hour, DrainTimeout: patience,
	}
}

// killedAt lives a life that must end at a crash point.
func (w *world) killedAt(kill crash.Kill) {
	w.t.Helper()
	spec := w.spec()
	spec.Kill = kill
	if kill.Point != crash.AnyPoint && kill.Passing > 1 { // what happens once an interval has to happen again
		spec.Batches, spec.Pause = 150*kill.Passing, 20*time.Millisecond
	}
	end, err := crash.Live(w.t.Context(), spec)
	require.NoError(w.t, err)
	require.True(w.t, end.Killed, "%s was not reached, exit code %d:\n%s", kill, end.Code, end.Output)
}

// drained lives a life to its end, and proves that all is well.
func (w *world) drained() {
	w.t.Helper()
	end, err := crash.Live(w.t.Context(), w.spec())
	require.NoError(w.t, err)
	w.requireClean(end)
	w.check()
}

func (w *world) requireClean(end crash.Ending) {
	w.t.Helper()
	require.False(w.t, end.Killed, end.Output)
	require.Zero(w.t, end.Code, end.Output)
	require.False(w.t, end.Raced, end.Output)
}

func (w *world) check() {
	w.t.Helper()
	report, err := crash.Check(w.t.Context(), w.dir)
	require.NoError(w.t, err)
	require.NotZero(w.t, report.Acknowledged)
	require.NotZero(w.t, report.DeadLetters)
	w.t.Logf("%d lives: %s", w.lives, report)
}

func (w *world) start(spec crash.Spec) *crash.Process {
	w.t.Helper()
	p, err := crash.Start(w.t.Context(), spec)
	require.NoError(w.t, err)
	return p
}
