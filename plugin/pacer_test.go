package plugin

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

var errStoreDown = errors.New("the store is down")

func sequencesOf(producer string, sequences ...engine.ProducerSeq) *engine.Batch {
	return &engine.Batch{
		Logs:    []engine.LogRecords{{Producer: producer, Sequences: sequences}},
		Results: make([]engine.LogResult, 1),
	}
}

// entering enters in the background; entered tells when it did.
func entering(t *testing.T, p *pacer, batch *engine.Batch) (entered chan []*turn) {
	t.Helper()
	entered = make(chan []*turn, 1)
	go func() {
		turns, err := p.enter(t.Context(), "n/s", batch)
		if err != nil {
			t.Error(err)
		}
		entered <- turns
	}()
	return entered
}

func enter(t *testing.T, p *pacer, batch *engine.Batch) []*turn {
	t.Helper()
	turns, err := p.enter(t.Context(), "n/s", batch)
	require.NoError(t, err)
	return turns
}

func newTestPacer() *pacer { return newPacer(engine.SystemClock{}, slog.New(slog.DiscardHandler)) }

func TestABatchWaitsForEarlierOnesThatItWouldPushOutOfTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPacer()
		first, beside := sequencesOf("p", 10), sequencesOf("p", 9+engine.ProducerWindow)
		turns := enter(t, p, first)
		besideTurns := enter(t, p, beside)

		beyond := sequencesOf("p", 10+engine.ProducerWindow)
		entered := entering(t, p, beyond)
		enter(t, p, sequencesOf("q", 10+engine.ProducerWindow)) // another producer does not wait
		synctest.Wait()
		require.Empty(t, entered)

		p.leave(besideTurns, "n/s", beside, nil)
		synctest.Wait()
		require.Empty(t, entered)
		p.leave(turns, "n/s", first, nil)
		<-entered
	})
}

func TestWhatFailedIsWaitedForUntilItComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPacer()
		first := sequencesOf("p", 1, 2)
		p.leave(enter(t, p, first), "n/s", first, errStoreDown)
		entered := entering(t, p, sequencesOf("p", 1+engine.ProducerWindow))
		synctest.Wait()
		require.Empty(t, entered)

		again := sequencesOf("p", 2, 1, 3)
		p.leave(enter(t, p, again), "n/s", again, nil)
		<-entered
	})
}

// A message that a pipeline gave up, or that can never be appended, holds nobody back
// for ever.
func TestWhatDoesNotComeAgainIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPacer()
		never, refused := sequencesOf("p", 1), sequencesOf("q", 1)
		p.leave(enter(t, p, never), "n/s", never, errStoreDown)
		refused.Results[0].Err = engine.ErrInvalid
		p.leave(enter(t, p, refused), "n/s", refused, nil)
		enter(t, p, sequencesOf("q", 1+engine.ProducerWindow))

		started := time.Now()
		entered := entering(t, p, sequencesOf("p", 1+engine.ProducerWindow))
		<-entered
		require.Equal(t, owedPatience, time.Since(started), "in the time of the bubble")
	})
}

func TestAWaitForTheWindowEndsWithItsContext(t *testing.T) {
	p := newTestPacer()
	first := sequencesOf("p", 1)
	turns := enter(t, p, first)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.enter(ctx, "n/s", sequencesOf("p", 1+engine.ProducerWindow))
	require.ErrorIs(t, err, context.Canceled)
	p.leave(turns, "n/s", first, nil)
	require.Empty(t, p.senders, "nothing is kept of what is acknowledged")
}

// Batches of two producers that would each wait for the other do not.
func TestBatchesDoNotWaitInACircle(t *testing.T) {
	p := newTestPacer()
	both := func(a, b engine.ProducerSeq) *engine.Batch {
		return &engine.Batch{Logs: []engine.LogRecords{
			{Producer: "a", Sequences: []engine.ProducerSeq{a}}, {Producer: "b", Sequences: []engine.ProducerSeq{b}},
		}, Results: make([]engine.LogResult, 2)}
	}
	var batches sync.WaitGroup
	for i := range engine.ProducerSeq(50) {
		batch := both(i*5000, (50-i)*5000)
		batches.Go(func() {
			turns, err := p.enter(t.Context(), "n/s", batch)
			if err != nil {
				t.Error(err)
				return
			}
			p.leave(turns, "n/s", batch, nil)
		})
	}
	batches.Wait()
	require.Empty(t, p.senders)
}
