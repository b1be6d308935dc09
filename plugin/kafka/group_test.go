package kafka

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// tally counts what members of a group accepted, by value.
type tally struct {
	mu     sync.Mutex
	counts map[string]int // guarded by mu
}

func (c *tally) add(values []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range values {
		c.counts[v]++
	}
}

func (c *tally) distinct() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.counts)
}

// consume reads and accepts until the context ends.
func consume(ctx context.Context, in *input, c *tally) {
	for {
		d, err := tryRead(ctx, in)
		if err != nil {
			return
		}
		c.add(d.values)
		_ = d.ack(ctx, nil)
	}
}

// A member joins and leaves while records flow: the other gets what it gives up,
// nothing is lost, and as everything in flight is accepted in time nothing comes
// twice.
func TestMembersShareAndHandOverPartitions(t *testing.T) {
	const partitions, each = 6, 400
	k := startKafka(t, kfake.SeedTopics(partitions, "orders"))
	fields := "topics: [ orders ]\nconsumer_group: lake\nmax_yield_batch_messages: 20"
	accepted := &tally{counts: make(map[string]int)}
	ctx, stop := context.WithCancel(t.Context())
	var members sync.WaitGroup

	staying := k.connect(t, fields)
	members.Go(func() { consume(ctx, staying, accepted) })
	for round := range 3 {
		joining := k.input(t, fields)
		require.NoError(t, joining.Connect(ctx))
		reading, stopReading := context.WithCancel(ctx)
		var done sync.WaitGroup
		done.Go(func() { consume(reading, joining, accepted) })
		_, err := k.WaitGroupStable(ctx, "lake", 2)
		require.NoError(t, err)
		for p := range int32(partitions) {
			k.produce(t, "orders", p, (round*partitions+int(p))*each, each)
		}
		stopReading()
		done.Wait()
		require.NoError(t, joining.Close(ctx))
	}
	require.Eventually(t, func() bool { return accepted.distinct() == 3*partitions*each }, patience, 10*time.Millisecond)
	stop()
	members.Wait()
	for value, n := range accepted.counts {
		require.Equal(t, 1, n, "record %s", value)
	}
}

// The one that gives a partition up waits for what is in flight, and commits it.
func TestWhatIsInFlightIsAcceptedBeforeItsPartitionMoves(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(2, "orders"))
	k.produce(t, "orders", 0, 0, 10)
	k.produce(t, "orders", 1, 100, 10)
	fields := "topics: [ orders ]\nconsumer_group: lake"
	first := k.connect(t, fields)
	var held []delivered
	for n := 0; n < 20; n += len(held[len(held)-1].values) {
		held = append(held, read(t, first))
	}

	second := k.connect(t, fields)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := k.WaitGroupStable(ctx, "lake", 2)
	require.NoError(t, err, "the other is a member, and gets nothing yet")
	for _, d := range held {
		d.accept(t)
	}
	k.requireCommitted(t, "lake", "orders", 0, 10)
	k.requireCommitted(t, "lake", "orders", 1, 10)

	k.produce(t, "orders", 0, 10, 1)
	k.produce(t, "orders", 1, 110, 1)
	var got []string
	for _, in := range []*input{first, second} {
		got = append(got, readN(t, in, 1)...)
	}
	require.ElementsMatch(t, []string{"10", "110"}, got)
}

// A member that keeps a batch too long loses the partition, and its late ack
// commits nothing: the new owner has begun before that batch.
func TestAnAckAfterThePartitionMovedCommitsNothing(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	k.produce(t, "orders", 0, 0, 10)
	fields := "topics: [ orders ]\nconsumer_group: lake\nrebalance_timeout: 200ms\nmax_yield_batch_messages: 10"
	slow := k.connect(t, fields)
	held := read(t, slow)

	moved := place{topic: "orders"}
	slow.consumer.revoked(t.Context(), slow.consumer.client, moved.byTopic())
	held.accept(t)
	require.NoError(t, slow.Close(t.Context()))

	next := k.connect(t, fields)
	require.Equal(t, numbers(0, 10), readN(t, next, 10))
}

func TestARejectedBatchOfAPartitionThatMovedIsItsNewOwners(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	k.produce(t, "orders", 0, 0, 10)
	in := k.connect(t, "topics: [ orders ]\nconsumer_group: lake\nmax_yield_batch_messages: 10")
	held := read(t, in)
	in.consumer.lost(t.Context(), in.consumer.client, place{topic: "orders"}.byTopic())
	held.reject(t, errRefused)
	in.consumer.tasks.Go(func() {}) // none was started: the wait below ends
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := tryRead(ctx, in)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// Brokers go away and come back on the same addresses, with what they had.
func TestReadingGoesOnWhenTheBrokersComeBack(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // only to learn of a free port
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is TCP
	require.NoError(t, listener.Close())
	dir := t.TempDir()
	start := func() *kfake.Cluster {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.DataDir(dir), kfake.SeedTopics(1, "orders"))
		require.NoError(t, err)
		return cluster
	}
	produce := func(from, n int) {
		producer, err := kgo.NewClient(kgo.SeedBrokers(fmt.Sprintf("127.0.0.1:%d", port)), kgo.DefaultProduceTopic("orders"))
		require.NoError(t, err)
		defer producer.Close()
		for _, value := range numbers(from, n) {
			require.NoError(t, producer.ProduceSync(t.Context(), kgo.StringRecord(value)).FirstErr())
		}
	}

	cluster := start()
	produce(0, 10)
	in := inputOf(t, fmt.Sprintf("seed_brokers: [ \"127.0.0.1:%d\" ]\ntopics: [ orders ]\nconsumer_group: lake\ncommit_period: 100ms\nheartbeat_interval: 100ms", port))
	require.NoError(t, in.Connect(t.Context()))
	require.Equal(t, numbers(0, 10), readN(t, in, 10))
	cluster.Close()

	cluster = start()
	defer cluster.Close()
	produce(10, 10)
	seen := make(map[string]bool)
	for len(seen) < 10 { // what was not committed when they went may come again
		d, err := tryRead(t.Context(), in)
		if err != nil {
			require.ErrorIs(t, err, service.ErrNotConnected)
			require.NoError(t, in.Connect(t.Context()))
			continue
		}
		for _, value := range d.values {
			if len(value) == 2 {
				seen[value] = true
			}
		}
		d.accept(t)
	}
	require.NoError(t, in.Close(t.Context()))
}

// What the client would never read again is read by a new connection.
func TestAPartitionThatTheClientGaveUpIsReadAgain(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	k.produce(t, "orders", 0, 0, 10)
	in := k.connect(t, "topics: [ orders ]\nconsumer_group: lake")
	require.Equal(t, numbers(0, 10), readN(t, in, 10))
	k.requireCommitted(t, "lake", "orders", 0, 10)

	in.consumer.note([]kgo.FetchError{{Topic: "orders", Err: errRefused}})
	_, _, err := in.ReadBatch(t.Context())
	require.ErrorIs(t, err, service.ErrNotConnected)
	require.NoError(t, in.Connect(t.Context()))
	k.produce(t, "orders", 0, 10, 5)
	require.Equal(t, numbers(10, 5), readN(t, in, 5))
}

func TestClosingDoesNotWaitForABrokerThatDoesNotAnswer(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	k.produce(t, "orders", 0, 0, 10)
	in := k.connect(t, "topics: [ orders ]\nconsumer_group: lake\ncommit_period: 1h")
	readN(t, in, 10)
	hold := make(chan struct{})
	k.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
		k.SleepControl(func() { <-hold })
		return nil, nil, false
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- in.Close(ctx) }()
	<-ctx.Done()
	close(hold)
	require.ErrorIs(t, <-closed, context.DeadlineExceeded)
}

// What is handed out stays within a window of what is committed: commits come early,
// and where they fail messages wait.
func TestNothingIsHandedOutFarBeyondWhatIsCommitted(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	k.produce(t, "orders", 0, 0, 200)
	commits := k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: -1})
	in := k.input(t, "topics: [ orders ]\nconsumer_group: lake\nmax_yield_batch_messages: 10")
	in.window = 50
	require.NoError(t, in.Connect(t.Context()))
	t.Cleanup(func() { _ = in.Close(context.Background()) })

	require.Equal(t, numbers(0, 50), readN(t, in, 50))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := tryRead(ctx, in)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	commits.Remove()
	require.Equal(t, numbers(50, 150), readN(t, in, 150))
}
