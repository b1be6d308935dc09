package compacted

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

// FuzzReader gives the reader files whose checksums are right and whose content
// is not: it must say so, without a panic and within bounds of memory.
func FuzzReader(f *testing.F) {
	for _, n := range []int{1, 30, 200} {
		object, _ := writeObject(f, testRecords(0, n), Options{RowGroupRows: 60, PageBytes: 256})
		f.Add(object)
	}
	f.Add([]byte("PAR1"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		const maxAllocated = 1 << 30
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, object := range [][]byte{data, reseal(data)} {
			_, err := Describe(bytes.NewReader(object), int64(len(object)))
			checkClass(t, err)
			if r, err := open(bytes.NewReader(object), int64(len(object))); err == nil {
				tryReader(t, r)
			}
		}
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(maxAllocated))
	})
}

func tryReader(t *testing.T, r *Reader) {
	t.Helper()
	_, err := r.OffsetOfTime(1_700_000_100_003)
	checkClass(t, err)
	s, err := r.ReadFrom(r.Range().Start + base.Offset(r.Range().Len()/2))
	checkClass(t, err)
	if err != nil {
		return
	}
	defer s.Close()
	batch, err := s.Next([]recordbatch.Positioned(nil), 10)
	if err == nil {
		require.NotEmpty(t, batch)
	}
}

// checkClass accepts the errors that bad bytes may cause.
func checkClass(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, base.ErrCorrupt) && !errors.Is(err, base.ErrNewerFormat) {
		t.Fatalf("an error without a class: %v", err)
	}
}

// FuzzRecords writes what the fuzzer makes up and reads it back.
func FuzzRecords(f *testing.F) {
	f.Add([]byte("key"), []byte("value"), "name", []byte("header"), uint8(3), int64(7))
	f.Add([]byte(nil), []byte(nil), "", []byte(nil), uint8(0), int64(-1))
	f.Fuzz(func(t *testing.T, key, value []byte, name string, header []byte, n uint8, at int64) {
		records := make([]recordbatch.Positioned, int(n)+1)
		for i := range records {
			r := &records[i]
			r.Offset, r.Timestamp, r.AppendTime = base.Offset(i), base.Millis(at+int64(i)), base.Millis(i)
			switch i % 4 {
			case 0:
				r.Key, r.Value = key, value
			case 1:
				r.Value = value[:len(value)/2]
			case 2:
				r.Key, r.Headers = key, []recordbatch.Header{{Key: name, Value: header}, {Key: "x", Value: nil}}
			}
		}
		object, meta := writeObject(t, records, Options{RowGroupRows: 33, PageBytes: 64})
		got, err := readFrom(openObject(t, object, meta), 0, 7)
		require.NoError(t, err)
		require.Equal(t, records, got)
	})
}
