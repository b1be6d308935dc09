package plugin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/engine"
)

// written is what one message became, as the input shows it.
type written struct {
	value, key, headers string
	null, tombstone     bool
	timestamp           int64
}

func shown(t testing.TB, m *service.Message) written {
	w := written{value: content(t, m), null: meta(m, metaKey) == nil, tombstone: meta(m, metaTombstone) == true}
	if key, ok := meta(m, metaKey).(string); ok {
		w.key = key
	}
	w.timestamp, _ = meta(m, metaTimestampMS).(int64)
	var headers []string
	_ = m.MetaWalk(func(key, value string) error {
		if strings.HasPrefix(key, "h_") {
			headers = append(headers, key+"="+value)
		}
		return nil
	})
	w.headers = fmt.Sprint(len(headers), headers)
	if len(headers) > 1 {
		w.headers = fmt.Sprint(len(headers))
	}
	return w
}

// Given any messages, when they are written in any batches, then each partition
// holds its own in order, and every byte of key, value and headers is read back.
func TestWhateverIsWrittenIsReadBack(t *testing.T) {
	l := newLake(t)
	keep := l.connectOutput(t, "stream: keep/open") // the engine stays open between the checks
	require.NotNil(t, keep)
	streams := 0
	rapid.Check(t, func(rt *rapid.T) {
		streams++
		stream := "p/s" + strconv.Itoa(streams)
		partitions := rapid.IntRange(1, 5).Draw(rt, "partitions")
		o := l.output(t, fmt.Sprintf(`
stream: %s
partitions: %d
key: ${! metadata("k").or("") }
partition: ${! metadata("p").or("") }
timestamp_ms: ${! metadata("at").or("") }
metadata: { include_prefixes: [ h_ ] }`, stream, partitions))
		require.NoError(rt, o.Connect(context.Background()))
		want := make(map[int][]written)
		for range rapid.IntRange(1, 3).Draw(rt, "batches") {
			var batch service.MessageBatch
			for range rapid.IntRange(1, 20).Draw(rt, "messages") {
				m, p, w := drawMessage(t, rt, partitions)
				batch = append(batch, m)
				want[p] = append(want[p], w)
			}
			require.NoError(rt, o.WriteBatch(context.Background(), batch))
		}
		got := make(map[int][]written)
		for _, m := range l.readAll(t, stream) {
			p, _ := meta(m, metaPartition).(int)
			require.Equal(rt, int64(len(got[p])), meta(m, metaOffset))
			require.Equal(rt, stream, meta(m, metaStream))
			got[p] = append(got[p], shown(t, m))
		}
		require.NoError(rt, o.Close(context.Background()))
		require.Equal(rt, want, got)
	})
}

// drawMessage draws a message whose partition is known: explicit, or its key's.
func drawMessage(t testing.TB, rt *rapid.T, partitions int) (*service.Message, int, written) {
	m := service.NewMessage(rapid.SliceOf(rapid.Byte()).Draw(rt, "value"))
	key := rapid.StringMatching(`[a-z]{0,6}`).Draw(rt, "key")
	explicit := key == "" || rapid.Bool().Draw(rt, "explicit")
	if key != "" {
		m.MetaSetMut("k", key)
	}
	p := engine.KeyPartition([]byte(key), partitions)
	if explicit {
		p = rapid.IntRange(0, partitions-1).Draw(rt, "partition")
		m.MetaSetMut("p", p)
	}
	at := rapid.Int64Range(0, 1<<42).Draw(rt, "at")
	m.MetaSetMut("at", strconv.FormatInt(at, 10))
	for i := range rapid.IntRange(0, 2).Draw(rt, "headers") {
		m.MetaSetMut("h_"+strconv.Itoa(i), rapid.String().Draw(rt, "header"))
	}
	w := shown(t, m)
	if rapid.IntRange(0, 4).Draw(rt, "kind") == 0 {
		m.MetaSetMut(metaTombstone, "true")
		w.value, w.tombstone = "", true
	}
	w.key, w.null, w.timestamp = key, key == "", at
	return m, p, w
}

// A consumer that expects a key where Kafka's clients put it finds it there.
func TestKeysHaveThePartitionsThatKafkaGivesThem(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: k/s\npartitions: 7\nkey: ${! content() }")
	kafka := kgo.StickyKeyPartitioner(nil).ForTopic("s")
	var batch service.MessageBatch
	for i := range 500 {
		batch = append(batch, service.NewMessage(fmt.Appendf(nil, "key-%d", i*i)))
	}
	require.NoError(t, o.WriteBatch(t.Context(), batch))
	all := l.readAll(t, "k/s")
	require.Len(t, all, 500)
	for _, m := range all {
		key := content(t, m)
		require.Equal(t, kafka.Partition(&kgo.Record{Key: []byte(key)}, 7), meta(m, metaPartition), key)
	}
}

// Records without a key share a partition within a batch, and every partition gets
// its share of batches.
func TestBatchesWithoutKeysTakeTurns(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: k/s\npartitions: 3")
	for i := range 6 {
		require.NoError(t, o.WriteBatch(t.Context(), numbered(10*i, 10)))
	}
	counts := make(map[any]int)
	for _, m := range l.readAll(t, "k/s") {
		counts[meta(m, metaPartition)]++
		require.Nil(t, meta(m, metaKey))
	}
	require.Equal(t, map[any]int{0: 20, 1: 20, 2: 20}, counts)
}

// Given a batch in which some messages can never be written, when it is written,
// then the others are, and the error tells of exactly the bad ones.
func TestABadMessageFailsAlone(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, `
stream: b/s
partitions: 2
partition: ${! metadata("p").or("0") }
timestamp_ms: ${! metadata("at").or("") }
key: ${! metadata("k").or(deleted()) }`)
	batch := texts("good", "no such partition", "no number", "no time", "too large", "good too")
	for _, m := range batch {
		m.MetaSetMut("k", "key")
	}
	batch[1].MetaSetMut("p", "2")
	batch[2].MetaSetMut("p", "first")
	batch[3].MetaSetMut("at", "today")
	batch[4].SetBytes(make([]byte, 17<<20))
	batch[5].MetaSetMut("p", "1")
	indexer := batch.Index()
	err := o.WriteBatch(t.Context(), batch)

	var failed *service.BatchError
	require.ErrorAs(t, err, &failed)
	got := make(map[int]string)
	failed.WalkMessagesIndexedBy(indexer, func(i int, _ *service.Message, err error) bool {
		if err != nil {
			require.ErrorIs(t, err, engine.ErrInvalid)
			got[i] = err.Error()
		}
		return true
	})
	require.Len(t, got, 4)
	require.Contains(t, got[1], `partition "2": want 0 to 1`)
	require.Contains(t, got[2], `partition "first": want 0 to 1`)
	require.Contains(t, got[3], `timestamp_ms "today": want milliseconds`)
	require.Contains(t, got[4], "at most 16777216 are taken")
	require.ElementsMatch(t, []string{"good", "good too"}, contents(t, l.readAll(t, "b/s")))
}

func TestASingleBadMessageIsAnOrdinaryError(t *testing.T) {
	o := newLake(t).connectOutput(t, `{ stream: b/s, partition: "9" }`)
	err := o.WriteBatch(t.Context(), texts("x"))
	require.ErrorContains(t, err, `partition "9": want 0 to 0`)
	var batch *service.BatchError
	require.NotErrorAs(t, err, &batch)
	require.NoError(t, o.WriteBatch(t.Context(), nil), "an empty batch is written")
}

// A structured message is written as JSON, an empty one is empty and no tombstone.
func TestContentsAreTakenAsTheyAre(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: c/s")
	structured := service.NewMessage(nil)
	structured.SetStructured(map[string]any{"a": 1})
	odd := service.NewMessage([]byte("no JSON \x00\xff"))
	require.NoError(t, o.WriteBatch(t.Context(), service.MessageBatch{structured, odd, service.NewMessage(nil)}))
	all := l.readAll(t, "c/s")
	require.Equal(t, []string{`{"a":1}`, "no JSON \x00\xff", ""}, contents(t, all))
	require.Nil(t, meta(all[2], metaTombstone))
}

func TestMessagesChooseTheirStreams(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: tenant/${! content() }\nmax_streams: 2")
	require.NoError(t, o.WriteBatch(t.Context(), texts("a", "b", "a")))
	indexed := texts("b", "c", "not a name", "a")
	indexer := indexed.Index()
	err := o.WriteBatch(t.Context(), indexed)
	var failed *service.BatchError
	require.ErrorAs(t, err, &failed)
	bad := make(map[int]string)
	failed.WalkMessagesIndexedBy(indexer, func(i int, _ *service.Message, err error) bool {
		if err != nil {
			bad[i] = err.Error()
		}
		return true
	})
	require.Len(t, bad, 2)
	require.Contains(t, bad[1], `stream "tenant/c" would be one more than max_streams (2)`)
	require.Contains(t, bad[2], "max_streams")
	require.Equal(t, []string{"a", "a", "a"}, contents(t, l.readAll(t, "tenant/a")))
	require.Equal(t, []string{"b", "b"}, contents(t, l.readAll(t, "tenant/b")))
}

// With one batch in flight the log has the order of the writes, however small the
// batches are.
func TestOneBatchInFlightKeepsTheOrder(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: o/s\nmax_in_flight: 1")
	var want []string
	for i := range 30 {
		require.NoError(t, o.WriteBatch(t.Context(), numbered(i, 1)))
		want = append(want, strconv.Itoa(i))
	}
	require.Equal(t, want, contents(t, l.readAll(t, "o/s")))
}

// Many callers at once use pooled memory; none sees another's records.
func TestWritesAtOnceDoNotMix(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: m/s\npartitions: 4\nkey: ${! content().string().slice(0, 3) }")
	const callers, each = 32, 50
	var callersDone sync.WaitGroup
	errs := make([]error, callers)
	for c := range callers {
		callersDone.Go(func() {
			batch := make(service.MessageBatch, each)
			for i := range batch {
				batch[i] = service.NewMessage(fmt.Appendf(nil, "%03d %d", c, i))
			}
			errs[c] = o.WriteBatch(context.Background(), batch)
		})
	}
	callersDone.Wait()
	require.NoError(t, errors.Join(errs...))
	next := make(map[string]int)
	for _, m := range l.readAll(t, "m/s") {
		caller, number, _ := strings.Cut(content(t, m), " ")
		require.Equal(t, strconv.Itoa(next[caller]), number, "a key keeps its order")
		require.Equal(t, caller, meta(m, metaKey))
		next[caller]++
	}
	require.Len(t, next, callers)
}

func TestFewerPartitionsThanTheStreamHasAreRefusedAtConnect(t *testing.T) {
	l := newLake(t)
	l.connectOutput(t, "stream: g/s\npartitions: 4")
	o := l.output(t, "stream: g/s\npartitions: 2")
	defer func() { require.NoError(t, o.Close(context.Background())) }()
	for range 2 * connectAttempts {
		err := cause(t, o.Connect(t.Context()))
		require.ErrorIs(t, err, engine.ErrInvalid)
		require.ErrorContains(t, err, "never shrinks")
	}
}

// Components of one process share an engine, and learn which field keeps them from
// doing so.
func TestComponentsThatDifferAreToldInWhat(t *testing.T) {
	l := newLake(t)
	l.connectOutput(t, "stream: e/s")
	conf := fmt.Sprintf("stream: e/s\nengine: { data_dir: %q, compaction: { enabled: false }, wal: { linger: 77ms } }", l.dir)
	other := outputOf(t, conf)
	err := cause(t, other.Connect(t.Context()))
	require.ErrorIs(t, err, engine.ErrInvalid)
	require.ErrorContains(t, err, "wal.linger")
	require.NoError(t, other.Close(context.Background()))
}

func TestAnOutputClosesOnceAndStaysClosed(t *testing.T) {
	o := newLake(t).output(t, "stream: c/s")
	require.NoError(t, o.Connect(t.Context()))
	require.NoError(t, o.Close(context.Background()))
	require.NoError(t, o.Close(context.Background()))
	require.ErrorIs(t, o.Connect(t.Context()), engine.ErrClosed)
	require.ErrorIs(t, o.WriteBatch(t.Context(), texts("late")), engine.ErrClosed)
}
