package compacted

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

func testMeta(start, end base.Offset) Meta {
	return Meta{
		Cluster: base.ClusterID{1, 2, 3},
		Shard:   2,
		Log:     base.LogID{Stream: 17, Partition: 3},
		Range:   base.OffsetRange{Start: start, End: end},
	}
}

// testRecords makes n records from an offset on, with every shape of key, value
// and headers among them.
func testRecords(start base.Offset, n int) []recordbatch.Positioned {
	records := make([]recordbatch.Positioned, n)
	for i := range records {
		r := &records[i]
		r.Offset = start + base.Offset(i)
		r.Timestamp = base.Millis(1_700_000_000_000 + i*37%1000)
		r.AppendTime = base.Millis(1_700_000_100_000 + i/10)
		r.Revision = base.Revision(5 + i/7)
		r.Value = fmt.Appendf(nil, `{"id":%d,"name":"event number %d"}`, i, i)
		if i%3 != 0 {
			r.Key = fmt.Appendf(nil, "key-%d", i%11)
		}
		switch i % 17 {
		case 3:
			r.Value = nil
		case 4:
			r.Value = []byte{}
		case 5:
			r.Key = []byte{}
		case 6:
			r.Headers = []recordbatch.Header{{Key: "trace", Value: fmt.Appendf(nil, "t%d", i)}}
		case 7:
			r.Headers = []recordbatch.Header{{Key: "a", Value: nil}, {Key: "", Value: []byte{}}, {Key: "a", Value: []byte("2")}}
		}
	}
	return records
}

func writeObject(t testing.TB, records []recordbatch.Positioned, opts Options) ([]byte, Meta) {
	t.Helper()
	start := records[0].Offset
	meta := testMeta(start, start+base.Offset(len(records)))
	var out bytes.Buffer
	w, err := NewWriter(&out, meta, opts)
	require.NoError(t, err)
	for i := range records {
		require.NoError(t, w.Write(&records[i]))
	}
	stats, err := w.Close()
	require.NoError(t, err)
	require.Equal(t, int64(out.Len()), stats.Bytes)
	require.Equal(t, int64(len(records)), stats.Rows)
	return out.Bytes(), meta
}

func openObject(t testing.TB, object []byte, meta Meta) *Reader {
	t.Helper()
	r, err := Open(bytes.NewReader(object), int64(len(object)), meta)
	require.NoError(t, err)
	return r
}

// readFrom reads everything from an offset on, rows records a call.
func readFrom(r *Reader, offset base.Offset, rows int) ([]recordbatch.Positioned, error) {
	s, err := r.ReadFrom(offset)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var all []recordbatch.Positioned
	for {
		before := len(all)
		all, err = s.Next(all, rows)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		if n := len(all) - before; n < 1 || n > max(rows, 1) {
			return all, fmt.Errorf("%d records in a call for %d", n, rows)
		}
	}
}

// smallGroups are options under which a few hundred records fill several row
// groups of several pages.
var smallGroups = Options{RowGroupRows: 150, PageBytes: 512}
