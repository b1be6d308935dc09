package crash_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/crash"
)

// Given lives that are killed at one crash point each, all points in all, several
// in each directory, when a last life drains, then nothing acknowledged is lost,
// nothing is there twice, and the table is complete. No life waits for the leases
// of the dead, which last for an hour.
func TestKilledAtEachPoint(t *testing.T) {
	rounds, directories := 1, 2
	if *long {
		rounds, directories = 3, 4
	}
	for round := range rounds {
		points := crash.Points()
		random := chance(round)
		random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		for d := range directories {
			t.Run(fmt.Sprintf("passing%d/directory%d", round+1, d), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				for i := d; i < len(points); i += directories {
					w.killedAt(crash.Kill{Point: points[i], Passing: round + 1})
				}
				w.drained()
			})
		}
	}
}

// Given lives that are killed at whichever point is the n-th, when a last life
// drains, then all is well.
func TestKilledAtAnyPoint(t *testing.T) {
	directories, kills := 1, 3
	if *long {
		directories, kills = 4, 12
	}
	for d := range directories {
		t.Run(fmt.Sprintf("directory%d", d), func(t *testing.T) {
			t.Parallel()
			random := chance(100 + d)
			w := newWorld(t)
			for range kills {
				w.killedAt(crash.Kill{Point: crash.AnyPoint, Passing: 1 + random.IntN(60)})
			}
			w.drained()
		})
	}
}

// Given lives that are killed from outside, some time after their first
// acknowledgement, when a last life drains, then all is well.
func TestKilledAtRandomMoments(t *testing.T) {
	directories, kills := 1, 3
	if *long {
		directories, kills = 4, 12
	}
	for d := range directories {
		t.Run(fmt.Sprintf("directory%d", d), func(t *testing.T) {
			t.Parallel()
			random := chance(200 + d)
			w := newWorld(t)
			for range kills {
				spec := w.spec()
				spec.Batches, spec.Pause = 100_000, 5*time.Millisecond
				p := w.start(spec)
				require.NoError(t, crash.AwaitAcks(t.Context(), &spec, 1))
				time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
				require.NoError(t, p.Kill())
				end := p.Wait()
				require.True(t, end.Killed, end.Output)
			}
			w.drained()
		})
	}
}

// Given an empty directory in which lives are killed while they start, again and
// again, also while the cluster is being created, when one life is left alone, then
// it finds a directory that it can use, and all is well.
func TestKilledWhileStarting(t *testing.T) {
	directories, kills := 2, 8
	if *long {
		directories, kills = 20, 10
	}
	for d := range directories {
		t.Run(fmt.Sprintf("directory%d", d), func(t *testing.T) {
			t.Parallel()
			random := chance(300 + d)
			w := newWorld(t)
			for range kills {
				p := w.start(w.spec())
				time.Sleep(time.Duration(random.Int64N(int64(600 * time.Millisecond))))
				require.NoError(t, p.Kill())
				p.Wait() // it may have got to its end before
			}
			w.drained()
		})
	}
}
