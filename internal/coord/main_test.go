package coord_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cluster in memory whose documents and logs can be disturbed.
type world struct {
	clock  *coordtest.Clock
	server *mem.Server
	store  *coord.Faulty
	faults map[coord.Call]coord.Fault // set before the call is made
}

func newWorld(faults map[coord.Call]coord.Fault) *world {
	w := &world{clock: coordtest.NewClock(), faults: faults}
	w.server = mem.NewServer(w.clock)
	w.store = coord.NewFaulty(w.server.Open("faulty"), func(c coord.Call) coord.Fault { return w.faults[c] })
	return w
}

// healthy returns the documents as another instance sees them, undisturbed.
func (w *world) healthy() coord.Documents { return w.server.Open("healthy").Documents() }

// advance waits until so many timers are set, and moves the clock. A timer that
// nobody waits for any more counts until it is due.
func (w *world) advance(t *testing.T, timers int, d time.Duration) {
	t.Helper()
	eventually(t, func() bool { return w.clock.Timers() >= timers })
	w.clock.Advance(d)
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 10*time.Second, time.Millisecond)
}
