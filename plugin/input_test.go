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

// next reads one batch, which must come.
func next(t testing.TB, in *input) (service.MessageBatch, service.AckFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	batch, ack, err := in.ReadBatch(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, batch)
	return batch, ack
}

// ended waits for the input's end.
func ended(t testing.TB, in *input) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	batch, _, err := in.ReadBatch(ctx)
	require.ErrorIs(t, err, service.ErrEndOfInput, "got %d messages", len(batch))
}

// isSilent reports that nothing is ready to be read.
func isSilent(in *input) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, _, err := in.ReadBatch(ctx)
	return errors.Is(err, context.DeadlineExceeded)
}

func TestEveryMessageTellsWhereItIsFrom(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, `
stream: m/s
key: ${! metadata("k").or("") }
timestamp_ms: "1700000000999"
metadata: { include_patterns: [ "^(trace|lakestream_.*)$" ] }`)
	batch := texts("a", "b", "c")
	batch[0].MetaSetMut("k", "key")
	batch[0].MetaSetMut("trace", "t1")
	batch[0].MetaSetMut("lakestream_offset", "spoofed")
	batch[0].MetaSetMut("lakestream_stream", "spoofed")
	batch[1].MetaSetMut("lakestream_key", "spoofed")
	batch[2].MetaSetMut("lakestream_tombstone", "true")
	require.NoError(t, o.WriteBatch(t.Context(), batch))

	all := l.readAll(t, "m/s")
	require.Len(t, all, 3)
	for i, m := range all {
		require.Equal(t, "m/s", meta(m, "lakestream_stream"))
		require.Equal(t, 0, meta(m, "lakestream_partition"))
		require.Equal(t, int64(i), meta(m, "lakestream_offset"))
		require.Equal(t, int64(1700000000999), meta(m, "lakestream_timestamp_ms"))
		require.Equal(t, int64(1700000000), meta(m, "lakestream_timestamp_unix"))
		require.Equal(t, int64(2-i), meta(m, "lakestream_lag"))
	}
	require.Equal(t, "key", meta(all[0], "lakestream_key"))
	require.Equal(t, "t1", meta(all[0], "trace"))
	require.Nil(t, meta(all[1], "lakestream_key"), "a null key is absent")
	require.Nil(t, meta(all[1], "lakestream_tombstone"))
	require.Equal(t, true, meta(all[2], "lakestream_tombstone"))
	require.Empty(t, content(t, all[2]))
}

// What the input reads, the output writes again as it was: tombstones too.
func TestAStreamIsCopiedByAPipeline(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: a/from\nkey: ${! metadata(\"k\").or(\"\") }")
	batch := texts("value", "gone")
	batch[0].MetaSetMut("k", "1")
	batch[1].MetaSetMut("k", "2")
	batch[1].MetaSetMut(metaTombstone, true)
	require.NoError(t, o.WriteBatch(t.Context(), batch))
	pipeline(t, fmt.Sprintf(`
input:
  lakestream: { streams: [ a/from ], stop_at_end: true, %[1]s }
output:
  lakestream:
    stream: a/to
    key: ${! metadata("lakestream_key").or("") }
    timestamp_ms: ${! metadata("lakestream_timestamp_ms") }
    %[1]s
`, l.engine("")))
	from, to := l.readAll(t, "a/from"), l.readAll(t, "a/to")
	require.Len(t, to, 2)
	for i := range from {
		require.Equal(t, shown(t, from[i]), shown(t, to[i]))
	}
}

// Given a stream that grows, when an input stops at the end, then it delivers what
// was there when it connected.
func TestTheEndIsWhereTheStreamEndedAtConnect(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: e/s\npartitions: 2\npartition: ${! content().string().number() % 2 }")
	require.NoError(t, o.WriteBatch(t.Context(), numbered(0, 10)))
	in := l.connectInput(t, "streams: [ e/s ]\nstop_at_end: true")
	require.NoError(t, o.WriteBatch(t.Context(), numbered(10, 10)))
	require.Len(t, drain(t, in), 10)
	ended(t, in)
}

func TestAnEmptyStreamEndsAtOnce(t *testing.T) {
	l := newLake(t)
	l.connectOutput(t, "stream: e/s\npartitions: 3")
	ended(t, l.connectInput(t, "streams: [ e/s ]\nstop_at_end: true"))
}

// The end of the input tells Benthos that everything was delivered: it must not
// come while a batch may still be rejected.
func TestTheInputEndsOnlyWhenEverythingIsAccepted(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: e/s")
	require.NoError(t, o.WriteBatch(t.Context(), numbered(0, 3)))
	in := l.connectInput(t, "streams: [ e/s ]\nstop_at_end: true")
	_, ack := next(t, in)
	require.True(t, isSilent(in), "neither a batch nor the end")
	require.NoError(t, ack(t.Context(), errors.New("not yet")))
	_, ack = next(t, in)
	require.NoError(t, ack(t.Context(), nil))
	ended(t, in)
}

// Given an input without an end, when records are appended, then they arrive.
func TestAFollowerGetsWhatIsAppended(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: f/s")
	in := l.connectInput(t, "streams: [ f/s ]\nstart_offset: latest")
	for i := range 5 {
		require.NoError(t, o.WriteBatch(t.Context(), numbered(i, 1)))
		batch, ack := next(t, in)
		require.Equal(t, []string{strconv.Itoa(i)}, contents(t, batch))
		require.NoError(t, ack(t.Context(), nil))
	}
}

func TestBatchesKeepTheirBounds(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: b/s")
	require.NoError(t, o.WriteBatch(t.Context(), numbered(100, 25)))
	in := l.connectInput(t, "streams: [ b/s ]\nstop_at_end: true\nmax_yield_batch_messages: 10")
	var sizes []int
	for range 3 {
		batch, ack := next(t, in)
		sizes = append(sizes, len(batch))
		require.NoError(t, ack(t.Context(), nil))
	}
	require.Equal(t, []int{10, 10, 5}, sizes)

	in = l.connectInput(t, "streams: [ b/s ]\nstop_at_end: true\nmax_yield_batch_bytes: 6B")
	batch, ack := next(t, in)
	require.Equal(t, []string{"100", "101"}, contents(t, batch))
	require.NoError(t, ack(t.Context(), nil))
}

// Given a rejected batch, when it is delivered again, then it is read from the log:
// what the pipeline did to its messages is gone.
func TestARejectedBatchComesAgainFromTheLog(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: r/s")
	require.NoError(t, o.WriteBatch(t.Context(), numbered(0, 5)))
	in := l.connectInput(t, "streams: [ r/s ]\nstop_at_end: true")
	for attempt := range 3 {
		batch, ack := next(t, in)
		require.Equal(t, []string{"0", "1", "2", "3", "4"}, contents(t, batch), "attempt %d", attempt)
		batch[0].SetBytes([]byte("changed"))
		require.NoError(t, ack(t.Context(), errors.New("the sink is down")))
	}
	_, ack := next(t, in)
	require.NoError(t, ack(t.Context(), nil))
	ended(t, in)
}

// Given a batch of which single messages were rejected, when it comes again, then
// they come alone, in their order.
func TestOnlyRejectedMessagesComeAgain(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: r/s")
	require.NoError(t, o.WriteBatch(t.Context(), numbered(0, 6)))
	in := l.connectInput(t, "streams: [ r/s ]\nstop_at_end: true")
	batch, ack := next(t, in)
	require.NoError(t, ack(t.Context(), service.NewBatchError(batch, errors.New("some")).
		Failed(4, errors.New("bad")).Failed(1, errors.New("bad")).Failed(2, errors.New("bad"))))
	batch, ack = next(t, in)
	require.Equal(t, []string{"1", "2", "4"}, contents(t, batch))
	require.NoError(t, ack(t.Context(), service.NewBatchError(batch, errors.New("one")).Failed(2, errors.New("bad"))))
	batch, ack = next(t, in)
	require.Equal(t, []string{"4"}, contents(t, batch))
	require.Equal(t, int64(1), meta(batch[0], metaLag))
	require.NoError(t, ack(t.Context(), nil))
	ended(t, in)
}

// A pipeline may join messages, drop their metadata or split them. An error of what
// it made of a batch brings back all that the error may stand for.
func TestAnErrorThatCannotBeTracedBringsTheWholeBatchAgain(t *testing.T) {
	for name, reshape := range map[string]func(service.MessageBatch) service.MessageBatch{
		"joined":   func(b service.MessageBatch) service.MessageBatch { return b[:1] },
		"stripped": func(service.MessageBatch) service.MessageBatch { return texts("x", "y", "z") },
		"another's": func(b service.MessageBatch) service.MessageBatch {
			for _, m := range b {
				m.MetaSetMut(metaStream, "other/stream")
			}
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t)
			o := l.connectOutput(t, "stream: r/s")
			require.NoError(t, o.WriteBatch(t.Context(), numbered(0, 3)))
			in := l.connectInput(t, "streams: [ r/s ]\nstop_at_end: true")
			batch, ack := next(t, in)
			require.NoError(t, ack(t.Context(), service.NewBatchError(reshape(batch), errors.New("some")).Failed(0, errors.New("bad"))))
			batch, ack = next(t, in)
			require.Equal(t, []string{"0", "1", "2"}, contents(t, batch))
			require.NoError(t, ack(t.Context(), nil))
		})
	}
}

// One batch that fails for ever holds up no other.
func TestARejectedBatchHoldsUpNoOtherWhereOrderIsLeft(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: r/s")
	require.NoError(t, o.WriteBatch(t.Context(), numbered(0, 50)))
	in := l.connectInput(t, "streams: [ r/s ]\nstop_at_end: true\nmax_yield_batch_messages: 1\nunordered_processing: { enabled: true }")
	seen := make(map[string]int)
	for len(seen) < 50 || seen["0"] < 3 {
		batch, ack := next(t, in)
		text := content(t, batch[0])
		seen[text]++
		if text == "0" && seen["0"] < 3 {
			require.NoError(t, ack(t.Context(), errors.New("poison")))
			continue
		}
		require.NoError(t, ack(t.Context(), nil))
	}
	ended(t, in)
}

func TestWithoutReplayARejectedBatchIsDropped(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: r/s")
	require.NoError(t, o.WriteBatch(t.Context(), numbered(0, 4)))
	in := l.connectInput(t, "streams: [ r/s ]\nstop_at_end: true\nauto_replay_nacks: false\nmax_yield_batch_messages: 2")
	_, ack := next(t, in)
	require.NoError(t, ack(t.Context(), errors.New("no")))
	batch, ack := next(t, in)
	require.Equal(t, []string{"2", "3"}, contents(t, batch))
	require.NoError(t, ack(t.Context(), nil))
	ended(t, in)
}

func TestReadingBeginsWhereItIsTold(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: s/s\npartitions: 2\npartition: ${! (content().string().number() / 10).floor() }")
	for i := range 20 {
		require.NoError(t, o.WriteBatch(t.Context(), numbered(i, 1)))
	}
	for name, c := range map[string]struct {
		conf string
		want int
	}{
		"earliest":             {"streams: [ s/s ]", 20},
		"latest":               {"streams: [ s/s ]\nstart_offset: latest", 0},
		"an offset":            {"streams: [ s/s ]\nstart_offset: \"7\"", 6},
		"a partition":          {"streams: [ \"s/s:1\" ]", 10},
		"a partition's offset": {"streams: [ \"s/s:1:8\", \"s/s:0:9\" ]", 3},
		"partitions":           {"streams: [ \"s/s:0-1\" ]", 20},
		"an hour ago":          {"streams: [ s/s ]\nstart_offset: \"@-1h\"", 20},
		"the epoch":            {"streams: [ s/s ]\nstart_offset: \"@0\"", 20},
		"a time to come":       {"streams: [ s/s ]\nstart_offset: \"@2999-01-01T00:00:00Z\"", 0},
	} {
		in := l.input(t, c.conf+"\nstop_at_end: true")
		require.NoError(t, in.Connect(t.Context()), name)
		require.Len(t, drain(t, in), c.want, name)
		require.NoError(t, in.Close(context.Background()))
	}
}

func TestAPlaceThatDoesNotExistIsRefusedAtConnect(t *testing.T) {
	l := newLake(t)
	l.connectOutput(t, "stream: s/s\npartitions: 2")
	for conf, want := range map[string]string{
		`streams: [ "s/s:2" ]`:   "partition 2 of s/s, which has 2",
		`streams: [ "s/s:0:5" ]`: "start offset in s/s:0: offset 5: the log ends at 0",
	} {
		in := l.input(t, conf)
		err := in.Connect(t.Context())
		if pause, ok := errors.AsType[*service.ErrBackOff](err); ok {
			err = pause.Err
		}
		require.ErrorContains(t, err, want)
		require.NoError(t, in.Close(context.Background()))
	}
}

// Given an input of a stream that nobody wrote to yet, when someone does, then the
// input reads it from its first record.
func TestAnInputWaitsForItsStream(t *testing.T) {
	l := newLake(t)
	in := l.input(t, "streams: [ later/s ]")
	connected := make(chan error, 1)
	go func() { connected <- in.Connect(context.Background()) }()
	o := l.connectOutput(t, "stream: later/s")
	require.NoError(t, o.WriteBatch(t.Context(), numbered(0, 1)))
	require.NoError(t, <-connected)
	batch, ack := next(t, in)
	require.Equal(t, []string{"0"}, contents(t, batch))
	require.NoError(t, ack(t.Context(), nil))
	require.NoError(t, in.Close(context.Background()))
}

func TestAWaitingInputGivesUpWhenItIsToldTo(t *testing.T) {
	in := newLake(t).input(t, "streams: [ never/s ]")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, in.Connect(ctx), context.DeadlineExceeded)
	require.NoError(t, in.Close(context.Background()))
	require.NoError(t, in.Close(context.Background()))
	require.ErrorIs(t, in.Connect(t.Context()), engine.ErrClosed)
}

// Given batches that were handed out and never settled, and readers that hold more,
// when the input closes, then it ends all the same.
func TestAnInputClosesOverUnsettledBatches(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: c/s\npartitions: 8")
	for i := range 16 {
		require.NoError(t, o.WriteBatch(t.Context(), numbered(i, 20)))
	}
	in := l.input(t, "streams: [ c/s ]\nmax_yield_batch_messages: 1\nunordered_processing: { enabled: true }")
	require.NoError(t, in.Connect(t.Context()))
	_, ack := next(t, in)
	next(t, in)
	require.NoError(t, ack(t.Context(), errors.New("again, later")))
	require.NoError(t, in.Close(context.Background()))
}

// Given batches that are out, when they are rejected while the input closes, then
// nothing of it goes on afterwards.
func TestBatchesMayBeRejectedWhileAnInputCloses(t *testing.T) {
	l := newLake(t)
	o := l.connectOutput(t, "stream: c/s")
	require.NoError(t, o.WriteBatch(t.Context(), numbered(0, 64)))
	for range 20 {
		in := l.input(t, "streams: [ c/s ]\nmax_yield_batch_messages: 1\nunordered_processing: { enabled: true }")
		require.NoError(t, in.Connect(t.Context()))
		var rejecting sync.WaitGroup
		for range 32 {
			_, ack := next(t, in)
			rejecting.Go(func() { _ = ack(context.Background(), errors.New("again, later")) })
		}
		require.NoError(t, in.Close(context.Background()))
		rejecting.Wait()
	}
}
