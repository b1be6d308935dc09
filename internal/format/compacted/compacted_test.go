package compacted

import (
	"bytes"
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

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	for name, opts := range map[string]Options{"defaults": {}, "many row groups": smallGroups} {
		t.Run(name, func(t *testing.T) {
			records := testRecords(1000, 1000)
			object, meta := writeObject(t, records, opts)
			got, err := readFrom(openObject(t, object, meta), 1000, 64)
			require.NoError(t, err)
			require.Equal(t, records, got)
		})
	}
}

func TestReadingStartsAtAnyOffset(t *testing.T) {
	records := testRecords(40, 340)
	object, meta := writeObject(t, records, smallGroups)
	r := openObject(t, object, meta)
	for start := range len(records) + 1 {
		got, err := readFrom(r, base.Offset(40+start), 90)
		require.NoError(t, err, "from row %d", start)
		require.Len(t, got, len(records)-start)
		for i := range got {
			require.Equal(t, records[start+i], got[i], "from row %d", start)
		}
	}
	for _, outside := range []base.Offset{39, 381, -1} {
		_, err := r.ReadFrom(outside)
		require.ErrorIs(t, err, base.ErrInvalid)
	}
}

func TestPropertyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOfN(rapid.Custom(drawRecord), 1, 300).Draw(t, "records")
		start := base.Offset(rapid.Int64Range(0, 1<<40).Draw(t, "start"))
		for i := range records {
			records[i].Offset = start + base.Offset(i)
			if i > 0 {
				records[i].AppendTime += records[i-1].AppendTime
				records[i].Revision += records[i-1].Revision
			}
		}
		meta := testMeta(start, start+base.Offset(len(records)))
		var out bytes.Buffer
		w, err := NewWriter(&out, meta, Options{
			RowGroupRows:  rapid.IntRange(1, 200).Draw(t, "group rows"),
			RowGroupBytes: rapid.Int64Range(1, 1<<16).Draw(t, "group bytes"),
			PageBytes:     rapid.Int64Range(1, 4096).Draw(t, "page bytes"),
		})
		require.NoError(t, err)
		for i := range records {
			require.NoError(t, w.Write(&records[i]))
		}
		_, err = w.Close()
		require.NoError(t, err)

		r, err := Open(bytes.NewReader(out.Bytes()), int64(out.Len()), meta)
		require.NoError(t, err)
		from := rapid.IntRange(0, len(records)-1).Draw(t, "from")
		got, err := readFrom(r, start+base.Offset(from), rapid.IntRange(1, 400).Draw(t, "rows"))
		require.NoError(t, err)
		require.Equal(t, records[from:], got)
	})
}

func drawRecord(t *rapid.T) recordbatch.Positioned {
	blob := rapid.OneOf(
		rapid.Just[[]byte](nil),
		rapid.SliceOfN(rapid.Byte(), 0, 40),
		rapid.Map(rapid.IntRange(0, 9000), func(n int) []byte { return bytes.Repeat([]byte{'x'}, n) }),
	)
	header := rapid.Custom(func(t *rapid.T) recordbatch.Header {
		return recordbatch.Header{Key: rapid.StringN(0, 6, 12).Draw(t, "name"), Value: blob.Draw(t, "header")}
	})
	r := recordbatch.Positioned{
		Record: recordbatch.Record{
			Timestamp: base.Millis(rapid.Int64().Draw(t, "timestamp")),
			Key:       blob.Draw(t, "key"),
			Value:     blob.Draw(t, "value"),
		},
		AppendTime: base.Millis(rapid.Int64Range(0, 1000).Draw(t, "append time")),
		Revision:   base.Revision(rapid.Uint64Range(0, 3).Draw(t, "revision")),
	}
	if headers := rapid.SliceOfN(header, 0, 5).Draw(t, "headers"); len(headers) > 0 {
		r.Headers = headers
	}
	return r
}

func TestOneRecordMayBeLargerThanAPageAndAGroup(t *testing.T) {
	records := testRecords(0, 9)
	for i := range records {
		records[i].Value = bytes.Repeat([]byte{byte('a' + i)}, 300<<10)
		records[i].Headers = slices.Repeat([]recordbatch.Header{{Key: "wide", Value: []byte("v")}}, 3000)
	}
	object, meta := writeObject(t, records, Options{RowGroupBytes: 1 << 20, PageBytes: 64 << 10})
	r := openObject(t, object, meta)
	for start := range records {
		got, err := readFrom(r, base.Offset(start), 1)
		require.NoError(t, err)
		require.Equal(t, records[start:], got)
	}
}

func TestManyRowsEndPagesByCountToo(t *testing.T) {
	const n = 3*pageRows + 5
	records := make([]recordbatch.Positioned, n)
	for i := range records {
		records[i] = recordbatch.Positioned{Offset: base.Offset(i), Revision: 1}
	}
	object, meta := writeObject(t, records, Options{})
	r := openObject(t, object, meta)
	for _, start := range []int{0, pageRows - 1, pageRows, 2*pageRows + 1, n - 1} {
		got, err := readFrom(r, base.Offset(start), maxBatchRows)
		require.NoError(t, err)
		require.Len(t, got, n-start)
		require.Equal(t, records[start], got[0])
	}
}

func TestRecordsOutliveTheScan(t *testing.T) {
	records := testRecords(0, 600)
	object, meta := writeObject(t, records, smallGroups)
	s, err := openObject(t, object, meta).ReadFrom(0)
	require.NoError(t, err)
	var kept []recordbatch.Positioned
	for batch := []recordbatch.Positioned(nil); ; {
		batch, err = s.Next(batch[:0], 50)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		kept = append(kept, batch...)
	}
	s.Close()
	clear(object)
	require.Equal(t, records, kept)
}

func TestAnEmptyRangeIsAnObjectToo(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, testMeta(7, 7), Options{})
	require.NoError(t, err)
	stats, err := w.Close()
	require.NoError(t, err)
	require.Zero(t, stats.Rows)
	r := openObject(t, out.Bytes(), testMeta(7, 7))
	got, err := readFrom(r, 7, 1)
	require.NoError(t, err)
	require.Empty(t, got)
	offset, err := r.OffsetOfTime(5)
	require.NoError(t, err)
	require.Equal(t, base.Offset(7), offset)
}

func TestTheWriterRefusesWhatDoesNotFit(t *testing.T) {
	good := recordbatch.Positioned{Offset: 10, AppendTime: 100, Revision: 4}
	next := recordbatch.Positioned{Offset: 11, AppendTime: 100, Revision: 4}
	large := good
	large.Value = make([]byte, MaxRecordBytes+1)
	early, older := next, next
	early.AppendTime, older.Revision = 99, 3
	for name, records := range map[string][]recordbatch.Positioned{
		"a gap":                 {next},
		"the same offset twice": {good, good},
		"past the end":          {good, next, {Offset: 12, AppendTime: 100, Revision: 4}},
		"append time goes back": {good, early},
		"revision goes back":    {good, older},
		"too large":             {large},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := NewWriter(io.Discard, testMeta(10, 12), Options{})
			require.NoError(t, err)
			for i := range records {
				err = w.Write(&records[i])
			}
			require.ErrorIs(t, err, base.ErrInvalid)
			_, err = w.Close()
			require.ErrorIs(t, err, base.ErrInvalid, "an object that took a bad record cannot be finished")
		})
	}
}

func TestTheWriterRefusesAnIncompleteRangeAndASecondClose(t *testing.T) {
	w, err := NewWriter(io.Discard, testMeta(0, 2), Options{})
	require.NoError(t, err)
	require.NoError(t, w.Write(&recordbatch.Positioned{}))
	_, err = w.Close()
	require.ErrorIs(t, err, base.ErrInvalid)

	w, err = NewWriter(io.Discard, testMeta(0, 0), Options{})
	require.NoError(t, err)
	_, err = w.Close()
	require.NoError(t, err)
	_, err = w.Close()
	require.ErrorIs(t, err, base.ErrClosed)
}

func TestOptionsAreChecked(t *testing.T) {
	for _, bad := range []Options{
		{RowGroupBytes: -1}, {RowGroupBytes: 1 << 40}, {RowGroupRows: -1}, {RowGroupRows: 1 << 30}, {PageBytes: -1}, {PageBytes: 1 << 30},
	} {
		_, err := NewWriter(io.Discard, testMeta(0, 1), bad)
		require.ErrorIs(t, err, base.ErrInvalid, "%+v", bad)
	}
	_, err := NewWriter(io.Discard, testMeta(5, 4), Options{})
	require.ErrorIs(t, err, base.ErrInvalid)
}

// failingWriter takes so many bytes and then fails.
type failingWriter struct{ left int }

var errFull = errors.New("disk full")

func (f *failingWriter) Write(p []byte) (int, error) {
	if len(p) > f.left {
		return 0, errFull
	}
	f.left -= len(p)
	return len(p), nil
}

func TestAFailingSinkFailsTheObject(t *testing.T) {
	records := testRecords(0, 3000)
	for i := range records {
		records[i].Value = fmt.Appendf(nil, "%x", i*2654435761)
	}
	object, meta := writeObject(t, records, smallGroups)
	for room := 0; room < len(object); room += 1 + len(object)/50 {
		w, err := NewWriter(&failingWriter{left: room}, meta, smallGroups)
		for i := 0; err == nil && i < len(records); i++ {
			err = w.Write(&records[i])
		}
		if err == nil {
			_, err = w.Close()
		}
		require.ErrorIs(t, err, errFull, "room for %d of %d bytes", room, len(object))
	}
}

func TestTimeLookup(t *testing.T) {
	records := testRecords(500, 900)
	object, meta := writeObject(t, records, smallGroups)
	r := openObject(t, object, meta)
	first, last := records[0].AppendTime, records[len(records)-1].AppendTime
	for at := first - 2; at <= last+2; at++ {
		want := base.Offset(500 + slices.IndexFunc(records, func(r recordbatch.Positioned) bool { return r.AppendTime >= at }))
		if at > last {
			want = meta.Range.End
		}
		got, err := r.OffsetOfTime(at)
		require.NoError(t, err)
		require.Equal(t, want, got, "at %d", at)
	}
}

func TestEachStopsAtTheFirstError(t *testing.T) {
	records := testRecords(0, 400)
	object, meta := writeObject(t, records, smallGroups)
	r := openObject(t, object, meta)
	for range 2 {
		var got []recordbatch.Positioned
		require.NoError(t, r.Each(func(p *recordbatch.Positioned) error {
			got = append(got, *p)
			return nil
		}))
		require.Equal(t, records, got, "a source can be read again")
	}
	enough, calls := errors.New("enough"), 0
	err := r.Each(func(*recordbatch.Positioned) error {
		calls++
		if calls == 201 {
			return enough
		}
		return nil
	})
	require.ErrorIs(t, err, enough)
	require.Equal(t, 201, calls)
}

func TestDescribeTellsWhatIsInside(t *testing.T) {
	records := testRecords(100, 340)
	object, meta := writeObject(t, records, smallGroups)
	d, err := Describe(bytes.NewReader(object), int64(len(object)))
	require.NoError(t, err)
	require.Equal(t, meta, d.Meta)
	require.Equal(t, int64(len(object)), d.Bytes)
	require.Len(t, d.RowGroups, 3)
	require.Equal(t, base.OffsetRange{Start: 250, End: 400}, d.RowGroups[1].Range)
	require.Equal(t, int64(20), d.Tombstones)
	require.Equal(t, int64(20+3*20), d.Headers)
	require.Equal(t, records[0].AppendTime, d.FirstAppend)
	require.Equal(t, records[339].AppendTime, d.LastAppend)
	require.Equal(t, records[339].Revision, d.LastRevision)
}
