package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
)

// scripted is a contender whose runs cost what a script says, one after another.
type scripted struct {
	name  string
	costs []cost
	calls *[]string
}

func (s *scripted) contender(bar float64) contender {
	return contender{name: s.name, what: "What " + s.name + " is.", bar: bar, run: func(context.Context, *bench) (cost, error) {
		*s.calls = append(*s.calls, s.name)
		next := s.costs[0]
		s.costs = s.costs[1:]
		return next, nil
	}}
}

func took(wall, cpu time.Duration) cost { return cost{wall: wall, cpu: cpu, messages: 1000} }

// Given a machine that is slow in one round, when a group was measured, then the
// ratios are those of the rounds, and their medians count.
func TestRatiosAreTakenRoundByRound(t *testing.T) {
	var calls []string
	floor := scripted{"floor", []cost{took(9, 9), took(10e6, 20e6), took(100e6, 200e6), took(10e6, 20e6)}, &calls}
	subject := scripted{"subject", []cost{took(9, 9), took(20e6, 25e6), took(200e6, 250e6), took(40e6, 100e6)}, &calls}
	b := &bench{clock: base.SystemClock{}, progress: io.Discard, rounds: 3, scale: 1}

	result, err := b.group(t.Context(), group{name: "g", floor: floor.contender(0), subjects: []contender{subject.contender(0.5)}})

	require.NoError(t, err)
	require.Equal(t, []string{"subject", "floor", "floor", "subject", "subject", "floor", "floor", "subject"}, calls, "there and back, after a warm-up")
	require.Equal(t, ranked{Name: "floor", What: "What floor is.", Wall: 10e3, CPU: 20e3, OfWall: 1, OfCPU: 1}, result.Floor)
	require.Equal(t, ranked{Name: "subject", What: "What subject is.", Bar: 0.5, Wall: 40e3, CPU: 100e3, OfWall: 0.5, OfCPU: 0.8}, result.Subjects[0])
}

func TestAFailedRunNamesItsCase(t *testing.T) {
	broken := contender{name: "subject", run: func(context.Context, *bench) (cost, error) { return cost{}, errors.New("no disk") }}
	b := &bench{clock: base.SystemClock{}, progress: io.Discard, rounds: 1, scale: shortScale}
	_, err := b.group(t.Context(), group{floor: broken})
	require.EqualError(t, err, "subject: no disk")
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{7}, 7}, {[]float64{9, 1}, 5}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 100, 2}, 3}} {
		require.InDelta(t, c.want, median(c.values), 0)
	}
}

// A short run fails for what is absurd and has a bar, not for what is slow.
func TestOnlyAbsurdRatiosFail(t *testing.T) {
	of := func(bar, ratio float64) []groupResult {
		return []groupResult{{Name: "g", Subjects: []ranked{{Name: "s", Bar: bar, OfCPU: ratio}}}}
	}
	require.NoError(t, checkSane(of(0.5, 0.11)))
	require.NoError(t, checkSane(of(0, 0.01)))
	require.EqualError(t, checkSane(of(0.5, 0.05)), "g: s takes 20.0 times the CPU of its floor")
}

func TestWorkIsMeasured(t *testing.T) {
	b := &bench{clock: base.SystemClock{}}
	spent, err := b.measure(10, func() error {
		for before, err := cpuTime(); ; {
			require.NoError(t, err)
			if now, _ := cpuTime(); now > before {
				return nil
			}
		}
	})
	require.NoError(t, err)
	require.Equal(t, 10, spent.messages)
	require.Positive(t, spent.wall)
	require.Positive(t, spent.cpu)
}

func TestTheCommandLineIsChecked(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"extra"}} {
		_, err := parse(args, io.Discard)
		require.ErrorIs(t, err, base.ErrInvalid, args)
	}
	_, err := parse([]string{"-unknown"}, io.Discard)
	require.Error(t, err)
}

// The whole command runs each group on real pipelines, briefly.
func TestAShortRunMeasuresEveryGroup(t *testing.T) {
	if testing.Short() {
		t.Skip("it appends and compacts for seconds")
	}
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-short", "-rounds", "1", "-dir", t.TempDir()}, &out, io.Discard))
	for _, g := range groups() {
		require.Contains(t, out.String(), g.name)
		for _, s := range append([]contender{g.floor}, g.subjects...) {
			require.Contains(t, out.String(), s.name)
			require.True(t, strings.HasSuffix(s.what, "."), s.what)
		}
	}
}
