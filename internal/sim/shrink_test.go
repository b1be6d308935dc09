package sim

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// invariantOf names the invariant that did not hold.
func invariantOf(err error) string {
	name, _, _ := strings.Cut(err.Error(), ":")
	return name
}

// shrinkRuns bounds how often a failed run is repeated to shorten its plan.
const shrinkRuns = 60

// shrink leaves faults out of a failed run, many at a time and then one by one,
// for as long as the same invariant is broken, and returns the shortest such run.
func shrink(ctx context.Context, failed result, steps int, defect func() mutant) result {
	best := failed
	left := shrinkRuns
	for size := max(1, len(best.fired)/2); size > 0; size /= 2 {
		for at := 0; at < len(best.fired) && left > 0; left-- {
			r := runSeed(ctx, failed.seed, steps, without(best.fired, at, size), defect())
			if r.broken == nil || invariantOf(r.broken) != invariantOf(failed.broken) || len(r.fired) >= len(best.fired) {
				at += size
				continue
			}
			best = r
		}
	}
	return best
}

// without returns the events of a plan but for some.
func without(p plan, at, size int) map[event]bool {
	only := make(map[event]bool)
	for n, e := range p {
		if n < at || n >= at+size {
			only[e] = true
		}
	}
	return only
}

// report tells what is needed to understand and to repeat a failure.
func report(ctx context.Context, failed result, steps int, defect func() mutant) string {
	short := shrink(ctx, failed, steps, defect)
	return fmt.Sprintf("seed %d: %v\n%d of its %d faults are enough: %s\nthe end of that run:\n%s\n%v\nrepeat it with:\n"+
		"go test ./internal/sim -run '^TestSimulation$' -v -seeds=1 -seed=%d -steps=%d -events='%s'",
		failed.seed, failed.broken, len(short.fired), len(failed.fired), short.fired, short.tail, short.broken,
		failed.seed, steps, short.fired)
}

// Given a run that fails after many faults, its plan shrinks to the few that
// matter, and that plan alone, read back from its text, breaks the same invariant.
func TestAFailureShrinksToAPlanThatRepeatsIt(t *testing.T) {
	const steps = 300
	for seed := uint64(1); ; seed++ {
		require.Less(t, seed, uint64(mutantSeeds), "no seed fails after many faults")
		failed := runSeed(t.Context(), seed, steps, nil, movesUnfenced())
		if failed.broken == nil || len(failed.fired) < 10 {
			continue
		}
		short := shrink(t.Context(), failed, steps, movesUnfenced)
		require.Less(t, len(short.fired), len(failed.fired)/2, "%s became %s", failed.fired, short.fired)
		only, err := parseEvents(short.fired.String())
		require.NoError(t, err)
		again := runSeed(t.Context(), seed, steps, only, movesUnfenced())
		require.EqualError(t, again.broken, short.broken.Error())
		require.Equal(t, short.hash, again.hash)
		said := report(t.Context(), failed, steps, movesUnfenced)
		require.Contains(t, said, short.broken.Error())
		require.Contains(t, said, fmt.Sprintf("-seed=%d -steps=%d -events='%s'", seed, steps, short.fired))
		return
	}
}

func TestAPlanReadsBackFromItsText(t *testing.T) {
	p := plan{{pointPut, 3}, {pointStep, 12}, {pointCommit, 1}}
	only, err := parseEvents(p.String())
	require.NoError(t, err)
	require.Equal(t, without(p, 0, 0), only)
	all, err := parseEvents("")
	require.NoError(t, err)
	require.Nil(t, all)
	nothing, err := parseEvents(plan{}.String())
	require.NoError(t, err)
	require.Empty(t, nothing)
	require.NotNil(t, nothing)
	for _, text := range []string{"put", "put#", "put#x", "nowhere#1"} {
		_, err := parseEvents(text)
		require.Error(t, err, text)
	}
}
