package recordbatch

import (
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Run is consecutive records of one log, encoded relative to the first of them
// and without a batch header. Runs are joined into batches by AppendBlock.
type Run struct {
	// Data is the encoded records. It is not changed once made.
	Data []byte
	// Records is their number, at least 1.
	Records int
	// BaseTime is the record time of the first record, to which the others
	// are relative; MinTime and MaxTime are the extremes.
	BaseTime, MinTime, MaxTime base.Millis
}

// EncodedBound returns a number of bytes that the record does not exceed once
// encoded, wherever it stands. It is at most 36 bytes, and 20 for each header,
// above the record's own.
func EncodedBound(r *Record) int {
	n := 1 + 7*5 + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += 2*maxVarintBytes + len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}

// AppendRun encodes the first of records, at least one and then as many as stay
// within TargetBytes together, at the end of dst. It returns the longer dst and
// the run, whose Data is that end. Each record must be within MaxBatchBytes by
// EncodedBound, and records must not be empty.
func AppendRun(dst []byte, records []Record) ([]byte, Run) {
	start := len(dst)
	first := records[0].Timestamp
	run := Run{BaseTime: first, MinTime: first, MaxTime: first}
	for i := range records {
		r := &records[i]
		body := bodyBytes(r, i, int64(r.Timestamp-first))
		total := varintBytes(int64(body)) + body
		if i > 0 && len(dst)-start+total > TargetBytes {
			break
		}
		dst = slices.Grow(dst, total)
		end := len(dst) + total
		putRecord(dst[len(dst):end], r, body, i, int64(r.Timestamp-first))
		dst = dst[:end]
		run.Records++
		run.MinTime = min(run.MinTime, r.Timestamp)
		run.MaxTime = max(run.MaxTime, r.Timestamp)
	}
	run.Data = dst[start:len(dst):len(dst)]
	return dst, run
}

// bodyBytes is the length of a record after its length field.
func bodyBytes(r *Record, index int, timeDelta int64) int {
	n := 1 + varintBytes(timeDelta) + varintBytes(int64(index)) +
		octetsBytes(r.Key) + octetsBytes(r.Value) + varintBytes(int64(len(r.Headers)))
	for i := range r.Headers {
		h := &r.Headers[i]
		n += varintBytes(int64(len(h.Key))) + len(h.Key) + octetsBytes(h.Value)
	}
	return n
}

func octetsBytes(b []byte) int {
	if b == nil {
		return 1
	}
	return varintBytes(int64(len(b))) + len(b)
}

// putRecord fills dst with a record whose body length is known.
func putRecord(dst []byte, r *Record, body, index int, timeDelta int64) {
	p := putVarint(dst, int64(body))
	dst[p] = 0 // attributes
	p++
	p += putVarint(dst[p:], timeDelta)
	p += putVarint(dst[p:], int64(index))
	p += putOctets(dst[p:], r.Key)
	p += putOctets(dst[p:], r.Value)
	p += putVarint(dst[p:], int64(len(r.Headers)))
	for i := range r.Headers {
		h := &r.Headers[i]
		p += putVarint(dst[p:], int64(len(h.Key)))
		p += copy(dst[p:], h.Key)
		p += putOctets(dst[p:], h.Value)
	}
}

func putOctets(dst, b []byte) int {
	if b == nil {
		return putVarint(dst, -1)
	}
	n := putVarint(dst, int64(len(b)))
	return n + copy(dst[n:], b)
}
