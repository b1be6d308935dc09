package sim

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var (
	flagSeeds  = flag.Int("seeds", 200, "how many seeds TestSimulation runs")
	flagSteps  = flag.Int("steps", 300, "how many steps a run takes before it heals")
	flagSeed   = flag.Uint64("seed", 1, "the first seed")
	flagEvents = flag.String("events", "", "the only faults that may happen, as a failure lists them; all when empty")
	flagTwice  = flag.Bool("twice", false, "run every seed two times and compare, not every fourth")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is what one run came to.
type result struct {
	seed   uint64
	broken error
	counts
	injected map[string]int
	fired    plan
	hash     string
	tail     string
	// repeated is the hash of a second run, empty when there was none.
	repeated string
	records  int
}

func runSeed(ctx context.Context, seed uint64, steps int, only map[event]bool, m mutant) result {
	w, err := newWorld(ctx, seed, steps, only, m)
	if err != nil {
		return result{seed: seed, broken: err}
	}
	defer w.close()
	err = w.run()
	return result{
		seed: seed, broken: err, counts: w.count, injected: w.faults.injected, fired: w.faults.fired,
		hash: w.trace.hash(), tail: w.trace.String(), records: len(w.history),
	}
}

// runSeeds runs consecutive seeds, each on one goroutine, until one fails.
func runSeeds(ctx context.Context, first uint64, seeds int, run func(context.Context, uint64) result) []result {
	results := make([]result, seeds)
	var running sync.WaitGroup
	var failed atomic.Bool
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for n := range results {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if !failed.Load() {
				results[n] = run(ctx, first+uint64(n)) //nolint:gosec // never negative
				failed.CompareAndSwap(false, results[n].broken != nil)
			}
		})
	}
	running.Wait()
	return results
}

// Given instances that do all that they can at once, while calls fail, replies are
// lost and instances crash at every step: then no invariant breaks after any step,
// once the faults end everything gets done, and a seed always does the same.
func TestSimulation(t *testing.T) {
	only, err := parseEvents(*flagEvents)
	require.NoError(t, err)
	results := runSeeds(t.Context(), *flagSeed, *flagSeeds, func(ctx context.Context, seed uint64) result {
		r := runSeed(ctx, seed, *flagSteps, only, noDefect())
		if r.broken == nil && (*flagTwice || seed%4 == 0) {
			r.repeated = runSeed(ctx, seed, *flagSteps, only, noDefect()).hash
		}
		return r
	})
	total := result{injected: make(map[string]int), counts: counts{reached: make(map[string]int)}}
	for _, r := range results {
		if r.broken != nil {
			t.Fatal(report(t.Context(), r, *flagSteps, noDefect))
		}
		if r.repeated != "" {
			require.Equal(t, r.hash, r.repeated, "seed %d does not repeat itself", r.seed)
		}
		total.add(r)
	}
	t.Log(total)
	require.GreaterOrEqual(t, total.steps, *flagSeeds**flagSteps)
	if enough := 100; only == nil && *flagSeeds >= enough && *flagSteps >= enough {
		requireCoverage(t, total)
	}
}

// requireCoverage wants every fault to have been injected, and every situation that
// the rules are for to have come about.
func requireCoverage(t *testing.T, total result) {
	t.Helper()
	for at, kinds := range kindsOf {
		for _, what := range kinds {
			require.Positive(t, total.injected[faultName(at, what)], "%s %s", at, what)
		}
	}
	for _, what := range []string{
		"Append: published already", "Append: the writer is not open",
		"Compact: published already", "Compact: the writer is not open",
		"Compact of a log: an entry is newer than the read revision",
		"Compact of a log: the range does not match whole live entries",
		"Prepared: published already", "Prepared: the writer is not open",
		"Prepared of a log: the range does not start at the prepared mark",
		"Materialized of a log: published already",
		"WriterOpen: published already", "WriterFence: the writer is not open",
		"a key occupied by a part of an object",
	} {
		require.Positive(t, total.reached[what], what)
	}
	for _, n := range []int{total.crashes, total.acked, total.read, total.compacted, total.merged, total.tableRows, total.deadRows} {
		require.Positive(t, n, "%v", total)
	}
}

func (r *result) add(o result) {
	r.steps += o.steps
	r.crashes += o.crashes
	r.acked += o.acked
	r.read += o.read
	r.compacted += o.compacted
	r.merged += o.merged
	r.tableRows += o.tableRows
	r.deadRows += o.deadRows
	r.records += o.records
	for what, n := range o.reached {
		r.reached[what] += n
	}
	for what, n := range o.injected {
		r.injected[what] += n
	}
}

func (r result) String() string {
	text := fmt.Sprintf("%+v, %d commit records, faults:", r.counts, r.records)
	var faults []string
	for what, n := range r.injected {
		faults = append(faults, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(faults)
	return fmt.Sprint(text, faults)
}
