package recordbatch

import "github.com/lakestream-go/lakestream/internal/base"

// Header is one name and value attached to a record. A nil Value is null.
type Header struct {
	Key   string
	Value []byte
}

// Record is what a producer appends. A nil Key is null; a nil Value is a
// tombstone. An empty slice that is not nil is an empty key or value.
type Record struct {
	// Timestamp is the record time that the producer gave.
	Timestamp base.Millis
	Key       []byte
	Value     []byte
	Headers   []Header
}

// Positioned is a record at its place in a log.
type Positioned struct {
	Record
	Offset base.Offset
	// Revision is the commit that appended the record; with the offset it
	// orders writes to one key across partitions.
	Revision base.Revision
	// AppendTime is the time that the fold gave the commit: never decreasing.
	AppendTime base.Millis
}

// Source is the records of one range of one log, in order of their offsets,
// which are dense. It can be read any number of times.
type Source interface {
	// Range returns the offsets that Each yields.
	Range() base.OffsetRange
	// Each calls yield for each record in order and stops at the first error,
	// which it returns. The record and its slices are valid only until yield
	// returns.
	Each(yield func(*Positioned) error) error
}
