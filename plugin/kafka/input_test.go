package kafka

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestATopicIsReadInTheOrderOfEachPartition(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(2, "orders"))
	k.produce(t, "orders", 0, 0, 500)
	k.produce(t, "orders", 1, 1000, 500)

	in := k.connect(t, "topics: [ orders ]\nmax_yield_batch_messages: 70")
	byPartition := make([][]string, 2)
	for len(byPartition[0])+len(byPartition[1]) < 1000 {
		d := read(t, in)
		require.LessOrEqual(t, len(d.values), 70)
		byPartition[d.partition] = append(byPartition[d.partition], d.values...)
		d.accept(t)
	}
	require.Equal(t, numbers(0, 500), byPartition[0])
	require.Equal(t, numbers(1000, 500), byPartition[1])
}

func TestAMessageHasTheRecordAndItsPlace(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(3, "orders"))
	at := time.UnixMilli(1_793_491_200_123)
	k.write(t, &kgo.Record{
		Topic: "orders", Partition: 2, Key: []byte("k"), Value: []byte("v"), Timestamp: at,
		Headers: []kgo.RecordHeader{{Key: "trace", Value: []byte("t-1")}, {Key: metaTopic, Value: []byte("a lie")}},
	})
	k.write(t, &kgo.Record{Topic: "orders", Partition: 2, Headers: []kgo.RecordHeader{{Key: metaKey, Value: []byte("a lie")}}})
	require.NoError(t, k.producer.Flush(t.Context()))

	in := k.connect(t, "topics: [ orders ]")
	var messages service.MessageBatch
	for len(messages) < 2 {
		messages = append(messages, read(t, in).messages...)
	}
	value, err := messages[0].AsBytes()
	require.NoError(t, err)
	require.Equal(t, "v", string(value))
	require.Equal(t, map[string]any{
		metaTopic: "orders", metaPartition: 2, metaOffset: int64(0), metaKey: "k", metaTimestampMS: at.UnixMilli(),
		metaTimestampUnix: at.Unix(), metaTombstone: false, "trace": "t-1", metaLag: int64(1),
	}, metadataOf(messages[0]))

	of := metadataOf(messages[1])
	require.Equal(t, true, of[metaTombstone])
	require.Equal(t, int64(1), of[metaOffset])
	require.NotContains(t, of, metaKey, "a record without a key has none, whatever its headers say")
}

func metadataOf(m *service.Message) map[string]any {
	all := make(map[string]any)
	_ = m.MetaWalkMut(func(key string, value any) error {
		all[key] = value
		return nil
	})
	return all
}

func TestWithoutAGroupEveryStartBeginsAgain(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	k.produce(t, "orders", 0, 0, 10)
	for range 2 {
		in := k.input(t, "topics: [ orders ]")
		require.NoError(t, in.Connect(t.Context()))
		require.Equal(t, numbers(0, 10), readN(t, in, 10))
		require.NoError(t, in.Close(t.Context()))
	}
}

func TestLatestBeginsAfterWhatIsThere(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	k.produce(t, "orders", 0, 0, 10)
	listed := k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Count: -1, Observe: true})
	in := k.connect(t, "topics: [ orders ]\nstart_offset: latest")
	require.NoError(t, listed.Wait(t.Context(), 1), "it knows where the topic ends")
	k.produce(t, "orders", 0, 10, 5)
	require.Equal(t, numbers(10, 5), readN(t, in, 5))
}

func TestARestartGoesOnAfterWhatWasAccepted(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	k.produce(t, "orders", 0, 0, 100)

	first := k.input(t, "topics: [ orders ]\nconsumer_group: lake\nmax_yield_batch_messages: 10")
	require.NoError(t, first.Connect(t.Context()))
	require.Equal(t, numbers(0, 50), readN(t, first, 50))
	require.NoError(t, first.Close(t.Context()), "what was accepted is committed")
	k.requireCommitted(t, "lake", "orders", 0, 50)

	second := k.connect(t, "topics: [ orders ]\nconsumer_group: lake")
	require.Equal(t, numbers(50, 50), readN(t, second, 50))
	k.requireCommitted(t, "lake", "orders", 0, 100)
}

// Whatever order acks come in, a commit never passes a record that is open.
func TestACommitStopsBeforeWhatIsInFlight(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	k.produce(t, "orders", 0, 0, 40)
	in := k.connect(t, "topics: [ orders ]\nconsumer_group: lake\nmax_yield_batch_messages: 10")
	batches := []delivered{read(t, in), read(t, in), read(t, in), read(t, in)}

	batches[0].accept(t)
	batches[2].accept(t)
	batches[3].accept(t)
	k.requireCommitted(t, "lake", "orders", 0, 10)
	batches[1].accept(t)
	k.requireCommitted(t, "lake", "orders", 0, 40)
}

func TestWhatAKilledMemberDidNotCommitIsDeliveredAgain(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	k.produce(t, "orders", 0, 0, 30)
	commits := k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: -1, Err: kerr.UnknownServerError})

	killed := k.input(t, "topics: [ orders ]\nconsumer_group: lake\nmax_yield_batch_messages: 10")
	require.NoError(t, killed.Connect(t.Context()))
	require.Equal(t, numbers(0, 20), readN(t, killed, 20))
	require.ErrorContains(t, killed.Close(t.Context()), "committing offsets of the group lake")
	commits.Remove()

	again := k.connect(t, "topics: [ orders ]\nconsumer_group: lake")
	require.Equal(t, numbers(0, 30), readN(t, again, 30))
}

func TestARejectedBatchIsDeliveredAgain(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	k.produce(t, "orders", 0, 0, 30)
	in := k.connect(t, "topics: [ orders ]\nconsumer_group: lake\nmax_yield_batch_messages: 10")

	first := read(t, in)
	first.reject(t, errRefused)
	all := readN(t, in, 30)
	require.Equal(t, numbers(0, 30), sorted(all))
	k.requireCommitted(t, "lake", "orders", 0, 30)
}

func TestOneBatchAtATimeKeepsTheOrderOfRejectedOnes(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	k.produce(t, "orders", 0, 0, 50)
	in := k.connect(t, "topics: [ orders ]\nmax_yield_batch_messages: 10\ncheckpoint_limit: 1")

	var all []string
	for len(all) < 50 {
		d := read(t, in)
		if len(all)%20 == 0 { // the first time
			d.reject(t, errRefused)
			d = read(t, in)
		}
		all = append(all, d.values...)
		d.accept(t)
	}
	require.Equal(t, numbers(0, 50), all)
}

func TestOnlyTheMessagesThatWereRejectedComeAgain(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	k.produce(t, "orders", 0, 0, 5)
	in := k.connect(t, "topics: [ orders ]\nconsumer_group: lake")

	var got []string
	for len(got) < 5 { // however the records were fetched
		d := read(t, in)
		failed := service.NewBatchError(d.messages, errRefused)
		rejected := 0
		for i, value := range d.values {
			if value == "1" || value == "3" {
				_ = failed.Failed(i, errRefused)
				rejected++
			}
		}
		got = append(got, d.values...)
		if rejected > 0 {
			d.reject(t, failed)
			continue
		}
		d.accept(t)
	}
	require.Equal(t, []string{"1", "3"}, readN(t, in, 2))
	k.requireCommitted(t, "lake", "orders", 0, 5)
}

// A pipeline may have joined messages: the one that failed stands for all.
func TestAnErrorThatDoesNotTellOfAllMessagesRejectsAll(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	k.produce(t, "orders", 0, 0, 5)
	in := k.connect(t, "topics: [ orders ]\nmax_yield_batch_messages: 5")

	d := read(t, in)
	joined := service.MessageBatch{service.NewMessage([]byte("all of them"))}
	failed := service.NewBatchError(joined, errRefused)
	_ = failed.Failed(0, errRefused)
	d.reject(t, failed)
	require.Equal(t, d.values, readN(t, in, len(d.values)))
}

func TestRejectedMessagesMayBeDropped(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	k.produce(t, "orders", 0, 0, 5)
	in := k.connect(t, "topics: [ orders ]\nconsumer_group: lake\nauto_replay_nacks: false")
	for n := 0; n < 5; {
		d := read(t, in)
		d.reject(t, errRefused)
		n += len(d.values)
	}
	k.requireCommitted(t, "lake", "orders", 0, 5)
}

// While one partition has as much in flight as it may, the others go on.
func TestAPartitionThatIsNotAcceptedHoldsNoOtherUp(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(2, "orders"))
	k.produce(t, "orders", 0, 0, 300)
	in := k.connect(t, "topics: [ orders ]\nmax_yield_batch_messages: 10\ncheckpoint_limit: 25")
	stuck := []delivered{read(t, in), read(t, in)}

	k.produce(t, "orders", 1, 1000, 300)
	require.Equal(t, numbers(1000, 300), readN(t, in, 300))
	require.Equal(t, numbers(0, 20), append(stuck[0].values, stuck[1].values...))

	stuck[0].accept(t)
	stuck[1].accept(t)
	require.Equal(t, numbers(20, 280), readN(t, in, 280))
}

func TestATopicThatDoesNotExistIsWaitedFor(t *testing.T) {
	k := startKafka(t)
	in := k.connect(t, "topics: [ orders ]\nconsumer_group: lake")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := tryRead(ctx, in)
	require.ErrorIs(t, err, context.DeadlineExceeded, "it waits; it does not fail")

	require.NoError(t, k.CreateTopic("orders", 1, nil))
	k.produce(t, "orders", 0, 0, 10)
	require.Equal(t, numbers(0, 10), readN(t, in, 10))
}

func TestTopicsMayBeGivenByPattern(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders-eu", "orders-us", "returns"))
	k.produce(t, "orders-eu", 0, 0, 5)
	k.produce(t, "returns", 0, 100, 5)
	k.produce(t, "orders-us", 0, 5, 5)
	in := k.connect(t, "topics: [ '^orders-' ]\nregexp_topics: true\nconsumer_group: lake")
	require.Equal(t, numbers(0, 10), sorted(readN(t, in, 10)))
}

func TestRecordsOfAnAbortedTransactionAreLeftOut(t *testing.T) {
	k := startKafka(t, kfake.SeedTopics(1, "orders"))
	producer, err := kgo.NewClient(kgo.SeedBrokers(k.ListenAddrs()...), kgo.TransactionalID("t"))
	require.NoError(t, err)
	defer producer.Close()
	for value, end := range map[string]kgo.TransactionEndTry{"aborted": kgo.TryAbort, "committed": kgo.TryCommit} {
		require.NoError(t, producer.BeginTransaction())
		record := &kgo.Record{Topic: "orders", Value: []byte(value)}
		require.NoError(t, producer.ProduceSync(t.Context(), record).FirstErr())
		require.NoError(t, producer.EndTransaction(t.Context(), end))
	}
	in := k.connect(t, "topics: [ orders ]")
	require.Equal(t, []string{"committed"}, readN(t, in, 1))
}

func TestBrokersThatAreNotThereAreNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // only to learn of a free port
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	in := inputOf(t, "seed_brokers: [ \""+address+"\" ]\ntopics: [ orders ]\nconsumer_group: lake")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = in.Connect(ctx)
	require.ErrorContains(t, err, "connecting to the brokers ["+address+"]")
	_, _, err = in.ReadBatch(t.Context())
	require.ErrorIs(t, err, service.ErrNotConnected)
	require.NoError(t, in.Close(t.Context()))
}

func TestCredentials(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"), kfake.EnableSASL(), kfake.Superuser(mechanism, "lake", "secret"))
			require.NoError(t, err)
			defer cluster.Close()
			yaml := "seed_brokers: [ \"" + cluster.ListenAddrs()[0] + "\" ]\ntopics: [ orders ]\nsasl: [ { mechanism: " + strings.ToLower(mechanism) + ", username: lake, password: "
			in := inputOf(t, yaml+"secret } ]")
			require.NoError(t, in.Connect(t.Context()))
			require.NoError(t, in.Close(t.Context()))

			in = inputOf(t, yaml+"wrong } ]")
			err = in.Connect(t.Context())
			require.ErrorContains(t, err, "connecting to the brokers")
			require.NotContains(t, err.Error(), "wrong")
			require.NoError(t, in.Close(t.Context()))
		})
	}
}
