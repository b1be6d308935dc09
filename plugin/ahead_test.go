package plugin

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
)

// isAhead waits until so many batches are read ahead.
func isAhead(t *testing.T, in *input, batches int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(in.session.ahead) == batches }, patience, time.Millisecond)
}

// Given a batch that is out, then the next one is read meanwhile, and comes when the
// first was accepted; over a rejection it stays behind what comes again.
func TestTheNextBatchIsReadAheadAndKeepsItsTurn(t *testing.T) {
	l := newLake(t)
	l.write(t, "a/s", 1, 8)
	in := l.connectInput(t, "streams: [ a/s ]\nstop_at_end: true\nmax_yield_batch_messages: 2")
	_, ack := next(t, in)
	isAhead(t, in, 1)
	require.True(t, isSilent(in), "it waits for its turn")
	require.NoError(t, ack(t.Context(), errors.New("not now")))
	batch, ack := next(t, in)
	require.Equal(t, []string{"0", "1"}, contents(t, batch))
	isAhead(t, in, 1)
	require.NoError(t, ack(t.Context(), nil))
	require.Equal(t, []string{"2", "3", "4", "5", "6", "7"}, contents(t, drain(t, in)))
	isAhead(t, in, 0)
}

// Near the head nothing is read ahead: the next batch has all that was appended while
// the last one was out, rather than the first of it.
func TestBatchesAtTheHeadAreNotCutShort(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: a/s")
	require.NoError(t, o.WriteBatch(t.Context(), numbered(0, 4)))
	in := l.connectInput(t, "streams: [ a/s ]")
	_, ack := next(t, in)
	for i := range 4 {
		require.NoError(t, o.WriteBatch(t.Context(), numbered(4+i, 1)))
		require.True(t, isSilent(in))
	}
	require.NoError(t, ack(t.Context(), nil))
	batch, ack := next(t, in)
	require.Equal(t, []string{"4", "5", "6", "7"}, contents(t, batch))
	require.NoError(t, ack(t.Context(), nil))
}

// Given more partitions than may read ahead, all with a batch out and more to read,
// then each had its turn: what some read ahead keeps no other from being read.
func TestReadingAheadHoldsUpNoOtherPartition(t *testing.T) {
	const partitions = 2*preparedBatches + 1
	l := newLake(t)
	l.write(t, "a/s", partitions, 3*partitions)
	in := l.connectInput(t, "streams: [ a/s ]\nstop_at_end: true\nmax_yield_batch_messages: 1")
	var acks []service.AckFunc
	seen := make(map[any]bool)
	for range partitions {
		batch, ack := next(t, in)
		seen[meta(batch[0], metaPartition)] = true
		acks = append(acks, ack)
	}
	require.Len(t, seen, partitions)
	isAhead(t, in, preparedBatches)
	for _, ack := range acks {
		require.NoError(t, ack(t.Context(), nil))
	}
	last := make(map[any]int)
	for _, m := range drain(t, in) {
		n, err := strconv.Atoi(content(t, m))
		require.NoError(t, err)
		require.Greater(t, n, last[meta(m, metaPartition)], "in order")
		last[meta(m, metaPartition)] = n
	}
}

// What is read ahead is in no window: it is the next owner's when the partition goes.
func TestWhatWasReadAheadIsNotConsumed(t *testing.T) {
	l := newLake(t)
	l.write(t, "a/s", 1, 6)
	const conf = "streams: [ a/s ]\nconsumer_group: audit\nmax_yield_batch_messages: 2" + quick
	in := l.input(t, conf)
	require.NoError(t, in.Connect(t.Context()))
	_, ack := next(t, in)
	require.NoError(t, ack(t.Context(), nil))
	_, ack = next(t, in)
	isAhead(t, in, 1)
	require.NoError(t, ack(t.Context(), nil))
	require.NoError(t, in.Close(context.Background()))
	again := l.connectInput(t, conf+"\nstop_at_end: true")
	require.Equal(t, []string{"4", "5"}, contents(t, drain(t, again)))
}

func TestReadingAheadIsBoundedInBytes(t *testing.T) {
	for batchBytes, want := range map[int64]int{
		0: preparedBatches, 1: preparedBatches, 1 << 20: preparedBatches, 4 << 20: 4, 5 << 20: 3, aheadBytes: 1, 1 << 40: 1,
	} {
		require.Equal(t, want, batchesAhead(batchBytes), "batches of %d bytes", batchBytes)
	}
}
