package schema

import (
	"github.com/lakestream-go/lakestream/internal/materialization/document"
)

// Limits bound what a schema may become. The zero value means the defaults.
type Limits struct {
	// MaxColumns is how many leaf columns a table may have, 4096 by default.
	MaxColumns int
	// MaxDepth is how many names and array levels a column's path may have,
	// 16 by default, never more than document.MaxDepth.
	MaxDepth int
}

// Defaults of Limits.
const (
	DefaultMaxColumns = 4096
	DefaultMaxDepth   = 16
)

// WithDefaults returns the limits with the defaults for what is not positive.
func (l Limits) WithDefaults() Limits {
	if l.MaxColumns <= 0 {
		l.MaxColumns = DefaultMaxColumns
	}
	if l.MaxDepth <= 0 {
		l.MaxDepth = DefaultMaxDepth
	}
	l.MaxDepth = min(l.MaxDepth, document.MaxDepth)
	return l
}

// kind is what a value can make of a column, poorer ones first.
type kind int

const (
	boolean kind = iota
	long
	double
	text
	list
	object
	kinds
)

// seenNode is what all values at one place had in common.
type seenNode struct {
	// step is the name as a column would be called.
	step string
	// position is the least index that the name had among its siblings; new
	// columns stand in that order, whatever the order of the payloads.
	position int
	counts   [kinds]int64
	// fields are by folded name.
	fields map[string]*seenNode
	elem   *seenNode
	// object is the last object in which a value of this name was counted, as it
	// was spelled there, and value is that value.
	object uint64
	twin   string
	value  document.Node
}

// Inference gathers what payloads hold. The order in which they are added does
// not matter. It is not safe for concurrent use.
//
// It remembers at most four names for each column that the limits allow and
// ignores further ones, so that random names cannot exhaust memory.
type Inference struct {
	limits  Limits
	root    seenNode
	nodes   int
	objects uint64
	name    []byte
}

// NewInference returns an Inference that has seen nothing.
func NewInference(limits Limits) *Inference {
	return &Inference{limits: limits.WithDefaults()}
}

// Add takes one payload into account.
func (in *Inference) Add(doc *document.Document) {
	if doc.Kind(document.Root) == document.Object {
		in.object(&in.root, doc, document.Root, 1, 1)
		return
	}
	in.objects++
	in.member(&in.root, in.objects, []byte(ValueColumn), 0, doc, document.Root, 1, 1)
}

// object takes the members of an object, whose columns would be at depth.
func (in *Inference) object(at *seenNode, doc *document.Document, n document.Node, depth int, weight int64) {
	in.objects++
	object := in.objects
	position := 0
	for name := doc.First(n); name < doc.Next(n); {
		value := doc.Next(name)
		if doc.Kind(value) != document.Null {
			var key []byte
			key, in.name = doc.Text(name, in.name)
			in.member(at, object, key, position, doc, value, depth, weight)
		}
		position++
		name = doc.Next(value)
	}
}

// member takes one member of the object of that number. Of those whose names
// differ only in case, the one counts whose spelling the column would take, and
// of equal ones the first: the decoder puts the others into the overflow.
func (in *Inference) member(at *seenNode, object uint64, key []byte, position int, doc *document.Document, value document.Node, depth int, weight int64) {
	if !canName(key, depth) {
		return
	}
	step := string(AppendStep(nil, key))
	field := in.field(at, step, position)
	if field == nil {
		return
	}
	if field.object == object {
		if step <= field.twin {
			return
		}
		in.value(field, doc, field.value, depth, -weight)
	}
	field.object, field.twin, field.value = object, step, value
	in.value(field, doc, value, depth, weight)
}

// field returns the node of a name, new when it was not seen, or nil when no
// more are remembered.
func (in *Inference) field(at *seenNode, step string, position int) *seenNode {
	folded := Fold(step)
	field := at.fields[folded]
	if field == nil {
		if in.nodes >= 4*in.limits.MaxColumns {
			return nil
		}
		in.nodes++
		field = &seenNode{step: step, position: position}
		if at.fields == nil {
			at.fields = make(map[string]*seenNode)
		}
		at.fields[folded] = field
	}
	field.step = max(field.step, step)
	field.position = min(field.position, position)
	return field
}

// value counts a value so many times, or takes back what it counted.
func (in *Inference) value(at *seenNode, doc *document.Document, n document.Node, depth int, weight int64) {
	found, ok := kindOf(doc, n)
	if !ok {
		return
	}
	at.counts[found] += weight
	if depth == in.limits.MaxDepth {
		return
	}
	switch found {
	case object:
		in.object(at, doc, n, depth+1, weight)
	case list:
		if at.elem == nil {
			at.elem = &seenNode{}
		}
		for e := doc.First(n); e < doc.Next(n); e = doc.Next(e) {
			in.value(at.elem, doc, e, depth+1, weight)
		}
	case boolean, long, double, text, kinds:
	}
}

// kindOf returns the kind of column that holds a value without loss, if any.
func kindOf(doc *document.Document, n document.Node) (kind, bool) {
	switch doc.Kind(n) {
	case document.True, document.False:
		return boolean, true
	case document.Integer:
		_, ok := document.Long(doc.Raw(n))
		return long, ok
	case document.Decimal:
		_, ok := document.Double(doc.Raw(n))
		return double, ok
	case document.String:
		return text, !doc.Lone(n)
	case document.Object:
		return object, true
	case document.Array:
		return list, true
	case document.Null:
	}
	return 0, false
}

// CanBecomeColumn reports whether a field of this name and value, in an object
// whose columns are at depth, would make a new column of a schema with room. It
// is what tells a decoder that inferring again is worth while.
func (l Limits) CanBecomeColumn(name []byte, doc *document.Document, value document.Node, depth int) bool {
	return canName(name, depth) && l.hasType(doc, value, depth)
}

// hasType reports whether a value at depth, or one inside it, has a type.
func (l Limits) hasType(doc *document.Document, n document.Node, depth int) bool {
	found, ok := kindOf(doc, n)
	if !ok || (found != object && found != list) {
		return ok
	}
	if depth == l.MaxDepth {
		return false
	}
	for child := doc.First(n); child < doc.Next(n); child = doc.Next(child) {
		if found == object {
			name, _ := doc.Text(child, nil)
			child = doc.Next(child)
			if !canName(name, depth+1) {
				continue
			}
		}
		if l.hasType(doc, child, depth+1) {
			return true
		}
	}
	return false
}
