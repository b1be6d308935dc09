package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// tableless is a stream of some partitions without a table.
func tableless(partitions int) engine.StreamConfig {
	off := false
	return engine.StreamConfig{Partitions: partitions, Table: engine.TablePolicy{Enabled: &off}}
}

// fillInTurns appends batches of all sizes to the partitions of a stream in turns, two
// partitions a batch, checks the offsets that come back, and returns what each holds.
func fillInTurns(t *testing.T, s *engine.Stream, batches int) [][]string {
	t.Helper()
	held := make([][]string, s.Partitions())
	for i := range batches {
		batch := &engine.Batch{}
		for _, p := range []int{i % len(held), (i + 1) % len(held)} {
			l := engine.LogRecords{}
			l.Log.Partition = engine.Partition(p) //nolint:gosec // small
			for n := range 1 + i%4 {
				l.Records = append(l.Records, engine.Record{Value: fmt.Appendf(nil, `{"batch":%d,"n":%d,"of":%d}`, i, n, p)})
			}
			batch.Logs = append(batch.Logs, l)
		}
		require.NoError(t, s.Append(t.Context(), batch))
		for j, result := range batch.Results {
			p := batch.Logs[j].Log.Partition
			require.NoError(t, result.Err)
			require.EqualValues(t, len(held[p]), result.Base, "offsets are dense from 0 in each partition")
			for _, r := range batch.Logs[j].Records {
				held[p] = append(held[p], string(r.Value))
			}
		}
	}
	return held
}

// readValues reads from an offset to an end, each time at most so many records, and
// checks that their offsets follow each other.
func readValues(t *testing.T, log *engine.Log, from, end engine.Offset, atMost int) (values []string) {
	t.Helper()
	for from < end {
		batch, err := log.Read(t.Context(), from, engine.ReadLimits{MaxMessages: min(atMost, int(end-from))})
		require.NoError(t, err)
		require.NotEmpty(t, batch.Records)
		require.LessOrEqual(t, len(batch.Records), atMost)
		for _, r := range batch.Records {
			require.Equal(t, from, r.Offset)
			values = append(values, string(r.Value))
			from++
		}
		require.Equal(t, from, batch.Next)
	}
	return values
}

// Behaviours 1, 2, 3, 4, 5 and 7. Given partitions that are appended to in turns, then
// each holds its own records in their order, at offsets from 0 on, and whatever is asked
// of it is exact; one that nothing was appended to holds nothing.
func TestALogHoldsItsOwnRecordsInTheirOrder(t *testing.T) {
	e := closeAtEnd(t, open(t, without(options(t))))
	s, err := e.EnsureStream(t.Context(), "shop/orders", tableless(3))
	require.NoError(t, err)
	empty, err := s.Log(2)
	require.NoError(t, err)
	_, ok, err := empty.First(true)
	require.NoError(t, err)
	require.False(t, ok)
	_, ok, err = empty.Last()
	require.NoError(t, err)
	require.False(t, ok)

	for p, want := range fillInTurns(t, s, 30) {
		log, err := s.Log(engine.Partition(p))
		require.NoError(t, err)
		head := engine.Offset(len(want))
		for _, atMost := range []int{1, 7, 1000} {
			require.Equal(t, want, readValues(t, log, 0, head, atMost))
		}
		for at := range head {
			one, err := log.ReadOne(t.Context(), at)
			require.NoError(t, err)
			require.Equal(t, want[at], string(one.Value))
			require.Equal(t, want[at:], readValues(t, log, at, head, 1000), "from the middle of a batch")
		}
		last, ok, err := log.Last()
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, head-1, last)
		n, err := log.Count(engine.OffsetRange{Start: 3, End: head + 9})
		require.NoError(t, err)
		require.EqualValues(t, head-3, n)
		requireSize(t, log, head)
	}
}

// requireSize compares the size of a log that was never compacted with its entries.
func requireSize(t *testing.T, log *engine.Log, head engine.Offset) {
	t.Helper()
	entries, err := log.Entries(engine.OffsetRange{End: head}, 1000)
	require.NoError(t, err)
	sum, next := int64(0), engine.Offset(0)
	for _, entry := range entries {
		require.Equal(t, next, entry.Range.Start, "entries neither overlap nor leave a gap")
		sum, next = sum+entry.Len, entry.Range.End
	}
	require.Equal(t, head, next)
	size, err := log.Size()
	require.NoError(t, err)
	require.Equal(t, sum, size)
}

// Behaviours 5, 6 and 16. Given records of which one is larger than the limit of a read,
// then it comes, and alone; and a search finds where each begins.
func TestALimitOfBytesNeverHidesARecord(t *testing.T) {
	e := closeAtEnd(t, open(t, without(options(t))))
	s, err := e.EnsureStream(t.Context(), "shop/orders", tableless(1))
	require.NoError(t, err)
	batch := &engine.Batch{Logs: make([]engine.LogRecords, 1)}
	sizes := []int{10, 10, 5000, 10, 10, 10, 5000, 5000, 10}
	for i, size := range sizes {
		batch.Logs[0].Records = append(batch.Logs[0].Records, engine.Record{Timestamp: engine.Millis(i), Value: make([]byte, size)})
	}
	require.NoError(t, s.Append(t.Context(), batch))
	log, err := s.Log(0)
	require.NoError(t, err)
	for at, size := range sizes {
		got, err := log.Read(t.Context(), engine.Offset(at), engine.ReadLimits{MaxBytes: 1000})
		require.NoError(t, err)
		require.Len(t, got.Records[0].Value, size)
		if size > 1000 {
			require.Len(t, got.Records, 1)
			continue
		}
		require.LessOrEqual(t, got.Bytes, int64(1000))
		for _, r := range got.Records {
			require.Len(t, r.Value, 10)
		}
	}
	for at := range engine.Offset(len(sizes)) + 3 {
		found, err := log.Search(t.Context(), func(p *engine.Positioned) bool { return p.Timestamp >= engine.Millis(at) })
		require.NoError(t, err)
		require.Equal(t, min(at, engine.Offset(len(sizes))), found)
	}
}

// Behaviours 36 and 37. Given readers that stand at every offset of a log, when all of it
// is compacted, and more is appended and compacted, then each goes on to the end without
// a gap or a duplicate.
func TestReadersAtEveryOffsetGoOnAfterCompaction(t *testing.T) {
	opts := without(options(t))
	e := closeAtEnd(t, open(t, opts))
	opts.Observe = true
	compactor := closeAtEnd(t, open(t, opts))
	s, err := e.EnsureStream(t.Context(), "shop/orders", tableless(1))
	require.NoError(t, err)
	want := fillSingle(t, s, 0, 15)
	readers := make([]*engine.Log, len(want)+1)
	for at := range readers {
		readers[at], err = s.Log(0)
		require.NoError(t, err)
		require.Len(t, readValues(t, readers[at], 0, engine.Offset(at), 4), at)
	}
	for _, more := range []int{10, 3} {
		compactWhole(t, compactor, len(want))
		want = append(want, fillSingle(t, s, len(want), more)...)
	}
	require.Eventually(t, func() bool {
		entries, err := readers[0].Entries(engine.OffsetRange{End: 100}, 100)
		require.NoError(t, err)
		return len(entries) == 2+3
	}, patience, time.Millisecond, "two compacted objects, and what is raw")
	for at, log := range readers {
		require.Equal(t, want[at:], readValues(t, log, engine.Offset(at), engine.Offset(len(want)), 4), "from %d", at)
	}
}

// compactWhole compacts the stream from an observer, once it sees so many records.
func compactWhole(t *testing.T, e *engine.Engine, records int) {
	t.Helper()
	require.Eventually(t, func() bool {
		s, err := e.Stream("shop/orders")
		if err != nil {
			return false // it has not heard of the stream
		}
		log, err := s.Log(0)
		require.NoError(t, err)
		_, head, err := log.Bounds()
		require.NoError(t, err)
		return head == engine.Offset(records)
	}, patience, time.Millisecond)
	_, err := e.Compact(t.Context())
	require.NoError(t, err)
}

// fillSingle appends records one by one and returns their values.
func fillSingle(t *testing.T, s *engine.Stream, from, n int) (values []string) {
	t.Helper()
	for i := from; i < from+n; i++ {
		appendOrders(t, s, i, 1)
		values = append(values, fmt.Sprintf(`{"id":%d,"name":"order %d"}`, i, i))
	}
	return values
}
