package plugin

import (
	"fmt"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// fromKafka makes messages as an input that reads Kafka does.
func fromKafka(topic string, partition int, offsets ...int64) service.MessageBatch {
	batch := make(service.MessageBatch, len(offsets))
	for i, offset := range offsets {
		batch[i] = service.NewMessage(fmt.Appendf(nil, "%s/%d/%d", topic, partition, offset))
		batch[i].MetaSetMut(metaKafkaTopic, topic)
		batch[i].MetaSetMut(metaKafkaPartition, partition)
		batch[i].MetaSetMut(metaKafkaOffset, offset)
	}
	return batch
}

func TestMessagesOfKafkaAreAppendedOnce(t *testing.T) {
	l := newLake(t)
	const fields = "stream: n/s\npartitions: 3\nkey: '${! content() }'\nidempotency: { mode: kafka, source: eu }"
	o := l.connectOutput(t, fields)
	for _, batch := range []service.MessageBatch{
		fromKafka("orders", 0, 3, 1, 2), fromKafka("orders", 0, 1, 2, 3, 4), fromKafka("orders", 1, 1),
		append(fromKafka("orders", 0, 4, 5), fromKafka("returns", 0, 1, 2)...), fromKafka("returns", 0, 2),
	} {
		require.NoError(t, o.WriteBatch(t.Context(), batch))
	}
	require.NoError(t, o.Close(t.Context()))

	restarted := l.connectOutput(t, fields)
	require.NoError(t, restarted.WriteBatch(t.Context(), fromKafka("orders", 0, 5, 1, 2, 3, 4, 6)))
	require.ElementsMatch(t, []string{
		"orders/0/1", "orders/0/2", "orders/0/3", "orders/0/4", "orders/0/5", "orders/0/6", "orders/1/1", "returns/0/1", "returns/0/2",
	}, contents(t, l.readAll(t, "n/s")))
}

func TestMessagesWithoutAPlaceInKafkaFailAlone(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: n/s\nidempotency: { mode: kafka }")
	batch := fromKafka("orders", 0, 1, 2, 3)
	batch[0].MetaDelete(metaKafkaOffset)
	batch[2].MetaSetMut(metaKafkaOffset, "last")
	err := o.WriteBatch(t.Context(), batch)
	var failed *service.BatchError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 2, failed.IndexedErrors())
	require.ErrorIs(t, failed, engine.ErrInvalid)
	require.ErrorContains(t, o.WriteBatch(t.Context(), batch[:1]), "read it from an input that sets it")
	require.ErrorContains(t, o.WriteBatch(t.Context(), batch[2:]), `metadata kafka_offset: "last": want a number`)
	require.Equal(t, []string{"orders/0/2"}, contents(t, l.readAll(t, "n/s")))
}

// A stream that is read and written again into another has its own places to tell
// repeats by.
func TestAStreamIsCopiedOnceByItsOffsets(t *testing.T) {
	l := newLake(t)
	from := l.connectOutput(t, "stream: n/from\npartitions: 2")
	for i := range 10 {
		require.NoError(t, from.WriteBatch(t.Context(), numbered(10*i, 10)))
	}
	to := l.connectOutput(t, `
stream: n/to
idempotency:
  mode: explicit
  producer: ${! metadata("lakestream_stream") }/${! metadata("lakestream_partition") }
  sequence: ${! metadata("lakestream_offset") }
`)
	for range 2 {
		for _, m := range l.readAll(t, "n/from") {
			require.NoError(t, to.WriteBatch(t.Context(), service.MessageBatch{m}))
		}
	}
	require.ElementsMatch(t, contents(t, numbered(0, 100)), contents(t, l.readAll(t, "n/to")))

	require.ErrorContains(t, to.WriteBatch(t.Context(), texts("no place")), `idempotency.sequence: "null"`)
}

// Of messages with one place none is appended without the others, because it would
// pass for all.
func TestAMessageThatFailsKeepsItsTwinsOut(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: n/s\npartitions: 2\npartition: '${! metadata(\"p\") }'\nidempotency: { mode: kafka }")
	batch := append(fromKafka("orders", 0, 1, 2), fromKafka("orders", 0, 1)...)
	for i, p := range []string{"0", "1", "9"} {
		batch[i].MetaSetMut("p", p)
	}
	err := o.WriteBatch(t.Context(), batch)
	var failed *service.BatchError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 2, failed.IndexedErrors())
	require.Equal(t, []string{"orders/0/2"}, contents(t, l.readAll(t, "n/s")))

	batch[2].MetaSetMut("p", "1")
	require.NoError(t, o.WriteBatch(t.Context(), batch))
	require.Len(t, l.readAll(t, "n/s"), 3)
}
