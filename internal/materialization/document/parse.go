package document

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Why a payload is no document. Errors of Parse match exactly one of them.
var (
	// ErrSyntax says that the payload is not one JSON value.
	ErrSyntax = errors.New("not valid JSON")
	// ErrUTF8 says that the payload is not UTF-8.
	ErrUTF8 = errors.New("not valid UTF-8")
	// ErrTooDeep says that the payload nests deeper than MaxDepth.
	ErrTooDeep = errors.New("nested too deep")
	// ErrTooLarge says that the payload holds more than MaxNodes values.
	ErrTooLarge = errors.New("too many values")
)

// Parse reads a payload, which the document refers to until the next Parse.
// Errors match one of the sentinels of this package and say where.
func (d *Document) Parse(payload []byte) error {
	if cap(d.nodes) > keptNodes {
		d.nodes = nil
	}
	d.text, d.nodes = payload, d.nodes[:0]
	if !utf8.Valid(payload) {
		return fmt.Errorf("%w: byte %d", ErrUTF8, firstInvalid(payload))
	}
	if uint64(len(payload)) > 1<<32-1 {
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, len(payload))
	}
	p := parser{text: payload, nodes: d.nodes}
	err := p.document()
	d.nodes = p.nodes
	return err
}

func firstInvalid(text []byte) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
	return len(text)
}

// parser is the state of one Parse: pos is the next byte to read.
type parser struct {
	text  []byte
	pos   int
	depth int
	nodes []node
}

func (p *parser) document() error {
	p.space()
	if err := p.value(); err != nil {
		return err
	}
	p.space()
	if p.pos < len(p.text) {
		return p.syntax("nothing more after the value")
	}
	return nil
}

// syntax makes the error for the byte at pos.
func (p *parser) syntax(want string) error {
	if p.pos >= len(p.text) {
		return fmt.Errorf("%w: byte %d: the payload ends where %s should be", ErrSyntax, p.pos, want)
	}
	return fmt.Errorf("%w: byte %d: %q where %s should be", ErrSyntax, p.pos, p.text[p.pos], want)
}

func (p *parser) space() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\n', '\t', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the byte at pos, or 0, which no JSON syntax uses, at the end.
func (p *parser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

// open adds a node that starts at pos.
func (p *parser) open(kind Kind) (Node, error) {
	if len(p.nodes) >= MaxNodes {
		return 0, fmt.Errorf("%w: more than %d", ErrTooLarge, MaxNodes)
	}
	n := len(p.nodes)
	p.nodes = append(p.nodes, node{kind: kind, start: uint32(p.pos)}) //nolint:gosec // Parse checked the length
	return Node(n), nil
}

// end closes a node before pos.
func (p *parser) end(n Node) {
	at := &p.nodes[n]
	at.end = uint32(p.pos)         //nolint:gosec // Parse checked the length
	at.next = uint32(len(p.nodes)) //nolint:gosec // at most MaxNodes
}

func (p *parser) value() error {
	switch c := p.peek(); c {
	case '{':
		return p.container(Object, '}')
	case '[':
		return p.container(Array, ']')
	case '"':
		return p.str()
	case 't':
		return p.literal(True, "true")
	case 'f':
		return p.literal(False, "false")
	case 'n':
		return p.literal(Null, "null")
	default:
		if c == '-' || isDigit(c) {
			return p.number()
		}
		return p.syntax("a value")
	}
}

func (p *parser) literal(kind Kind, word string) error {
	n, err := p.open(kind)
	if err != nil {
		return err
	}
	for i := range len(word) {
		if p.peek() != word[i] {
			return p.syntax(word)
		}
		p.pos++
	}
	p.end(n)
	return nil
}

// container reads an object or an array, to its closing byte.
func (p *parser) container(kind Kind, closing byte) error {
	if p.depth++; p.depth > MaxDepth {
		return fmt.Errorf("%w: byte %d: more than %d levels", ErrTooDeep, p.pos, MaxDepth)
	}
	n, err := p.open(kind)
	if err != nil {
		return err
	}
	p.pos++
	p.space()
	for first := true; p.peek() != closing; first = false {
		if err := p.member(kind, first); err != nil {
			return err
		}
		p.space()
	}
	p.pos++
	p.end(n)
	p.depth--
	return nil
}

// member reads a comma unless it is the first, a name if in an object, and a value.
func (p *parser) member(kind Kind, first bool) error {
	if !first {
		if p.peek() != ',' {
			return p.syntax("a comma or the end of the " + containerName(kind))
		}
		p.pos++
		p.space()
	}
	if kind == Array {
		return p.value()
	}
	if err := p.name(); err != nil {
		return err
	}
	p.space()
	if p.peek() != ':' {
		return p.syntax("a colon")
	}
	p.pos++
	p.space()
	return p.value()
}

func containerName(kind Kind) string {
	if kind == Array {
		return "array"
	}
	return "object"
}

// name reads the name of a member. One that is no Unicode text could neither
// name a column nor stand in a path, so it makes the payload invalid.
func (p *parser) name() error {
	if p.peek() != '"' {
		return p.syntax("a name")
	}
	n, start := Node(len(p.nodes)), p.pos
	if err := p.str(); err != nil {
		return err
	}
	if p.nodes[n].lone {
		return fmt.Errorf("%w: byte %d: half a surrogate pair in a name", ErrSyntax, start)
	}
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digits skips a run of digits, at least one.
func (p *parser) digits() error {
	if !isDigit(p.peek()) {
		return p.syntax("a digit")
	}
	for isDigit(p.peek()) {
		p.pos++
	}
	return nil
}

func (p *parser) number() error {
	n, err := p.open(Integer)
	if err != nil {
		return err
	}
	negative := p.peek() == '-'
	if negative {
		p.pos++
	}
	zero := p.peek() == '0'
	if zero {
		p.pos++
	} else if err := p.digits(); err != nil {
		return err
	}
	fractional, err := p.fraction()
	if err != nil {
		return err
	}
	if fractional || (negative && zero) {
		p.nodes[n].kind = Decimal
	}
	p.end(n)
	return nil
}

// fraction reads what may follow the integer part and reports whether it was there.
func (p *parser) fraction() (bool, error) {
	found := false
	if p.peek() == '.' {
		found = true
		p.pos++
		if err := p.digits(); err != nil {
			return found, err
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		found = true
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		return found, p.digits()
	}
	return found, nil
}
