package recordbatch_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

// TestAValidChecksumDoesNotMakeALieTrue gives each field of a batch a value that
// contradicts the rest, under a checksum that holds: what a defect would write, or
// someone who means harm.
func TestAValidChecksumDoesNotMakeALieTrue(t *testing.T) {
	be := binary.BigEndian
	for name, lie := range map[string]func(batch []byte){
		"base offset of another batch":   func(b []byte) { be.PutUint64(b, 8) },
		"negative base offset":           func(b []byte) { be.PutUint64(b, math.MaxUint64) },
		"leader epoch":                   func(b []byte) { be.PutUint32(b[12:], 1) },
		"older magic":                    func(b []byte) { b[16] = 1 },
		"a codec that is not ours":       func(b []byte) { be.PutUint16(b[21:], 1) },
		"zstd that is none":              func(b []byte) { be.PutUint16(b[21:], 4) },
		"log append time":                func(b []byte) { be.PutUint16(b[21:], 8) },
		"a control batch":                func(b []byte) { be.PutUint16(b[21:], 32) },
		"last offset delta":              func(b []byte) { be.PutUint32(b[23:], 8) },
		"no records":                     func(b []byte) { be.PutUint32(b[57:], 0); be.PutUint32(b[23:], math.MaxUint32) },
		"fewer records than there are":   func(b []byte) { be.PutUint32(b[57:], 7); be.PutUint32(b[23:], 6) },
		"more records than there are":    func(b []byte) { be.PutUint32(b[57:], 9); be.PutUint32(b[23:], 8) },
		"records without end":            func(b []byte) { be.PutUint32(b[57:], math.MaxInt32); be.PutUint32(b[23:], math.MaxInt32-1) },
		"a record longer than the batch": func(b []byte) { b[61] = 0x7e },
		"a record of no bytes":           func(b []byte) { b[61] = 0 },
		"a record of negative length":    func(b []byte) { b[61] = 1 },
		"record attributes":              func(b []byte) { b[62] = 1 },
		"offset delta":                   func(b []byte) { b[64] = 2 },
		"a key longer than the record":   func(b []byte) { b[65] = 0x7e },
		"a key of length −2":             func(b []byte) { b[65] = 3 },
		"a key one byte short":           func(b []byte) { b[65] -= 2 },
	} {
		t.Run(name, func(t *testing.T) {
			entry := entryOf(recordbatch.None, varied(), numbered(3, 20))
			require.Equal(t, 8, entry.Records)
			lie(entry.Data)
			reseal(entry.Data)
			_, err := readEntry(entry)
			require.ErrorIs(t, err, base.ErrCorrupt)
		})
	}
}

// oneRecord is a block of one batch with one record of these bytes.
func oneRecord(record ...byte) recordbatch.Entry {
	entry := entryOf(recordbatch.None, numbered(1, 0))
	data := slices.Concat(entry.Data[:recordbatch.HeaderBytes], record)
	binary.BigEndian.PutUint32(data[8:], uint32(len(data)-12)) //nolint:gosec // small
	reseal(data)
	return recordbatch.Entry{Records: 1, Data: data}
}

func TestRecordsAreReadWithinTheirBounds(t *testing.T) {
	for name, c := range map[string]struct {
		record []byte
		valid  bool
	}{
		"null key, null value":            {[]byte{12, 0, 0, 0, 1, 1, 0}, true},
		"empty key, empty value":          {[]byte{12, 0, 0, 0, 0, 0, 0}, true},
		"one header":                      {[]byte{18, 0, 0, 0, 1, 1, 2, 2, 'h', 1}, true},
		"a length in more bytes than due": {[]byte{0x8c, 0x00, 0, 0, 0, 1, 1, 0}, true},
		"cut off in a field":              {[]byte{12, 0, 0, 0, 1, 1}, false},
		"a number without end":            {slices.Concat([]byte{30, 0}, slices.Repeat([]byte{0xff}, 14)), false},
		"a number beyond 64 bits":         {slices.Concat([]byte{34, 0}, slices.Repeat([]byte{0xff}, 9), []byte{0x7f, 0, 1, 1, 0, 0, 0}), false},
		"a negative number of headers":    {[]byte{12, 0, 0, 0, 1, 1, 1}, false},
		"more headers than bytes":         {[]byte{12, 0, 0, 0, 1, 1, 0x7e}, false},
		"a header without a name":         {[]byte{16, 0, 0, 0, 1, 1, 2, 1, 1}, false},
		"a header's value beyond the end": {[]byte{18, 0, 0, 0, 1, 1, 2, 2, 'h', 8}, false},
		"bytes after the last field":      {[]byte{14, 0, 0, 0, 1, 1, 0, 0}, false},
		"bytes after the last record":     {[]byte{12, 0, 0, 0, 1, 1, 0, 0}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readEntry(oneRecord(c.record...))
			if c.valid {
				require.NoError(t, err)
				require.Len(t, got, 1)
				return
			}
			require.ErrorIs(t, err, base.ErrCorrupt)
		})
	}
}

func TestHeaderNamesAreInternedUpToABound(t *testing.T) {
	var records []recordbatch.Record
	for i := range 1000 {
		name := string(rune('a'+i%26)) + string(rune('0'+i%300))
		records = append(records, recordbatch.Record{Timestamp: 1, Headers: []recordbatch.Header{{Key: name}}})
	}
	got, err := readEntry(entryOf(recordbatch.None, records))
	require.NoError(t, err)
	requireSame(t, records, got, 0)
}

func TestReadingAllocatesNothing(t *testing.T) {
	entry := entryOf(recordbatch.None, numbered(1000, 100))
	r := recordbatch.NewReader(recordbatch.MaxBatchBytes)
	require.Zero(t, testing.AllocsPerRun(20, func() {
		r.Reset(entry)
		for range entry.Records {
			if _, err := r.Next(); err != nil {
				t.Error(err)
				return
			}
		}
	}))
}
