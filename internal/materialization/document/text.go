package document

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// special marks the bytes at which reading a string must stop and look.
var special = func() (marks [256]bool) {
	for c := range 0x20 {
		marks[c] = true
	}
	marks['"'], marks['\\'] = true, true
	return marks
}()

// plainUntil returns where the first special byte at or after a position is, or
// the length. It looks at eight bytes at a time: subtracting sets the top bit of
// each byte that was zero, or below a space, and no earlier one.
func plainUntil(text []byte, at int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; at+8 <= len(text); at += 8 {
		word := binary.LittleEndian.Uint64(text[at:])
		quote, backslash := word^(ones*'"'), word^(ones*'\\')
		found := ((word - ones*' ') & ^word) | ((quote - ones) & ^quote) | ((backslash - ones) & ^backslash)
		if found &= tops; found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	for at < len(text) && !special[text[at]] {
		at++
	}
	return at
}

// str reads a string from its opening quote.
func (p *parser) str() error {
	n, err := p.open(String)
	if err != nil {
		return err
	}
	at := p.pos + 1
	for {
		at = plainUntil(p.text, at)
		p.pos = at
		switch {
		case at == len(p.text):
			return p.syntax("a closing quote")
		case p.text[at] == '"':
			p.pos++
			p.end(n)
			return nil
		case p.text[at] == '\\':
			if err := p.escape(&p.nodes[n]); err != nil {
				return err
			}
			at = p.pos
		default:
			return p.syntax("an escape, not a raw control character,")
		}
	}
}

// escape reads one escape sequence, or two that make a surrogate pair.
func (p *parser) escape(at *node) error {
	at.escaped = true
	p.pos++
	switch p.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.pos++
		return nil
	case 'u':
	default:
		return p.syntax("an escape")
	}
	p.pos++
	unit, ok := hex4(p.text[p.pos:])
	if !ok {
		return p.syntax("four hexadecimal digits")
	}
	p.pos += 4
	if utf16.IsSurrogate(unit) {
		if pairAt(p.text[p.pos:], unit) == utf8.RuneError {
			at.lone = true
		} else {
			p.pos += 6
		}
	}
	return nil
}

// pairAt returns the character that a surrogate makes with the escape at the
// start of text, or RuneError when they are no pair.
func pairAt(text []byte, high rune) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return utf8.RuneError
	}
	low, ok := hex4(text[2:])
	if !ok {
		return utf8.RuneError
	}
	return utf16.DecodeRune(high, low)
}

func hex4(text []byte) (rune, bool) {
	if len(text) < 4 {
		return 0, false
	}
	var unit rune
	for _, c := range text[:4] {
		unit <<= 4
		switch {
		case isDigit(c):
			unit |= rune(c - '0')
		case 'a' <= c && c <= 'f':
			unit |= rune(c-'a') + 10
		case 'A' <= c && c <= 'F':
			unit |= rune(c-'A') + 10
		default:
			return 0, false
		}
	}
	return unit, true
}

// appendUnescaped appends what a valid string, without its quotes, stands for.
func appendUnescaped(dst, inner []byte) []byte {
	for at := 0; at < len(inner); {
		c := inner[at]
		if c != '\\' {
			dst = append(dst, c)
			at++
			continue
		}
		c = inner[at+1]
		at += 2
		if c != 'u' {
			dst = append(dst, simpleEscape(c))
			continue
		}
		r, _ := hex4(inner[at:])
		at += 4
		if utf16.IsSurrogate(r) {
			if r = pairAt(inner[at:], r); r != utf8.RuneError {
				at += 6
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// simpleEscape returns the byte that a one-letter escape stands for.
func simpleEscape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	default: // quote, backslash, slash
		return c
	}
}
