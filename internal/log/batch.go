package log

import (
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Limits bound what one read returns. The zero value means the defaults.
type Limits struct {
	// MaxMessages is a number of records. Default 5,000.
	MaxMessages int
	// MaxBytes bounds keys, values and headers together. A record that is
	// larger is returned alone. Default 1 MiB.
	MaxBytes int64
	// IncludeTrimmed reads also what was trimmed softly: hidden, and still stored.
	IncludeTrimmed bool
}

const (
	defaultMaxMessages = 5000
	defaultMaxBytes    = 1 << 20
)

func (l Limits) withDefaults() (Limits, error) {
	if l.MaxMessages < 0 || l.MaxBytes < 0 {
		return l, fmt.Errorf("%w: read of at most %d messages and %d bytes", base.ErrInvalid, l.MaxMessages, l.MaxBytes)
	}
	if l.MaxMessages == 0 {
		l.MaxMessages = defaultMaxMessages
	}
	if l.MaxBytes == 0 {
		l.MaxBytes = defaultMaxBytes
	}
	return l, nil
}

// Batch is what one read returned. It belongs to the caller, except that keys,
// values and header values may be shared with other readers of the same offsets
// and must not be changed.
type Batch struct {
	Records []recordbatch.Positioned
	// Next is the offset to read from next.
	Next base.Offset
	// Storage is where the records were: one kind a batch. 0 without records.
	Storage shard.Storage
	// Bytes counts keys, values and headers.
	Bytes int64
}

// headerBlock is how many headers are allocated at once.
const headerBlock = 512

// batchBuilder collects a batch within limits.
type batchBuilder struct {
	Batch
	limits  Limits
	headers []recordbatch.Header
}

// add appends a record if the limits allow it; the first one always fits. Headers
// that the reader will use again are copied into blocks, so that none costs an
// allocation of its own.
func (b *batchBuilder) add(r *recordbatch.Positioned, ownsHeaders bool) bool {
	size := recordBytes(r)
	if len(b.Records) > 0 && b.Bytes+size > b.limits.MaxBytes {
		return false
	}
	b.Records = append(b.Records, *r)
	b.Bytes += size
	b.Next = r.Offset + 1
	if !ownsHeaders {
		b.copyHeaders(r)
	}
	return true
}

func (b *batchBuilder) copyHeaders(r *recordbatch.Positioned) {
	added := &b.Records[len(b.Records)-1]
	added.Headers = nil
	n := len(r.Headers)
	if n == 0 {
		return
	}
	if cap(b.headers)-len(b.headers) < n {
		b.headers = make([]recordbatch.Header, 0, max(headerBlock, n))
	}
	start := len(b.headers)
	b.headers = append(b.headers, r.Headers...)
	added.Headers = b.headers[start : start+n : start+n]
}

func recordBytes(r *recordbatch.Positioned) int64 {
	size := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		size += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return int64(size)
}
