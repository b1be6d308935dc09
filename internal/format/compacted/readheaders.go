package compacted

import (
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

const (
	// levelBatch is how many levels of a repeated column are decoded at once.
	levelBatch = 1024
	// blockBytes and blockHeaders size the buffers that headers are carved
	// from, so that a header costs no allocation of its own.
	blockBytes   = 16 << 10
	blockHeaders = 512
	// maxNames bounds the header names that a scan keeps; more are
	// allocated one by one.
	maxNames = 256
)

// headerReader reads the two columns of headers side by side.
type headerReader struct {
	names, values levelReader
	bytes         []byte
	headers       []recordbatch.Header
}

func (h *headerReader) open(names, values *file.ByteArrayColumnChunkReader) {
	h.names.open(names, levelHeaderPresent)
	h.values.open(values, levelHeaderValue)
}

// column returns the reader of a leaf column of headers.
func (h *headerReader) column(leaf int) *levelReader {
	if leaf == colHeaderKey {
		return &h.names
	}
	return &h.values
}

// next returns the headers of the next row, or nil when it has none. names
// holds the header names seen so far.
func (h *headerReader) next(names map[string]string) ([]recordbatch.Header, error) {
	start := len(h.headers)
	for first := true; ; first = false {
		more, err := h.more(first)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		name, value := h.names.take(), h.values.take()
		if name.def < levelHeaderPresent {
			// A row without headers has one entry that holds none.
			if !first || value.def != name.def {
				return nil, corruptf("headers: levels %d and %d", name.def, value.def)
			}
			return nil, nil
		}
		if value.def < levelHeaderPresent {
			return nil, corruptf("headers: a name at level %d has a value at level %d", name.def, value.def)
		}
		start = h.room(start)
		h.headers = append(h.headers, recordbatch.Header{Key: intern(names, name.blob), Value: h.own(value.blob)})
	}
	return h.headers[start:len(h.headers):len(h.headers)], nil
}

// more reports whether another entry belongs to the row; the first one must.
func (h *headerReader) more(first bool) (bool, error) {
	nameRep, err := h.names.peek()
	if err != nil {
		return false, err
	}
	valueRep, err := h.values.peek()
	if err != nil {
		return false, err
	}
	if nameRep != valueRep || first && nameRep != 0 {
		return false, corruptf("headers: names and values repeat differently: %d and %d", nameRep, valueRep)
	}
	return first || nameRep == 1, nil
}

// room makes place for one more header and keeps those since start together.
func (h *headerReader) room(start int) int {
	if len(h.headers) < cap(h.headers) {
		return start
	}
	row := h.headers[start:]
	h.headers = append(make([]recordbatch.Header, 0, max(blockHeaders, 2*len(row))), row...)
	return 0
}

// own copies a value into the current buffer; nil stays nil.
func (h *headerReader) own(blob []byte) []byte {
	if blob == nil {
		return nil
	}
	if cap(h.bytes)-len(h.bytes) < len(blob) || h.bytes == nil {
		h.bytes = make([]byte, 0, max(blockBytes, len(blob)))
	}
	start := len(h.bytes)
	h.bytes = append(h.bytes, blob...)
	return h.bytes[start:len(h.bytes):len(h.bytes)]
}

// intern returns the text of a name without allocating for one seen before.
func intern(names map[string]string, blob []byte) string {
	if name, ok := names[string(blob)]; ok {
		return name
	}
	name := string(blob)
	if len(names) < maxNames {
		names[name] = name
	}
	return name
}

// levelReader walks a repeated column entry by entry.
type levelReader struct {
	column     *file.ByteArrayColumnChunkReader
	full       int16
	defs, reps []int16
	blobs      []parquet.ByteArray
	levels     int
	level      int // the next entry
	blob       int // the next byte string
}

// levelEntry is one entry: blob is nil unless the entry is at the full level. It
// is valid until the next peek.
type levelEntry struct {
	def  int16
	blob []byte
}

// endOfColumn is what peek returns behind the last entry; no entry repeats so.
const endOfColumn int16 = -1

func (l *levelReader) open(column *file.ByteArrayColumnChunkReader, full int16) {
	if l.defs == nil {
		l.defs, l.reps = make([]int16, levelBatch), make([]int16, levelBatch)
		l.blobs = make([]parquet.ByteArray, levelBatch)
	}
	l.column, l.full = column, full
	l.levels, l.level, l.blob = 0, 0, 0
}

// peek returns the repetition level of the next entry: 0 starts a row.
func (l *levelReader) peek() (int16, error) {
	if l.level == l.levels {
		levels, _, err := l.column.ReadBatchInPage(levelBatch, l.blobs, l.defs, l.reps)
		if err == nil {
			err = l.column.Err()
		}
		if err != nil {
			return 0, err
		}
		l.levels, l.level, l.blob = int(levels), 0, 0
		if levels == 0 {
			return endOfColumn, nil
		}
	}
	return l.reps[l.level], nil
}

func (l *levelReader) take() levelEntry {
	entry := levelEntry{def: l.defs[l.level]}
	if entry.def == l.full {
		entry.blob = l.blobs[l.blob]
		l.blob++
		if entry.blob == nil {
			entry.blob = []byte{}
		}
	}
	l.level++
	return entry
}

// skip passes over whole rows, from the start of a row.
func (l *levelReader) skip(rows int64) error {
	for {
		rep, err := l.peek()
		if err != nil {
			return err
		}
		if rep != 1 {
			rows--
		}
		if rows < 0 {
			return nil
		}
		if rep == endOfColumn {
			return corruptf("%d rows are missing", rows+1)
		}
		l.take()
	}
}
