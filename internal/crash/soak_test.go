package crash_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
	"github.com/lakestream-go/lakestream/internal/crash"
)

// soak is how long the instances of a cluster are disturbed.
var soak = flag.Duration("soak", soakFromEnvironment(), "how long the soak lasts")

// defaultSoak is the short form.
const defaultSoak = 30 * time.Second

func soakFromEnvironment() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("LAKESTREAM_SOAK")); err == nil {
		return d
	}
	return defaultSoak
}

// serverBinary builds the coordination server that go.mod names, once for all tests.
var serverBinary = sync.OnceValues(func() (string, error) {
	if err := os.MkdirAll(binaryDir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(binaryDir, "nats-server")
	out, err := exec.Command("go", "build", "-o", path, "github.com/nats-io/nats-server/v2").CombinedOutput() //nolint:gosec // to a path of our own
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// soakTTL is the lease of the instances: the shortest there is.
const soakTTL = 5 * time.Second

// soakBatches is how many batches each appender appends while the soak lasts, about:
// the records of a long one have to fit into memory when they are checked.
const soakBatches = 2500

// fleet is a cluster of processes on one server, one bucket and one catalog.
type fleet struct {
	*world

	server *crash.Server
	shared crash.Shared
	stop   string
	pause  time.Duration
	random *rand.Rand
	// idempotent makes who takes a seat go on where the one before was killed.
	idempotent bool
	seats      [3]seat
}

// seat is a place in the fleet, taken by one life after the other.
type seat struct {
	spec    crash.Spec
	process *crash.Process
	ended   chan crash.Ending
}

func newFleet(t *testing.T, number int) *fleet {
	t.Helper()
	w := newWorld(t)
	binary, err := serverBinary()
	require.NoError(t, err)
	dir := t.TempDir()
	server, err := crash.NewServer(t.Context(), binary, dir)
	require.NoError(t, err)
	f := &fleet{
		world: w, server: server, stop: filepath.Join(dir, "stop"), random: chance(number), pause: *soak / soakBatches,
		shared: crash.Shared{NATS: server.URL(), Bucket: "file://" + filepath.Join(dir, "bucket"), Catalog: filepath.Join(dir, "catalog.db")},
	}
	f.serve()
	t.Cleanup(func() { f.server.Stop(true) })
	return f
}

// serve starts the server.
func (f *fleet) serve() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	require.NoError(f.t, f.server.Start(ctx))
}

// spec is the next life in the fleet: it goes on until the stop file is there.
func (f *fleet) spec() crash.Spec {
	spec := f.world.spec()
	spec.Shared, spec.StopFile, spec.Patience = &f.shared, f.stop, patience
	spec.Appenders, spec.Batches, spec.Pause, spec.LeaseTTL = 2, 1_000_000, f.pause, soakTTL
	return spec
}

// sit starts a new life in a seat.
func (f *fleet) sit(s *seat) {
	f.t.Helper()
	before := s.spec
	s.spec = f.spec()
	if f.idempotent {
		s.spec.Producer, s.spec.Before = before.Producer, before.Before
		if before.Life != "" {
			s.spec.Before = append(s.spec.Before, before.Life)
		} else {
			s.spec.Producer = "of-" + s.spec.Life
		}
	}
	s.process, s.ended = f.start(s.spec), make(chan crash.Ending, 1)
	go func(p *crash.Process, ended chan<- crash.Ending) { ended <- p.Wait() }(s.process, s.ended)
}

// awaitAcks waits until the life in a seat has so many acknowledgements.
func (f *fleet) awaitAcks(s *seat, n int) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	if err := crash.AwaitAcks(ctx, &s.spec, n); err != nil {
		require.NoError(f.t, s.process.Kill())
		require.NoError(f.t, err, "%s:\n%s", s.spec.Life, (<-s.ended).Output)
	}
}

// requireAlive fails when a life ended that nobody killed.
func (f *fleet) requireAlive() {
	f.t.Helper()
	for i := range f.seats {
		select {
		case end := <-f.seats[i].ended:
			require.FailNow(f.t, "a life ended by itself", "%s, exit code %d:\n%s", f.seats[i].spec.Life, end.Code, end.Output)
		default:
		}
	}
}

// disturbances are what may happen to a fleet, by name.
func (f *fleet) disturbances() map[string]func() {
	someone := func() *seat { return &f.seats[f.random.IntN(len(f.seats))] }
	pause := func(least, most time.Duration) {
		s := someone()
		require.NoError(f.t, s.process.Pause())
		f.wait(least, most)
		require.NoError(f.t, s.process.Resume())
	}
	restart := func(hard bool) {
		f.server.Stop(hard)
		f.wait(0, 2*time.Second)
		f.serve()
	}
	return map[string]func(){
		"1 kill an instance": func() {
			s := someone()
			require.NoError(f.t, s.process.Kill())
			<-s.ended
			f.wait(0, 2*time.Second)
			f.sit(s)
		},
		"2 pause an instance beyond its lease": func() { pause(soakTTL+time.Second, 2*soakTTL) },
		"3 pause an instance for a moment":     func() { pause(0, 2*time.Second) },
		"4 kill the server":                    func() { restart(true) },
		"5 restart the server":                 func() { restart(false) },
	}
}

// wait lets some time pass.
func (f *fleet) wait(least, most time.Duration) {
	time.Sleep(least + time.Duration(f.random.Int64N(int64(most-least))))
}

// disturb does what chance decides until the time is up. Each disturbance happens at
// least once in any soak that is long enough.
func (f *fleet) disturb(until time.Time) (counts map[string]int) {
	f.t.Helper()
	counts = make(map[string]int)
	all := f.disturbances()
	names := slices.Sorted(maps.Keys(all))
	for n := 0; time.Now().Before(until); n++ {
		if n%len(names) == 0 {
			f.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		}
		f.wait(500*time.Millisecond, 3*time.Second)
		f.requireAlive()
		all[names[n%len(names)]]()
		counts[names[n%len(names)]]++
	}
	return counts
}

// end makes every life stop appending, and waits until all have drained.
func (f *fleet) end() {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(f.stop, nil, 0o600))
	for i := range f.seats {
		select {
		case end := <-f.seats[i].ended:
			f.requireClean(end)
		case <-time.After(2 * patience):
			require.NoError(f.t, f.seats[i].process.Kill())
			require.FailNow(f.t, "a life does not end", "%s:\n%s", f.seats[i].spec.Life, (<-f.seats[i].ended).Output)
		}
	}
}

// observer are the options of who only looks at the fleet's cluster.
func (f *fleet) observer() engine.Options {
	spec := f.spec()
	opts := spec.Options()
	opts.Observe, opts.Logger = true, slog.New(slog.DiscardHandler)
	return opts
}

// Given three processes on one server and one bucket that append, compact and fill
// tables, and a fourth that tails, when they are killed and paused, beyond their leases
// too, and the server is killed and restarted, by chance, and who comes after a killed
// one sends again what that had no acknowledgement for, then at the end every record is
// in its log once, an acknowledged one at its offset, and in its table once, the tail has
// read just that, and the bucket holds every object that the index names, what is dead
// for less than the grace, and uploads of writers that are open: nothing else.
func TestSoak(t *testing.T) {
	t.Parallel()
	t.Logf("seed %d, %s", *seed, *soak)
	f := newFleet(t, 400)
	f.idempotent = true
	for i := range f.seats {
		f.sit(&f.seats[i])
	}
	f.awaitAcks(&f.seats[0], 1)
	tail := followWith(t, f.observer())
	counts := f.disturb(time.Now().Add(*soak))
	awaitReclaim(t, tail.engine)
	f.end()

	tail.requireAll()
	_, err := tail.engine.Collect(t.Context(), engine.CollectOptions{})
	require.NoError(t, err)
	report, err := crash.CheckEngine(t.Context(), tail.engine, f.dir)
	require.NoError(t, err)
	require.NotZero(t, report.Acknowledged)
	require.Zero(t, report.Orphans)
	t.Logf("%d lives, %v: %s", f.lives, counts, report)
}

// awaitReclaim waits until some instance deletes what is dead, as all do when they are
// left alone for longer than the grace.
func awaitReclaim(t *testing.T, e *engine.Engine) {
	t.Helper()
	before := 0
	require.Eventually(t, func() bool {
		dead := 0
		for _, s := range e.Status(t.Context()).Shards {
			dead += s.Dead
		}
		fell := dead < before
		before = dead
		return fell
	}, patience, 100*time.Millisecond, "nothing that is dead is deleted")
}

// Given two instances on one server, when one is paused for longer than its lease lasts
// and the other has closed its writers meanwhile, then it goes on when it is resumed:
// what it had not acknowledged lands once, under a new writer.
func TestAnInstanceGoesOnAfterAPauseBeyondItsLease(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 500)
	f.pause = 5 * time.Millisecond
	paused, other := &f.seats[0], &f.seats[1]
	f.sit(paused)
	f.sit(other)
	f.awaitAcks(paused, 100)
	f.awaitAcks(other, 100)
	e, err := engine.Open(t.Context(), f.observer())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.WithoutCancel(t.Context()))) })
	members := func() int { return len(e.Status(t.Context()).Members) }
	require.Eventually(t, func() bool { return members() == 2 }, patience, 50*time.Millisecond)

	require.NoError(t, paused.process.Pause())
	require.Eventually(t, func() bool { return members() == 1 }, patience, 50*time.Millisecond, "its lease ends")
	before, err := crash.ReadLedger(paused.spec.LedgerPath())
	require.NoError(t, err)
	time.Sleep(2 * soakTTL) // the other closes its writers
	require.NoError(t, paused.process.Resume())
	f.awaitAcks(paused, len(before)+500)
	require.Eventually(t, func() bool { return members() == 2 }, patience, 50*time.Millisecond, "it has a fresh lease")

	require.NoError(t, os.WriteFile(f.stop, nil, 0o600))
	f.requireClean(<-other.ended)
	end := <-paused.ended
	f.requireClean(end)
	require.Contains(t, end.Output, "this instance was paused or cut off")
	report, err := crash.CheckEngine(t.Context(), e, f.dir)
	require.NoError(t, err)
	t.Logf("%s", report)
}
