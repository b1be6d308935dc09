package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
)

const (
	// shortScale divides the messages of a short run.
	shortScale = 20
	// saneRatio is what a short run demands: below it something is broken, and
	// not merely slow on a busy machine.
	saneRatio = 0.1
	// runTimeout ends a run that hangs.
	runTimeout = 10 * time.Minute
)

// cost is what one run took.
type cost struct {
	wall, cpu time.Duration
	messages  int
}

func (c cost) wallPer() float64 { return float64(c.wall) / float64(c.messages) }
func (c cost) cpuPer() float64  { return float64(c.cpu) / float64(c.messages) }

// contender is one thing to measure. Its run prepares what it needs, measures by
// bench.measure, and checks that the work was done.
type contender struct {
	name string
	// what says in a sentence what is measured.
	what string
	// bar is the ratio to the floor that the project wants at least; 0 is none.
	bar float64
	run func(context.Context, *bench) (cost, error)
}

// group is contenders beside the floor that they share.
type group struct {
	name, what string
	floor      contender
	subjects   []contender
}

// bench runs groups. It is not safe for concurrent use.
type bench struct {
	dir      string // for data
	clock    base.Clock
	progress io.Writer
	rounds   int
	scale    int // divides the numbers of messages
}

// count returns a number of messages, made smaller for short runs.
func (b *bench) count(full int) int { return max(1000, full/b.scale) }

// freshDir returns an empty directory, and a function that removes it.
func (b *bench) freshDir() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(b.dir, "run-")
	return dir, func() { _ = os.RemoveAll(dir) }, err // the parent goes in the end
}

// measure measures what work takes for a number of messages. Garbage of what ran
// before is collected first.
func (b *bench) measure(messages int, work func() error) (cost, error) {
	runtime.GC()
	started := b.clock.Now()
	before, err := cpuTime()
	if err != nil {
		return cost{}, fmt.Errorf("asking for CPU time: %w", err)
	}
	if err := work(); err != nil {
		return cost{}, err
	}
	wall := b.clock.Now().Sub(started)
	after, err := cpuTime()
	if err != nil {
		return cost{}, fmt.Errorf("asking for CPU time: %w", err)
	}
	return cost{wall: wall, cpu: after - before, messages: messages}, nil
}

// ranked is what was measured of one contender: medians over the rounds.
type ranked struct {
	Name, What string
	Bar        float64
	// Wall and CPU are nanoseconds a message.
	Wall, CPU float64
	// OfWall and OfCPU are the floor's over these, round by round: 1 is as
	// fast as the floor.
	OfWall, OfCPU float64
}

type groupResult struct {
	Name, What string
	// Floor has ratios of 1.
	Floor    ranked
	Subjects []ranked
}

// group measures everything in turns, there and back, so that a drift of the
// machine cancels out. A first round warms up and does not count, but in short
// runs.
func (b *bench) group(ctx context.Context, g group) (groupResult, error) {
	all := append([]contender{g.floor}, g.subjects...)
	costs := make([][]cost, len(all))
	first := -1
	if b.scale > 1 {
		first = 0
	}
	for round := first; round < b.rounds; round++ {
		for turn := range all {
			i := turn
			if round%2 != 0 {
				i = len(all) - 1 - turn
			}
			c, err := b.one(ctx, g.name, all[i])
			if err != nil {
				return groupResult{}, fmt.Errorf("%s: %w", all[i].name, err)
			}
			_, _ = fmt.Fprintf(b.progress, "%s, round %d: %s: %.0f ns wall, %.0f ns CPU a message\n", // a failure loses only progress
				g.name, round+1, all[i].name, c.wallPer(), c.cpuPer())
			if round >= 0 {
				costs[i] = append(costs[i], c)
			}
		}
	}
	result := groupResult{Name: g.name, What: g.what, Floor: rank(g.floor, costs[0], costs[0])}
	for i, s := range g.subjects {
		result.Subjects = append(result.Subjects, rank(s, costs[0], costs[i+1]))
	}
	return result, nil
}

// one runs a contender once. Its group and name are the label "case" of its
// goroutines in a profile.
func (b *bench) one(ctx context.Context, group string, c contender) (cost, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	var spent cost
	var err error
	pprof.Do(ctx, pprof.Labels("case", group+": "+c.name), func(ctx context.Context) { spent, err = c.run(ctx, b) })
	return spent, err
}

// rank takes the medians of a contender's costs, round by round beside the floor's.
func rank(c contender, floor, own []cost) ranked {
	over := func(of func(i int) float64) float64 {
		values := make([]float64, len(own))
		for i := range own {
			values[i] = of(i)
		}
		return median(values)
	}
	return ranked{
		Name: c.name, What: c.what, Bar: c.bar,
		Wall:   over(func(i int) float64 { return own[i].wallPer() }),
		CPU:    over(func(i int) float64 { return own[i].cpuPer() }),
		OfWall: over(func(i int) float64 { return floor[i].wallPer() / own[i].wallPer() }),
		OfCPU:  over(func(i int) float64 { return floor[i].cpuPer() / own[i].cpuPer() }),
	}
}

// median returns the middle of at least one value.
func median(values []float64) float64 {
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[middle]
}

// checkSane demands of every ratio that has a bar that it is not absurd.
func checkSane(results []groupResult) error {
	var errs []error
	for _, g := range results {
		for _, s := range g.Subjects {
			if s.Bar > 0 && s.OfCPU < saneRatio {
				errs = append(errs, fmt.Errorf("%s: %s takes %.1f times the CPU of its floor", g.Name, s.Name, 1/s.OfCPU))
			}
		}
	}
	return errors.Join(errs...)
}
