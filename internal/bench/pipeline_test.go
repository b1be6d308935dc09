package main

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

// Every payload is JSON of the stated size.
func TestPayloads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		event := payload(random, rapid.IntRange(0, 50_000).Draw(t, "i"))
		require.Len(t, event, messageBytes)
		require.True(t, json.Valid(event), string(event))
	})
}

// A source yields its batches, each of its size, and then ends, also past the last
// payload.
func TestASourceEnds(t *testing.T) {
	s := &source{size: 7}
	s.left.Store(3)
	s.next.Store(int64(len(payloads()) - 10))
	for range 3 {
		batch, _, err := s.ReadBatch(t.Context())
		require.NoError(t, err)
		require.Len(t, batch, 7)
	}
	_, _, err := s.ReadBatch(t.Context())
	require.ErrorIs(t, err, service.ErrEndOfInput)
}

// The sink that answers late answers everything, also what does not fill a group.
func TestALateSinkAnswersEverything(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	out, _, inFlight, err := lateOutput(nil, nil)
	require.NoError(t, err)
	require.NoError(t, out.Connect(t.Context()))
	const batches = lateBatches/2 + 10
	answers := make(chan error, batches)
	for range batches {
		go func() { answers <- out.WriteBatch(t.Context(), service.MessageBatch{service.NewMessage(nil)}) }()
	}
	for range batches {
		require.NoError(t, <-answers)
	}
	require.NoError(t, out.Close(t.Context()))
	require.Equal(t, lateBatches, inFlight)
	require.EqualValues(t, batches, out.(*lateSink).messages.Load())
}

func TestYAMLOfAComponent(t *testing.T) {
	require.Equal(t, "lakestream:\n  stream: bench/events\n  max_in_flight: 2\n  engine: { data_dir: \"/d\", drain_timeout: 10m }",
		component(output("/d", "max_in_flight: 2", withTables)))
}
