// Package document parses JSON payloads strictly and without loss: a Document
// is one payload as a flat list of nodes that point into its text, so that a
// number keeps its digits and a string its bytes until a column needs them.
//
// Strict means RFC 8259: one value, valid UTF-8, no raw control character in a
// string, nothing but white space after it. Size is bounded by MaxDepth and
// MaxNodes. A Document is reused from record to record and then allocates
// nothing. It is not safe for concurrent use.
package document

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds. A number is an Integer when it has neither fraction nor exponent
// and is not -0, which no integer type can hold; otherwise it is a Decimal.
const (
	Null Kind = iota
	False
	True
	Integer
	Decimal
	String
	Object
	Array
)

// MaxDepth is how many objects and arrays may be open inside one another.
const MaxDepth = 512

// MaxNodes is how many values and names a payload may hold.
const MaxNodes = 1 << 22

// keptNodes is how much of the arena survives a large payload.
const keptNodes = 1 << 18

// Node is a value or a name of a Document. The root is 0. The nodes of an
// object or array follow it: names and values in turn, or the elements.
type Node int

// Root is the payload's value.
const Root Node = 0

type node struct {
	// start and end bound the text, quotes included.
	start, end uint32
	// next is the node after this one and all that it contains.
	next uint32
	kind Kind
	// escaped says that the string has a backslash in it.
	escaped bool
	// lone says that the string has a surrogate that is not half of a pair:
	// no Unicode text equals it.
	lone bool
}

// Document is a parsed payload. Its methods may be called after Parse returned
// nil and until the payload's bytes change.
type Document struct {
	text  []byte
	nodes []node
}

// Kind returns the kind of a value; of a name it is String.
func (d *Document) Kind(n Node) Kind { return d.nodes[n].kind }

// Raw returns the value's text as the payload has it.
func (d *Document) Raw(n Node) []byte {
	at := &d.nodes[n]
	return d.text[at.start:at.end]
}

// First returns the first node inside an object or array, which equals its
// Next when it is empty.
func (d *Document) First(n Node) Node { return n + 1 }

// Next returns the node that follows n and all that it contains.
func (d *Document) Next(n Node) Node { return Node(d.nodes[n].next) }

// Lone reports whether a string holds half of a surrogate pair, so that it has
// no text.
func (d *Document) Lone(n Node) bool { return d.nodes[n].lone }

// Text returns the text of a string, and scratch, which it uses when the string
// has escapes. The text is valid until the payload or scratch changes. A lone
// surrogate reads as U+FFFD; ask Lone.
func (d *Document) Text(n Node, scratch []byte) (text, grown []byte) {
	at := &d.nodes[n]
	inner := d.text[at.start+1 : at.end-1]
	if !at.escaped {
		return inner, scratch
	}
	scratch = appendUnescaped(scratch[:0], inner)
	return scratch, scratch
}

// AppendText appends the text of a string to dst.
func (d *Document) AppendText(dst []byte, n Node) []byte {
	at := &d.nodes[n]
	inner := d.text[at.start+1 : at.end-1]
	if !at.escaped {
		return append(dst, inner...)
	}
	return appendUnescaped(dst, inner)
}

// Empty reports whether a value holds nothing but nulls and containers of
// nothing: it says nothing about the type of a column.
func (d *Document) Empty(n Node) bool {
	kind := d.Kind(n)
	if kind != Object && kind != Array {
		return kind == Null
	}
	for child := d.First(n); child < d.Next(n); child = d.Next(child) {
		if kind == Object {
			child = d.Next(child)
		}
		if !d.Empty(child) {
			return false
		}
	}
	return true
}
