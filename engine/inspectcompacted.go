package engine

import (
	"time"

	"github.com/lakestream-go/lakestream/internal/format/compacted"
)

// CompactedDescription is what a compacted object holds: the records [Start, End)
// of one log.
type CompactedDescription struct {
	Cluster     string                `json:"cluster"`
	Shard       string                `json:"shard"`
	Stream      uint64                `json:"stream_id"`
	Partition   Partition             `json:"partition"`
	Start       Offset                `json:"start"`
	End         Offset                `json:"end"`
	Bytes       int64                 `json:"bytes"`
	FooterBytes int64                 `json:"footer_bytes"`
	RowGroups   []RowGroupDescription `json:"row_groups"`
	// Tombstones counts records without a value, Headers counts headers.
	Tombstones int64 `json:"tombstones"`
	Headers    int64 `json:"headers"`
	KeyBytes   int64 `json:"key_bytes"`
	ValueBytes int64 `json:"value_bytes"`
	// MinTime and MaxTime bound the record times, FirstAppend and LastAppend
	// the append times, FirstRevision and LastRevision the commit records.
	MinTime       time.Time `json:"min_time"`
	MaxTime       time.Time `json:"max_time"`
	FirstAppend   time.Time `json:"first_append"`
	LastAppend    time.Time `json:"last_append"`
	FirstRevision uint64    `json:"first_revision"`
	LastRevision  uint64    `json:"last_revision"`
}

// RowGroupDescription is one row group of a compacted object.
type RowGroupDescription struct {
	Start Offset `json:"start"`
	End   Offset `json:"end"`
	// Bytes is its size in the object, RawBytes before compression.
	Bytes    int64 `json:"bytes"`
	RawBytes int64 `json:"raw_bytes"`
}

func describeCompacted(d *compacted.Description) *CompactedDescription {
	described := &CompactedDescription{
		Cluster: d.Meta.Cluster.String(), Shard: d.Meta.Shard.String(),
		Stream: uint64(d.Meta.Log.Stream), Partition: d.Meta.Log.Partition,
		Start: d.Meta.Range.Start, End: d.Meta.Range.End,
		Bytes: d.Bytes, FooterBytes: d.FooterBytes, RowGroups: []RowGroupDescription{},
		Tombstones: d.Tombstones, Headers: d.Headers, KeyBytes: d.KeyBytes, ValueBytes: d.ValueBytes,
		MinTime: d.MinTime.Time(), MaxTime: d.MaxTime.Time(),
		FirstAppend: d.FirstAppend.Time(), LastAppend: d.LastAppend.Time(),
		FirstRevision: uint64(d.FirstRevision), LastRevision: uint64(d.LastRevision),
	}
	for _, g := range d.RowGroups {
		described.RowGroups = append(described.RowGroups, RowGroupDescription{
			Start: g.Range.Start, End: g.Range.End, Bytes: g.Bytes, RawBytes: g.RawBytes,
		})
	}
	return described
}
