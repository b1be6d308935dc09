package plugin

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// Given an output that writes, when an operator fences and opens its stream, then
// batches are refused with the operator's reason in between, and nothing is lost.
func TestAFencedStreamRefusesBatchesUntilItIsOpened(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: f/s\npartitions: 2\npartition: ${! content() }")
	s, err := o.connection.engine.Stream("f/s")
	require.NoError(t, err)
	require.NoError(t, o.WriteBatch(t.Context(), texts("0", "1")))
	require.NoError(t, s.Fence(t.Context(), "moving house", 1))
	batch := texts("0", "1", "0")
	err = o.WriteBatch(t.Context(), batch)
	var failed *service.BatchError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 1, failed.IndexedErrors())
	require.ErrorIs(t, err, engine.ErrFenced)
	require.ErrorContains(t, err, "partition 1 of f/s")
	require.ErrorContains(t, err, "moving house")
	require.NoError(t, s.Unfence(t.Context()))
	require.NoError(t, o.WriteBatch(t.Context(), batch[1:2]), "what was refused is written again")
	require.Len(t, l.readAll(t, "f/s:0"), 3)
	require.Len(t, l.readAll(t, "f/s:1"), 2)
}

// Given an output that writes, when its stream is deleted, then each batch is refused
// and the reason names the stream; and an output that connects is told for good.
func TestADeletedStreamRefusesBatchesByItsName(t *testing.T) {
	for _, stream := range []string{"d/s", `d/${! "s" }`} {
		l := newLake(t)
		o := l.connectOutput(t, "stream: "+stream)
		require.NoError(t, o.WriteBatch(t.Context(), texts("a")))
		dropped, err := o.connection.engine.DropStream(t.Context(), "d/s", false)
		require.NoError(t, err)
		require.True(t, dropped)
		for range 2 {
			err = o.WriteBatch(t.Context(), texts("b", "c"))
			require.ErrorIs(t, err, engine.ErrStreamPermanentlyDeleted)
			require.ErrorContains(t, err, "d/s")
			require.NotErrorIs(t, err, engine.ErrUnknown)
		}
		other := l.output(t, "stream: d/s")
		err = cause(t, other.Connect(t.Context()))
		require.ErrorIs(t, err, engine.ErrStreamPermanentlyDeleted)
		require.NoError(t, other.Close(t.Context()))
	}
}

func TestAnOutputUsesThePartitionsThatItsStreamGrew(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: g/s\npartition: ${! content() }")
	require.Error(t, o.WriteBatch(t.Context(), texts("1")))
	s, err := o.connection.engine.Stream("g/s")
	require.NoError(t, err)
	require.NoError(t, s.IncreasePartitions(t.Context(), 2))
	require.NoError(t, o.WriteBatch(t.Context(), texts("1")))
	require.Len(t, l.readAll(t, "g/s:1"), 1)
}

// clockOfPauses counts how often a refusal was held back, and lets none last.
type clockOfPauses struct {
	engine.Clock
	pauses atomic.Int64
}

func (c *clockOfPauses) After(d time.Duration) <-chan time.Time {
	if d == refusalPause {
		c.pauses.Add(1)
		d = 0
	}
	return c.Clock.After(d)
}

// A flow that sends what was refused again at once would fill its log with errors.
func TestWhatAStreamRefusesIsHeldBack(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: f/s")
	clock := &clockOfPauses{Clock: o.clock}
	o.clock = clock
	require.NoError(t, o.WriteBatch(t.Context(), texts("a")))
	require.Zero(t, clock.pauses.Load())
	s, err := o.connection.engine.Stream("f/s")
	require.NoError(t, err)
	require.NoError(t, s.Fence(t.Context(), "moving house"))
	require.ErrorIs(t, o.WriteBatch(t.Context(), texts("b")), engine.ErrFenced)
	require.ErrorIs(t, o.WriteBatch(t.Context(), texts("b", "c")), engine.ErrFenced)
	require.EqualValues(t, 2, clock.pauses.Load())
	require.NoError(t, s.Unfence(t.Context()))
	require.NoError(t, o.WriteBatch(t.Context(), texts("b")))
	require.EqualValues(t, 2, clock.pauses.Load())
}
