package plugin

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
)

// A window is full at its limit, lets the next in when one leaves, and is stalled
// when a batch is in it for too long, not when it is empty.
func TestAWindowBoundsWhatIsOut(t *testing.T) {
	clock := coordtest.NewClock()
	w := newWindow(clock, 2)
	clock.Advance(time.Hour)
	require.False(t, w.stalled(time.Minute), "nothing is out")
	w.enter()
	require.False(t, w.isFull())
	w.enter()
	require.True(t, w.isFull())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, w.room(ended))
	clock.Advance(time.Minute + 1)
	require.True(t, w.stalled(time.Minute))

	room := make(chan bool, 1)
	go func() { room <- w.room(t.Context()) }()
	w.leave()
	require.True(t, <-room)
	require.False(t, w.stalled(time.Minute), "it has changed")
	require.False(t, w.isFull())
	w.leave()
	require.True(t, w.await(ended, 0), "nothing is out any more")
}
