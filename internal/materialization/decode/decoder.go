package decode

import (
	"errors"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/materialization/document"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

// Verdict says what became of a record. The zero value: it landed.
type Verdict struct {
	// Code is empty for a row; otherwise the record is a dead letter.
	Code schema.Code
	// Reason is one sentence for people, of bounded length.
	Reason string
}

// Landed reports whether the record became a row.
func (v Verdict) Landed() bool { return v.Code == "" }

// Decoder makes rows of one landed schema. It is not safe for concurrent use.
type Decoder struct {
	*rows
	origin origin
	// key and headers are nil when the table does not have them.
	key, headers *column
	overflowed   *column
	// user is a struct of the columns that payloads fill.
	user   *column
	limits schema.Limits
	room   bool
	novel  bool

	doc      document.Document
	name     []byte
	path     []step
	overflow overflow
	// late are members of the objects under way that match a field only without
	// regard to case.
	late []late
	// elementBytes is what the list elements of the row take when all null.
	elementBytes int64
}

// maxElementBytes is how much the list elements of one row may take even when
// all are null; an array that would exceed it overflows whole. Without a bound,
// a million empty objects in a list of wide structs would exhaust memory.
const maxElementBytes = 64 << 20

// step is one step of the path to the value at hand: a name, or an index when
// the name is -1, or the column of a payload that is no object when both are.
type step struct {
	name  document.Node
	index int
}

// late is a member, by its name, and the field that it matches.
type late struct {
	field int
	name  document.Node
}

// keptLate is how much room for late members survives a payload.
const keptLate = 1 << 12

// New compiles a decoder. It errors with base.ErrInvalid when the schema lacks
// a system column or requires a column that payloads may lack.
func New(landed *iceberg.Schema, system schema.SystemColumns, limits schema.Limits) (*Decoder, error) {
	filled := map[string]kind{schema.OverflowColumn: text}
	for name, want := range map[string]struct {
		on   bool
		kind kind
	}{
		schema.PartitionColumn: {system.Partition, integer},
		schema.OffsetColumn:    {system.Offset, long},
		schema.TimestampColumn: {system.Timestamp, instant},
		schema.KeyColumn:       {system.Key, binary},
		schema.HeadersColumn:   {system.Headers, list},
	} {
		if want.on {
			filled[name] = want.kind
		}
	}
	r, found, err := compile(landed, filled)
	if err != nil {
		return nil, err
	}
	limits = limits.WithDefaults()
	d := &Decoder{
		rows: r, origin: originIn(found), key: found[schema.KeyColumn], headers: found[schema.HeadersColumn],
		overflowed: found[schema.OverflowColumn], user: &column{kind: structure},
		limits: limits, room: schema.Leaves(landed) < limits.MaxColumns,
	}
	var fields []arrow.Field
	for i, field := range r.schema.Fields() {
		if !schema.IsSystem(field.Name) {
			fields = append(fields, field)
			d.user.fields = append(d.user.fields, r.columns[i])
		}
	}
	d.user.lookup = newLookup(fields)
	return d, nil
}

// Novel reports whether a record since New held something that has no column
// and could get one: inferring and evolving may be worth while.
func (d *Decoder) Novel() bool { return d.novel }

// Append makes a row of a record, or says why it is a dead letter; then it
// appended nothing.
func (d *Decoder) Append(partition base.Partition, record *recordbatch.Positioned) Verdict {
	if record.Value == nil {
		return Verdict{Code: schema.CodeTombstone, Reason: "the record has no payload"}
	}
	if err := d.doc.Parse(record.Value); err != nil {
		return Verdict{Code: codeOf(err), Reason: err.Error()}
	}
	slot := d.n
	d.overflow.start(&d.doc, len(record.Value))
	if !d.origin.put(slot, partition, record.Offset, record.Timestamp) {
		d.overflow.timestamp(record.Timestamp)
	}
	if d.key != nil && record.Key != nil {
		d.key.putBytes(slot, record.Key)
	}
	if d.headers != nil {
		putHeaders(d.headers, slot, record.Headers)
	}
	d.payload(slot)
	d.bytes += d.elementBytes
	if object := d.overflow.finish(); object != nil {
		d.overflowed.putBytes(slot, object)
	}
	d.end(recordBytes(record))
	return Verdict{}
}

func codeOf(err error) schema.Code {
	switch {
	case errors.Is(err, document.ErrUTF8):
		return schema.CodeInvalidUTF8
	case errors.Is(err, document.ErrTooDeep):
		return schema.CodeTooDeep
	case errors.Is(err, document.ErrTooLarge):
		return schema.CodeTooLarge
	default:
		return schema.CodeInvalidJSON
	}
}

// recordBytes is what a record's variable parts take in a row.
func recordBytes(record *recordbatch.Positioned) int {
	bytes := len(record.Key) + len(record.Value)
	for _, h := range record.Headers {
		bytes += len(h.Key) + len(h.Value)
	}
	return bytes
}

// putHeaders puts a list of key and value, or nothing when there are none.
func putHeaders(c *column, slot int, headers []recordbatch.Header) {
	if len(headers) == 0 {
		return
	}
	first := c.putList(slot, len(headers))
	for i, h := range headers {
		c.elem.take(first + i)
		c.elem.fields[0].putString(first+i, strings.ToValidUTF8(h.Key, "\uFFFD"))
		if h.Value != nil {
			c.elem.fields[1].putBytes(first+i, h.Value)
		}
	}
}

// payload puts the parsed payload into the slot of the user columns.
func (d *Decoder) payload(slot int) {
	d.path, d.elementBytes = d.path[:0], 0
	if d.doc.Kind(document.Root) == document.Object {
		d.members(d.user, slot, document.Root, 1)
		if cap(d.late) > keptLate {
			d.late = nil
		}
		return
	}
	key, at := []byte(schema.ValueColumn), step{name: -1, index: -1}
	if i, _ := d.user.lookup.find(key, 0); i >= 0 {
		d.fill(d.user.fields[i], slot, at, document.Root, 1)
		return
	}
	d.unknown(key, at, document.Root, 1)
}

// members puts the members of an object into the fields of a struct, which are
// at depth. Those that match a field only without regard to case come last, so
// that they never take what belongs to one of the exact name.
func (d *Decoder) members(c *column, slot int, n document.Node, depth int) {
	guess, first := 0, len(d.late)
	for name := d.doc.First(n); name < d.doc.Next(n); {
		value := d.doc.Next(name)
		var key []byte
		key, d.name = d.doc.Text(name, d.name)
		i, exact := c.lookup.find(key, guess)
		switch {
		case i < 0:
			d.unknown(key, step{name: name}, value, depth)
		case exact:
			d.fill(c.fields[i], slot, step{name: name}, value, depth)
			guess = i + 1
		default:
			d.late = append(d.late, late{field: i, name: name})
			guess = i + 1
		}
		name = d.doc.Next(value)
	}
	for k := first; k < len(d.late); k++ {
		name := d.late[k].name
		d.fill(c.fields[d.late[k].field], slot, step{name: name}, d.doc.Next(name), depth)
	}
	d.late = d.late[:first]
}

// enter begins the path of a member at depth.
func (d *Decoder) enter(at step, depth int) {
	if depth == 1 {
		d.overflow.top = at
	}
	d.path = append(d.path, at)
}

func (d *Decoder) leave() { d.path = d.path[:len(d.path)-1] }

// fill puts a member's value into the column that it claims, or overflows it
// when another member of the object did.
func (d *Decoder) fill(c *column, slot int, at step, value document.Node, depth int) {
	d.enter(at, depth)
	switch {
	case c.claim(slot):
		d.value(c, slot, value, depth)
	case d.doc.Kind(value) != document.Null:
		d.spill(value)
	}
	d.leave()
}

// unknown overflows a value that has no column, unless there is nothing in it
// that could ever have one.
func (d *Decoder) unknown(key []byte, at step, value document.Node, depth int) {
	if d.doc.Empty(value) {
		return
	}
	if d.room && !d.novel {
		d.novel = d.limits.CanBecomeColumn(key, &d.doc, value, depth)
	}
	d.enter(at, depth)
	d.spill(value)
	d.leave()
}

// spill puts the value at the path into the overflow.
func (d *Decoder) spill(value document.Node) { d.overflow.add(d.path, value) }

// value puts a value into a column at depth, or overflows it.
func (d *Decoder) value(c *column, slot int, n document.Node, depth int) {
	switch kind := d.doc.Kind(n); {
	case kind == document.Null:
	case kind == document.Object && c.kind == structure:
		c.take(slot)
		d.members(c, slot, n, depth+1)
	case kind == document.Array && c.kind == list:
		d.elements(c, slot, n, depth)
	case !d.scalar(c, slot, n):
		d.spill(n)
	}
}

// elements puts the elements of an array into a list, or overflows the array.
func (d *Decoder) elements(c *column, slot int, n document.Node, depth int) {
	count := 0
	for e := d.doc.First(n); e < d.doc.Next(n); e = d.doc.Next(e) {
		count++
	}
	bytes := int64(count) * c.elemWidth
	if d.elementBytes+bytes > maxElementBytes {
		d.spill(n)
		return
	}
	d.elementBytes += bytes
	elem := c.putList(slot, count)
	index := 0
	for e := d.doc.First(n); e < d.doc.Next(n); e = d.doc.Next(e) {
		d.path = append(d.path, step{name: -1, index: index})
		d.value(c.elem, elem+index, e, depth+1)
		d.path = d.path[:len(d.path)-1]
		index++
	}
}

// scalar puts a value into a column that holds it without loss, or returns false.
func (d *Decoder) scalar(c *column, slot int, n document.Node) bool {
	switch kind := d.doc.Kind(n); c.kind {
	case boolean:
		if kind != document.True && kind != document.False {
			return false
		}
		c.putBool(slot, kind == document.True)
	case integer, long:
		if kind != document.Integer {
			return false
		}
		return putInteger(c, slot, d.doc.Raw(n))
	case double:
		if kind != document.Integer && kind != document.Decimal {
			return false
		}
		v, ok := document.Double(d.doc.Raw(n))
		if !ok {
			return false
		}
		c.putDouble(slot, v)
	case text:
		if kind != document.String || d.doc.Lone(n) {
			return false
		}
		c.take(slot)
		c.bytes = d.doc.AppendText(c.bytes, n)
		c.endBytes()
	case opaque, instant, binary, structure, list:
		return false
	}
	return true
}

func putInteger(c *column, slot int, raw []byte) bool {
	v, ok := document.Long(raw)
	if !ok {
		return false
	}
	if c.kind == long {
		c.putLong(slot, v)
		return true
	}
	if v < math.MinInt32 || v > math.MaxInt32 {
		return false
	}
	c.putInt(slot, int32(v))
	return true
}
