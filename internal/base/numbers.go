package base

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Offset is the position of a record in a log: dense from 0, assigned by the
// fold, never reused.
type Offset int64

// Revision numbers the records of one shard's commit log: dense from 1, in the
// order in which the coordination store accepted them.
type Revision uint64

// Seq numbers the objects and commit records of one writer: dense from 1, in
// the order in which the writer publishes them.
type Seq uint64

// ProducerSeq numbers what an idempotent producer sends to a stream, at most
// math.MaxInt64. The producer chooses it: it is the same whenever the same record is
// sent again.
type ProducerSeq uint64

// WriterID identifies a writer within its shard: the revision of its WriterOpen
// record. It is never reused, so a record of a closed writer can never land.
type WriterID uint64

// StreamID identifies one incarnation of a stream within its shard: the
// revision of its StreamCreate record. A stream that is dropped and created
// again gets a new one.
type StreamID uint64

// NamespaceID identifies one incarnation of a namespace: the revision of its
// NamespaceCreate record in the log meta.
type NamespaceID uint64

// Partition is the index of a log within its stream, from 0.
type Partition int32

// Shard is the index of a commit shard within its cluster, from 0.
type Shard uint16

// MaxShards is the most shards that a cluster may be created with.
const MaxShards = 64

// MetaShard is the log of what belongs to no stream: cluster settings.
const MetaShard Shard = 0xFFFF

// String renders the shard as it stands in object keys and bucket names: s00,
// or meta.
func (s Shard) String() string {
	if s == MetaShard {
		return "meta"
	}
	return fmt.Sprintf("s%02d", uint16(s))
}

// ParseShard reads what Shard.String writes and nothing else: a name that could
// be written in two ways could be found under one and missed under the other.
func ParseShard(text string) (Shard, error) {
	if text == MetaShard.String() {
		return MetaShard, nil
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "s"), 10, 16)
	if shard := Shard(n); err == nil && n < MaxShards && shard.String() == text {
		return shard, nil
	}
	return 0, fmt.Errorf("%w: shard %q: want s00 to s%d, or meta", ErrInvalid, text, MaxShards-1)
}

// LogID identifies a log within its shard. It names an incarnation, never only
// a name, so a record meant for a dropped stream cannot reach its successor.
type LogID struct {
	Stream    StreamID
	Partition Partition
}

// String renders the log as it stands in object keys: stream id, dash, partition.
func (l LogID) String() string {
	return strconv.FormatUint(uint64(l.Stream), 10) + "-" + strconv.Itoa(int(l.Partition))
}

// Compare orders logs by stream, then by partition.
func (l LogID) Compare(o LogID) int {
	switch {
	case l.Stream < o.Stream, l.Stream == o.Stream && l.Partition < o.Partition:
		return -1
	case l == o:
		return 0
	default:
		return 1
	}
}

// OffsetRange is the half-open range [Start, End) of record offsets of one log.
type OffsetRange struct {
	Start, End Offset
}

// Len returns the number of offsets in the range.
func (r OffsetRange) Len() int64 { return int64(r.End - r.Start) }

// Contains reports whether o lies inside the range.
func (r OffsetRange) Contains(o Offset) bool { return r.Start <= o && o < r.End }

// String renders the range as [start, end).
func (r OffsetRange) String() string { return fmt.Sprintf("[%d, %d)", r.Start, r.End) }

// Millis is a time as milliseconds since the Unix epoch, UTC: the resolution of
// record and append times.
type Millis int64

// MillisOf truncates t to milliseconds.
func MillisOf(t time.Time) Millis { return Millis(t.UnixMilli()) }

// Time returns the instant in UTC.
func (m Millis) Time() time.Time { return time.UnixMilli(int64(m)).UTC() }
