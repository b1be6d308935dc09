package plugin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// quick are settings of a group that finds changes soon.
const quick = "\nheartbeat_interval: 20ms\ncommit_period: 20ms"

// write appends n numbered messages to a stream, spread over its partitions.
func (l lake) write(t *testing.T, stream string, partitions, n int) {
	t.Helper()
	o := l.connectOutput(t, fmt.Sprintf("stream: %s\npartitions: %d\npartition: ${! content().string().number() %% %d }", stream, partitions, partitions))
	require.NoError(t, o.WriteBatch(t.Context(), numbered(0, n)))
}

// Given a group that has committed, when an input of it starts again, then it goes
// on there, whatever start_offset says.
func TestAGroupGoesOnWhereItHasCommitted(t *testing.T) {
	l := newLake(t)
	l.write(t, "g/s", 1, 10)
	const conf = "streams: [ g/s ]\nconsumer_group: audit\nmax_yield_batch_messages: 4" + quick
	in := l.input(t, conf)
	require.NoError(t, in.Connect(t.Context()))
	batch, ack := next(t, in)
	require.Equal(t, []string{"0", "1", "2", "3"}, contents(t, batch))
	require.NoError(t, ack(t.Context(), nil))
	batch, _ = next(t, in) // is out when the input ends
	require.Equal(t, []string{"4", "5", "6", "7"}, contents(t, batch))
	require.NoError(t, in.Close(context.Background()))

	again := l.input(t, conf+"\nstart_offset: latest\nstop_at_end: true")
	require.NoError(t, again.Connect(t.Context()))
	require.Equal(t, []string{"4", "5", "6", "7", "8", "9"}, contents(t, drain(t, again)))
	require.NoError(t, again.Close(context.Background()))
	committed := l.input(t, conf+"\nstart_offset: committed\nstop_at_end: true")
	require.NoError(t, committed.Connect(t.Context()))
	require.Empty(t, drain(t, committed))
	require.NoError(t, committed.Close(context.Background()))
}

func TestAGroupWithoutACommitIsRefusedWhereOneIsWanted(t *testing.T) {
	l := newLake(t)
	l.write(t, "g/s", 2, 2)
	in := l.input(t, "streams: [ g/s ]\nconsumer_group: audit\nstart_offset: committed"+quick)
	err := cause(t, in.Connect(t.Context()))
	require.ErrorIs(t, err, engine.ErrInvalid)
	require.ErrorContains(t, err, "group audit has committed nothing in g/s:")
	require.NoError(t, in.Close(context.Background()))
}

// A group that begins at the head has its place at once: what is appended before
// its first commit is not skipped by the next start.
func TestALatestStartIsRemembered(t *testing.T) {
	l := newLake(t)
	l.write(t, "g/s", 1, 5)
	const conf = "streams: [ g/s ]\nconsumer_group: audit\nstart_offset: latest" + quick
	in := l.input(t, conf)
	require.NoError(t, in.Connect(t.Context()))
	require.Eventually(t, func() bool {
		g, err := in.connection.engine.Group(t.Context(), "audit")
		return err == nil && len(g.Partitions) == 1 && g.Partitions[0].Committed != nil
	}, patience, 5*time.Millisecond)
	require.NoError(t, in.Close(context.Background()))
	l.write(t, "g/s", 1, 3)
	again := l.input(t, conf+"\nstop_at_end: true")
	require.NoError(t, again.Connect(t.Context()))
	require.Equal(t, []string{"0", "1", "2"}, contents(t, drain(t, again)))
	require.NoError(t, again.Close(context.Background()))
}

// In order: a partition has one batch in flight, and what is rejected comes again
// before what follows it.
func TestOrderHoldsOverARejection(t *testing.T) {
	l := newLake(t)
	l.write(t, "g/s", 1, 6)
	in := l.connectInput(t, "streams: [ g/s ]\nstop_at_end: true\nmax_yield_batch_messages: 2")
	batch, ack := next(t, in)
	require.Equal(t, []string{"0", "1"}, contents(t, batch))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err := in.ReadBatch(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded, "nothing before it was accepted")
	require.NoError(t, ack(t.Context(), errors.New("not now")))
	require.Equal(t, []string{"0", "1", "2", "3", "4", "5"}, contents(t, drain(t, in)))
}

// Two members share the partitions; when one goes, the other has them all; together
// they deliver everything.
func TestTwoInputsOfAGroupShareTheWork(t *testing.T) {
	l := newLake(t)
	l.write(t, "g/s", 4, 400)
	const conf = "streams: [ g/s ]\nconsumer_group: audit\nmax_yield_batch_messages: 5" + quick
	var mu sync.Mutex
	seen := make(map[string]int)
	var tasks sync.WaitGroup
	read := func(ctx context.Context, in *input) {
		for {
			batch, ack, err := in.ReadBatch(ctx)
			if err != nil {
				return
			}
			mu.Lock()
			for _, m := range batch {
				seen[content(t, m)]++
			}
			mu.Unlock()
			_ = ack(ctx, nil)
		}
	}
	first, second := l.input(t, conf), l.connectInput(t, conf)
	require.NoError(t, first.Connect(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	tasks.Go(func() { read(ctx, first) })
	tasks.Go(func() { read(t.Context(), second) })
	require.Eventually(t, func() bool {
		g, err := second.connection.engine.Group(t.Context(), "audit")
		return err == nil && len(g.Members) == 2 && g.Members[0].Partitions == 2 && g.State == engine.GroupStable
	}, patience, 5*time.Millisecond, "each has two")
	cancel()
	require.NoError(t, first.Close(context.Background()))
	require.Eventually(t, func() bool {
		g, err := second.connection.engine.Group(t.Context(), "audit")
		return err == nil && len(g.Members) == 1 && g.Members[0].Partitions == 4 && g.Lag == 0
	}, patience, 5*time.Millisecond, "the other has all and brings them to the end")
	mu.Lock()
	defer mu.Unlock()
	for i := range 400 {
		require.GreaterOrEqual(t, seen[strconv.Itoa(i)], 1, "message %d", i)
	}
}

// Given a member whose pipeline is stuck, when another joins, then it gets its share
// after rebalance_timeout, and what the stuck one still accepts changes nothing.
func TestAStuckPipelineIsOverruled(t *testing.T) {
	l := newLake(t)
	l.write(t, "g/s", 2, 20)
	const conf = "streams: [ g/s ]\nconsumer_group: audit\nmax_yield_batch_messages: 4\nrebalance_timeout: 200ms" + quick
	stuck := l.connectInput(t, conf)
	var acks []service.AckFunc
	for range 2 {
		_, ack := next(t, stuck)
		acks = append(acks, ack)
	}
	require.Eventually(t, func() bool {
		g, err := stuck.connection.engine.Group(t.Context(), "audit")
		return err == nil && g.Stuck == 2
	}, patience, 5*time.Millisecond, "it shows")
	other := l.connectInput(t, conf)
	batch, ack := next(t, other)
	require.Contains(t, []string{"0", "1"}, content(t, batch[0]), "it begins where the stuck one does not get on")
	for _, late := range acks {
		require.NoError(t, late(t.Context(), nil))
	}
	require.NoError(t, ack(t.Context(), nil))
	batch, ack = next(t, other)
	require.Contains(t, []string{"8", "9"}, content(t, batch[0]), "in order")
	require.NoError(t, ack(t.Context(), nil))
}

func TestPatternsFindStreamsThatAreCreatedLater(t *testing.T) {
	l := newLake(t)
	l.write(t, "shop/orders", 1, 1)
	in := l.connectInput(t, "streams: [ 'shop/.*' ]\nregexp_streams: true\nstart_offset: latest"+quick)
	l.write(t, "other/orders", 1, 1)
	l.write(t, "shop/returns", 1, 2)
	batch, ack := next(t, in)
	require.Equal(t, "shop/returns", meta(batch[0], metaStream))
	require.Equal(t, []string{"0", "1"}, contents(t, batch), "from its first record")
	require.NoError(t, ack(t.Context(), nil))
}

// Two whole pipelines of one group, in one process, that end at the end: every
// record goes through one of them at least.
func TestTwoPipelinesOfAGroupEndTogether(t *testing.T) {
	l := newLake(t)
	l.write(t, "g/from", 4, 300)
	yaml := fmt.Sprintf(`
input:
  lakestream: { streams: [ g/from ], consumer_group: copy, stop_at_end: true, heartbeat_interval: 20ms, max_yield_batch_messages: 7, %[1]s }
output:
  lakestream: { stream: g/to, %[1]s }
`, l.engine(""))
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { pipeline(t, yaml) })
	}
	both.Wait()
	seen := make(map[string]bool)
	for _, text := range contents(t, l.readAll(t, "g/to")) {
		seen[text] = true
	}
	require.Len(t, seen, 300)
}

func TestASecondInputOfOneInstanceIDEndsTheFirst(t *testing.T) {
	l := newLake(t)
	l.write(t, "g/s", 1, 3)
	const conf = "streams: [ g/s ]\nconsumer_group: audit\ninstance_id: blue" + quick
	first := l.connectInput(t, conf)
	_, _ = next(t, first)
	second := l.connectInput(t, conf)
	_, _ = next(t, second)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, _, err := first.ReadBatch(ctx)
	require.ErrorIs(t, err, engine.ErrFenced)
	require.ErrorContains(t, err, "instance_id")
}
