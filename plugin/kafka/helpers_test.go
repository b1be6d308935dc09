package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

// patience bounds waits for what must happen; no test passes by waiting for it.
const patience = 60 * time.Second

// kafka is brokers of a test's own, and a client that writes to them.
type kafka struct {
	*kfake.Cluster
	producer *kgo.Client
}

func startKafka(t *testing.T, opts ...kfake.Opt) *kafka {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	require.NoError(t, err)
	k := &kafka{Cluster: cluster}
	k.producer, err = kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(func() {
		k.producer.Close()
		cluster.Close()
	})
	return k
}

// produce appends records "from", "from+1", … to a partition.
func (k *kafka) produce(t *testing.T, topic string, partition int32, from, n int) {
	t.Helper()
	for i := range n {
		k.write(t, &kgo.Record{Topic: topic, Partition: partition, Value: fmt.Appendf(nil, "%d", from+i)})
	}
	require.NoError(t, k.producer.Flush(t.Context()))
}

func (k *kafka) write(t *testing.T, r *kgo.Record) {
	t.Helper()
	k.producer.Produce(t.Context(), r, func(_ *kgo.Record, err error) {
		if err != nil {
			t.Error(err)
		}
	})
}

// input returns an input of these brokers. Commits follow quickly, and rebalances
// do not wait long.
func (k *kafka) input(t *testing.T, fields string) *input {
	t.Helper()
	return inputOf(t, fmt.Sprintf("seed_brokers: [ %q ]\ncommit_period: 100ms\nheartbeat_interval: 100ms\nmetadata_max_age: 100ms\n%s", k.ListenAddrs()[0], fields))
}

func inputOf(t *testing.T, yaml string) *input {
	t.Helper()
	conf, err := config.KafkaInputSpec().ParseYAML(yaml, nil)
	require.NoError(t, err)
	parsed, err := config.ParseKafkaInput(conf)
	require.NoError(t, err)
	in, err := newInput(parsed, service.MockResources().Logger(), engine.SystemClock{})
	require.NoError(t, err)
	return in
}

// connect returns a connected input that the test closes at its end.
func (k *kafka) connect(t *testing.T, fields string) *input {
	t.Helper()
	in := k.input(t, fields)
	require.NoError(t, in.Connect(t.Context()))
	t.Cleanup(func() { _ = in.Close(context.Background()) })
	return in
}

// delivered is a batch that was handed out, as text.
type delivered struct {
	partition int
	values    []string
	messages  service.MessageBatch
	ack       service.AckFunc
}

func read(t *testing.T, in *input) delivered {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := tryRead(ctx, in)
	require.NoError(t, err)
	return d
}

func tryRead(ctx context.Context, in *input) (delivered, error) {
	messages, ack, err := in.ReadBatch(ctx)
	if err != nil {
		return delivered{}, err
	}
	d := delivered{messages: messages, ack: ack}
	for _, m := range messages {
		value, err := m.AsBytes()
		if err != nil {
			return delivered{}, err
		}
		d.values = append(d.values, string(value))
	}
	number, _ := messages[0].MetaGetMut(metaPartition)
	d.partition, _ = number.(int)
	return d, nil
}

func (d delivered) accept(t *testing.T) {
	t.Helper()
	require.NoError(t, d.ack(t.Context(), nil))
}

func (d delivered) reject(t *testing.T, err error) {
	t.Helper()
	require.NoError(t, d.ack(t.Context(), err))
}

// readN reads and accepts until n records have come, and returns them in order.
func readN(t *testing.T, in *input, n int) []string {
	t.Helper()
	var all []string
	for len(all) < n {
		d := read(t, in)
		all = append(all, d.values...)
		d.accept(t)
	}
	require.Len(t, all, n)
	return all
}

// numbers are the texts "from" to "from+n-1".
func numbers(from, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = strconv.Itoa(from + i)
	}
	return all
}

func sorted(values []string) []string {
	return slices.SortedFunc(slices.Values(values), func(a, b string) int {
		x, _ := strconv.Atoi(a)
		y, _ := strconv.Atoi(b)
		return x - y
	})
}

// requireCommitted waits until a group has committed an offset.
func (k *kafka) requireCommitted(t *testing.T, group, topic string, partition int32, offset int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := k.WaitGroupInfo(ctx, group, func(info *kfake.GroupInfo) bool {
		return info != nil && info.Commits[topic][partition].Offset == offset
	})
	require.NoError(t, err, "no commit of %d", offset)
}

var errRefused = errors.New("the output refused it")
