package decode

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

// kind is how a column stores its slots.
type kind uint8

const (
	// opaque columns are of a type that nothing fills: always null.
	opaque kind = iota
	boolean
	integer // int32
	long    // int64
	instant // microseconds, int64
	double
	text
	binary
	structure
	list
)

func kindOf(t arrow.DataType) kind {
	switch t := t.(type) {
	case *arrow.BooleanType:
		return boolean
	case *arrow.Int32Type:
		return integer
	case *arrow.Int64Type:
		return long
	case *arrow.TimestampType:
		if t.Unit == arrow.Microsecond {
			return instant
		}
		return opaque
	case *arrow.Float64Type:
		return double
	case *arrow.StringType:
		return text
	case *arrow.BinaryType:
		return binary
	case *arrow.StructType:
		return structure
	case *arrow.ListType:
		return list
	default:
		return opaque
	}
}

// column is the buffer of one column. It is filled lazily: slots from n on are
// null until something is put beyond them. The children of a struct have its
// slots; those of a list are counted by elements.
type column struct {
	kind kind
	typ  arrow.DataType

	n     int
	nulls int
	// claimed is one more than the slot that a member of an object claimed last.
	claimed int
	// valid has a bit for each slot, of which the last byte may lack some.
	valid   []byte
	bits    []byte
	ints    []int32
	longs   []int64
	doubles []float64
	// offsets of text, binary and list have one more entry than slots.
	offsets []int32
	bytes   []byte

	fields   []*column
	lookup   lookup
	elem     *column
	elements int
	// elemWidth is the width of an element.
	elemWidth int64
}

// newColumn makes an empty column. Fields of structs must be nullable: a
// payload may always lack them.
func newColumn(field arrow.Field) (*column, error) {
	c := &column{kind: kindOf(field.Type), typ: field.Type}
	c.reset()
	switch t := field.Type.(type) {
	case *arrow.StructType:
		for _, f := range t.Fields() {
			child, err := newInner(f)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", field.Name, err)
			}
			c.fields = append(c.fields, child)
		}
		c.lookup = newLookup(t.Fields())
	case *arrow.ListType:
		elem, err := newInner(t.ElemField())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field.Name, err)
		}
		c.elem, c.elemWidth = elem, int64(elem.width())
	}
	return c, nil
}

func newInner(field arrow.Field) (*column, error) {
	if !field.Nullable {
		return nil, fmt.Errorf("%s: %w", field.Name, errRequired)
	}
	return newColumn(field)
}

// width estimates the bytes that a slot takes even when it is null.
func (c *column) width() int {
	switch c.kind {
	case boolean:
		return 1
	case integer, text, binary, list:
		return 4
	case structure:
		sum := 0
		for _, f := range c.fields {
			sum += f.width()
		}
		return sum
	case opaque, long, instant, double:
	}
	return 8
}

// reset starts a new batch. The old buffers belong to the batch that was made
// of them; the new ones have room for as much again.
func (c *column) reset() {
	c.n, c.nulls, c.claimed, c.elements = 0, 0, 0, 0
	c.valid = make([]byte, 0, len(c.valid))
	c.bits = make([]byte, 0, len(c.bits))
	c.ints = make([]int32, 0, len(c.ints))
	c.longs = make([]int64, 0, len(c.longs))
	c.doubles = make([]float64, 0, len(c.doubles))
	c.bytes = make([]byte, 0, len(c.bytes))
	c.offsets = nil
	switch c.kind {
	case text, binary, list:
		c.offsets = make([]int32, 1, max(1, len(c.offsets)))
	case opaque, boolean, integer, long, instant, double, structure:
	}
	for _, f := range c.fields {
		f.reset()
	}
	if c.elem != nil {
		c.elem.reset()
	}
}

// fill makes the slots up to n null.
func (c *column) fill(n int) {
	missing := n - c.n
	if missing <= 0 {
		return
	}
	c.n = n
	c.nulls += missing
	c.valid = growBits(c.valid, n)
	switch c.kind {
	case boolean:
		c.bits = growBits(c.bits, n)
	case integer:
		c.ints = append(c.ints, make([]int32, missing)...)
	case long, instant:
		c.longs = append(c.longs, make([]int64, missing)...)
	case double:
		c.doubles = append(c.doubles, make([]float64, missing)...)
	case text, binary, list:
		last := c.offsets[len(c.offsets)-1]
		for range missing {
			c.offsets = append(c.offsets, last)
		}
	case opaque, structure:
	}
}

// growBits extends a bitmap with zeros to n bits.
func growBits(bits []byte, n int) []byte {
	if missing := (n+7)/8 - len(bits); missing > 0 {
		bits = append(bits, make([]byte, missing)...)
	}
	return bits
}

// take makes the slots before slot null and slot itself valid, with its value
// yet to be appended.
func (c *column) take(slot int) {
	c.fill(slot)
	c.n = slot + 1
	if slot&7 == 0 {
		c.valid = append(c.valid, 0)
	}
	c.valid[slot>>3] |= 1 << (slot & 7)
}

// claim reserves the slot for one member of an object, and returns false when
// it was claimed before. Slots are claimed in ascending order.
func (c *column) claim(slot int) bool {
	if c.claimed > slot {
		return false
	}
	c.claimed = slot + 1
	return true
}

func (c *column) putBool(slot int, v bool) {
	c.take(slot)
	c.bits = growBits(c.bits, c.n)
	if v {
		c.bits[slot>>3] |= 1 << (slot & 7)
	}
}

func (c *column) putInt(slot int, v int32) {
	c.take(slot)
	c.ints = append(c.ints, v)
}

func (c *column) putLong(slot int, v int64) {
	c.take(slot)
	c.longs = append(c.longs, v)
}

func (c *column) putDouble(slot int, v float64) {
	c.take(slot)
	c.doubles = append(c.doubles, v)
}

func (c *column) putBytes(slot int, v []byte) {
	c.take(slot)
	c.bytes = append(c.bytes, v...)
	c.endBytes()
}

func (c *column) putString(slot int, v string) {
	c.take(slot)
	c.bytes = append(c.bytes, v...)
	c.endBytes()
}

// endBytes ends the slot whose bytes were appended.
func (c *column) endBytes() {
	c.offsets = append(c.offsets, int32(len(c.bytes))) //nolint:gosec // a batch is flushed long before 2 GiB
}

// putList makes the slot a list of the next n elements and returns the slot of
// the first in elem.
func (c *column) putList(slot, n int) int {
	c.take(slot)
	first := c.elements
	c.elements += n
	c.offsets = append(c.offsets, int32(c.elements)) //nolint:gosec // a batch is flushed long before
	return first
}

// lookup finds the field of a struct for a name in a payload.
type lookup struct {
	names  []string
	exact  map[string]int
	folded map[string]int
}

func newLookup(fields []arrow.Field) lookup {
	l := lookup{exact: make(map[string]int, len(fields)), folded: make(map[string]int, len(fields))}
	for i, f := range fields {
		name := schema.NameOf(f.Name)
		l.names = append(l.names, name)
		if _, taken := l.exact[name]; !taken {
			l.exact[name] = i
		}
		if _, taken := l.folded[schema.Fold(name)]; !taken {
			l.folded[schema.Fold(name)] = i
		}
	}
	return l
}

// find returns the index of the field for a name, or -1, and whether its name
// is exactly that. The guess, an index that need not be valid, is tried first:
// payloads of one origin list their names in one order.
func (l *lookup) find(name []byte, guess int) (index int, exact bool) {
	if guess < len(l.names) && l.names[guess] == string(name) {
		return guess, true
	}
	if i, ok := l.exact[string(name)]; ok {
		return i, true
	}
	if i, ok := l.folded[schema.Fold(string(name))]; ok {
		return i, false
	}
	return -1, false
}
