package decode

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

// errRequired refuses a column that payloads could leave null.
var errRequired = fmt.Errorf("%w: the column is required, but a payload may lack it: make it optional", base.ErrInvalid)

// errNoColumn says that a landed schema lacks a system column.
var errNoColumn = errors.New("no such column")

// rows buffers rows of one schema.
type rows struct {
	schema  *arrow.Schema
	columns []*column
	n       int
	bytes   int64
	width   int64
}

// compile makes buffers for a landed schema. Columns named in filled, by which
// they are returned, are written for each row; all others must be optional.
func compile(landed *iceberg.Schema, filled map[string]kind) (*rows, map[string]*column, error) {
	arrowSchema, err := table.SchemaToArrowSchema(landed, nil, true, false)
	if err != nil {
		return nil, nil, fmt.Errorf("translating the table's schema: %w", err)
	}
	r := &rows{schema: arrowSchema}
	found := make(map[string]*column, len(filled))
	for _, field := range arrowSchema.Fields() {
		want, isFilled := filled[field.Name]
		if !isFilled && !field.Nullable {
			return nil, nil, fmt.Errorf("column %s: %w", field.Name, errRequired)
		}
		c, err := newColumn(field)
		if err != nil {
			return nil, nil, fmt.Errorf("column %w", err)
		}
		if isFilled {
			if c.kind != want {
				return nil, nil, fmt.Errorf("%w: column %s has type %s, which the engine cannot fill", base.ErrInvalid, field.Name, field.Type)
			}
			found[field.Name] = c
		}
		r.columns = append(r.columns, c)
		r.width += int64(c.width())
	}
	for name := range filled {
		if found[name] == nil {
			return nil, nil, fmt.Errorf("column %s: %w", name, base.WithClass(base.ErrInvalid, errNoColumn))
		}
	}
	return r, found, nil
}

// end ends a row that brought so many bytes.
func (r *rows) end(bytes int) {
	r.n++
	r.bytes += int64(bytes) + r.width
}

// Schema is the Arrow schema of the batches, with Iceberg field ids.
func (r *rows) Schema() *arrow.Schema { return r.schema }

// Rows is how many rows wait for the next Batch.
func (r *rows) Rows() int { return r.n }

// Bytes estimates the memory of the waiting rows.
func (r *rows) Bytes() int64 { return r.bytes }

// Batch returns the waiting rows, to be released by the caller, and starts anew.
func (r *rows) Batch() arrow.RecordBatch {
	arrays := make([]arrow.Array, len(r.columns))
	for i, c := range r.columns {
		data := c.finish(r.n)
		arrays[i] = array.MakeFromData(data)
		data.Release()
		c.reset()
	}
	batch := array.NewRecordBatch(r.schema, arrays, int64(r.n))
	for _, a := range arrays {
		a.Release()
	}
	r.n, r.bytes = 0, 0
	return batch
}

// finish makes Arrow data of n slots out of the buffers, which it hands over.
func (c *column) finish(n int) arrow.ArrayData {
	if c.kind == opaque {
		nulls := array.MakeArrayOfNull(memory.DefaultAllocator, c.typ, n)
		data := nulls.Data()
		data.Retain()
		nulls.Release()
		return data
	}
	c.fill(n)
	buffers := []*memory.Buffer{nil}
	if c.nulls > 0 {
		buffers[0] = memory.NewBufferBytes(c.valid)
	}
	var children []arrow.ArrayData
	switch c.kind {
	case boolean:
		buffers = append(buffers, memory.NewBufferBytes(c.bits))
	case integer:
		buffers = append(buffers, memory.NewBufferBytes(arrow.GetBytes(c.ints)))
	case long, instant:
		buffers = append(buffers, memory.NewBufferBytes(arrow.GetBytes(c.longs)))
	case double:
		buffers = append(buffers, memory.NewBufferBytes(arrow.GetBytes(c.doubles)))
	case text, binary:
		buffers = append(buffers, memory.NewBufferBytes(arrow.GetBytes(c.offsets)), memory.NewBufferBytes(c.bytes))
	case list:
		buffers = append(buffers, memory.NewBufferBytes(arrow.GetBytes(c.offsets)))
		children = append(children, c.elem.finish(c.elements))
	case structure:
		for _, f := range c.fields {
			children = append(children, f.finish(n))
		}
	case opaque:
	}
	data := array.NewData(c.typ, n, buffers, children, c.nulls, 0)
	for _, child := range children {
		child.Release()
	}
	return data
}

// origin are the columns that say where a row came from, each nil when absent.
type origin struct {
	partition, offset, timestamp *column
}

func originIn(columns map[string]*column) origin {
	return origin{
		partition: columns[schema.PartitionColumn],
		offset:    columns[schema.OffsetColumn],
		timestamp: columns[schema.TimestampColumn],
	}
}

// put fills the columns, and returns whether the record time fitted its own.
func (o *origin) put(slot int, partition base.Partition, offset base.Offset, at base.Millis) bool {
	if o.partition != nil {
		o.partition.putInt(slot, int32(partition))
	}
	if o.offset != nil {
		o.offset.putLong(slot, int64(offset))
	}
	if o.timestamp == nil {
		return true
	}
	micros := int64(at) * microsPerMilli
	if micros/microsPerMilli != int64(at) {
		return false
	}
	o.timestamp.putLong(slot, micros)
	return true
}

const microsPerMilli = 1000
