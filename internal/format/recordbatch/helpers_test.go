package recordbatch_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

// runsOf encodes records as a producer would: call after call.
func runsOf(calls ...[]recordbatch.Record) []recordbatch.Run {
	var runs []recordbatch.Run
	for _, records := range calls {
		var buffer []byte
		for len(records) > 0 {
			var run recordbatch.Run
			buffer, run = recordbatch.AppendRun(buffer, records)
			records = records[run.Records:]
			runs = append(runs, run)
		}
	}
	return runs
}

// entryOf makes an entry of the records at offset 0.
func entryOf(compression recordbatch.Compression, calls ...[]recordbatch.Record) recordbatch.Entry {
	entry := recordbatch.Entry{Revision: 7, AppendTime: 1_700_000_000_500}
	entry.Data = recordbatch.AppendBlock(nil, slices.Values(runsOf(calls...)), compression)
	for _, records := range calls {
		entry.Records += len(records)
	}
	return entry
}

// readAll returns copies of what is left of an entry.
func readAll(r *recordbatch.Reader) ([]recordbatch.Positioned, error) {
	var out []recordbatch.Positioned
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, clone(p))
	}
}

func clone(p *recordbatch.Positioned) recordbatch.Positioned {
	q := *p
	q.Key, q.Value = slices.Clone(p.Key), slices.Clone(p.Value)
	q.Headers = nil
	for _, h := range p.Headers {
		q.Headers = append(q.Headers, recordbatch.Header{Key: h.Key, Value: slices.Clone(h.Value)})
	}
	return q
}

func readEntry(entry recordbatch.Entry) ([]recordbatch.Positioned, error) {
	r := recordbatch.NewReader(recordbatch.MaxBatchBytes)
	r.Reset(entry)
	return readAll(r)
}

// numbered returns n records that are told apart by their values.
func numbered(n, valueBytes int) []recordbatch.Record {
	records := make([]recordbatch.Record, n)
	for i := range records {
		value := fmt.Appendf(nil, "value %d ", i)
		for len(value) < valueBytes {
			value = append(value, byte('a'+len(value)%17))
		}
		records[i] = recordbatch.Record{Timestamp: 1_700_000_000_000 + base.Millis(i), Value: value}
	}
	return records
}

// varied is one record of each shape that the format tells apart.
func varied() []recordbatch.Record {
	return []recordbatch.Record{
		{Timestamp: 1_700_000_000_000, Key: []byte("key"), Value: []byte("value")},
		{Timestamp: 1_699_999_999_000, Key: nil, Value: []byte("null key, earlier time")},
		{Timestamp: 1_700_000_000_001, Key: []byte{}, Value: []byte{}},
		{Timestamp: -5, Key: []byte("tombstone"), Value: nil},
		{Timestamp: 1_700_000_100_000, Value: []byte("headers"), Headers: []recordbatch.Header{
			{Key: "a", Value: []byte("1")}, {Key: "", Value: nil}, {Key: "a", Value: []byte{}},
		}},
	}
}

func genRecords(t *rapid.T, label string, least int) []recordbatch.Record {
	octets := rapid.Custom(func(t *rapid.T) []byte {
		if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
			return nil
		}
		b := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")
		if rapid.IntRange(0, 30).Draw(t, "large") == 0 {
			b = slices.Repeat(append(b, 'x'), rapid.IntRange(1, 40_000).Draw(t, "times"))
		}
		return append([]byte{}, b...)
	})
	record := rapid.Custom(func(t *rapid.T) recordbatch.Record {
		r := recordbatch.Record{
			Timestamp: base.Millis(rapid.Int64().Draw(t, "time")),
			Key:       octets.Draw(t, "key"),
			Value:     octets.Draw(t, "value"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "headers") {
			r.Headers = append(r.Headers, recordbatch.Header{Key: rapid.StringN(0, 8, 20).Draw(t, "name"), Value: octets.Draw(t, "header")})
		}
		return r
	})
	return rapid.SliceOfN(record, least, 60).Draw(t, label)
}

func requireSame(t require.TestingT, want []recordbatch.Record, got []recordbatch.Positioned, start base.Offset) {
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i], got[i].Record, "record %d", i)
		require.Equal(t, start+base.Offset(i), got[i].Offset)
	}
}

var compressions = []recordbatch.Compression{recordbatch.None, recordbatch.Zstd}

func eachCompression(t *testing.T, test func(t *testing.T, compression recordbatch.Compression)) {
	for _, c := range compressions {
		t.Run(c.String(), func(t *testing.T) { test(t, c) })
	}
}
