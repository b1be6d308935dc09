package decode

import (
	"github.com/apache/iceberg-go"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

// DeadLetters makes rows of a dead-letter table. It is not safe for concurrent
// use.
type DeadLetters struct {
	*rows
	origin  origin
	columns map[string]*column
}

// NewDeadLetters compiles the landed schema of a dead-letter table, which may
// have optional columns besides its own. It errors with base.ErrInvalid when it
// lacks one of its own.
func NewDeadLetters(landed *iceberg.Schema) (*DeadLetters, error) {
	r, columns, err := compile(landed, map[string]kind{
		schema.PartitionColumn:   integer,
		schema.OffsetColumn:      long,
		schema.TimestampColumn:   instant,
		schema.CodeColumn:        text,
		schema.ReasonColumn:      text,
		schema.DeadKeyColumn:     binary,
		schema.DeadPayloadColumn: binary,
		schema.DeadHeadersColumn: list,
		schema.FailedAtColumn:    instant,
	})
	if err != nil {
		return nil, err
	}
	return &DeadLetters{rows: r, origin: originIn(columns), columns: columns}, nil
}

// Append makes a row of a record that a Decoder refused at failedAt.
func (d *DeadLetters) Append(partition base.Partition, record *recordbatch.Positioned, verdict Verdict, failedAt base.Millis) {
	slot := d.n
	d.origin.put(slot, partition, record.Offset, record.Timestamp)
	d.columns[schema.CodeColumn].putString(slot, string(verdict.Code))
	d.columns[schema.ReasonColumn].putString(slot, verdict.Reason)
	if record.Key != nil {
		d.columns[schema.DeadKeyColumn].putBytes(slot, record.Key)
	}
	if record.Value != nil {
		d.columns[schema.DeadPayloadColumn].putBytes(slot, record.Value)
	}
	putHeaders(d.columns[schema.DeadHeadersColumn], slot, record.Headers)
	d.columns[schema.FailedAtColumn].putLong(slot, int64(failedAt)*microsPerMilli)
	d.end(recordBytes(record) + len(verdict.Code) + len(verdict.Reason))
}
