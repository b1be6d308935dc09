package document

import (
	"bytes"
	"math"
	"strconv"
)

// Long returns the value of an Integer's text, and whether it fits 64 bits.
func Long(raw []byte) (int64, bool) {
	digits, negative := bytes.CutPrefix(raw, []byte{'-'})
	if len(digits) > 19 {
		return 0, false
	}
	var magnitude uint64
	for _, c := range digits {
		magnitude = magnitude*10 + uint64(c-'0')
	}
	switch {
	case !negative && magnitude <= math.MaxInt64:
		return int64(magnitude), true
	case negative && magnitude <= 1<<63:
		return -int64(magnitude), true // 1<<63 wraps to the smallest integer, as it should
	default:
		return 0, false
	}
}

// exactDigits is how many significant digits any double keeps.
const exactDigits = 15

// smallestNormal is the smallest double of full precision.
const smallestNormal = 0x1p-1022

// Double returns the double that an Integer's or Decimal's text denotes, and
// whether nothing is lost: the text is either the shortest decimal that reads
// back as that double (0.1, 1.50, 1e22), or an integer that the double equals
// (1152921504606846976). 9007199254740993, 3.14159265358979323846 and 1e400
// do not fit.
func Double(raw []byte) (float64, bool) {
	if f, ok := shortDouble(raw); ok {
		return f, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0, false
	}
	literal := normalize(raw)
	if len(literal.digits) == 0 {
		return f, true
	}
	if literal.len() <= exactDigits && math.Abs(f) >= smallestNormal {
		return f, true
	}
	var buffer [400]byte
	if literal.equal(normalize(strconv.AppendFloat(buffer[:0], f, 'e', -1, 64))) {
		return f, true
	}
	isInteger := !bytes.ContainsAny(raw, ".eE")
	return f, isInteger && literal.equal(normalize(strconv.AppendFloat(buffer[:0], f, 'f', 0, 64)))
}

// shortDouble reads numbers of at most 15 digits without an exponent, which are
// nearly all: digits and power of ten are doubles themselves, so that one
// division rounds as it should.
func shortDouble(raw []byte) (float64, bool) {
	if len(raw) > exactDigits {
		return 0, false
	}
	digits, negative := bytes.CutPrefix(raw, []byte{'-'})
	var mantissa int64
	decimals := 0
	for i, c := range digits {
		switch {
		case isDigit(c):
			mantissa = mantissa*10 + int64(c-'0')
		case c == '.':
			decimals = len(digits) - i - 1
		default:
			return 0, false
		}
	}
	f := float64(mantissa) / powersOfTen[decimals]
	if negative {
		f = -f
	}
	return f, true
}

var powersOfTen = [exactDigits + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// decimal is a number's significant digits, without zeros at either end and
// perhaps with a point among them, and the power of ten of the first.
type decimal struct {
	digits   []byte
	point    int // index of the point in digits, -1 when it is outside
	exponent int64
}

// normalize takes a number's text apart. The sign is left out: ParseFloat and
// the text always agree on it.
func normalize(raw []byte) decimal {
	mantissa := bytes.TrimPrefix(raw, []byte{'-'})
	var exponent int64
	if e := bytes.IndexAny(mantissa, "eE"); e >= 0 {
		// An exponent out of range makes ParseFloat yield 0 or fail, so the
		// digits decide.
		exponent, _ = strconv.ParseInt(string(mantissa[e+1:]), 10, 32)
		mantissa = mantissa[:e]
	}
	whole := bytes.IndexByte(mantissa, '.')
	if whole < 0 {
		whole = len(mantissa)
	}
	digits := bytes.TrimRight(mantissa, "0.")
	if whole == len(mantissa) {
		digits = bytes.TrimRight(mantissa, "0")
	}
	lead := len(digits) - len(bytes.TrimLeft(digits, "0."))
	digits = digits[lead:]
	point := bytes.IndexByte(digits, '.')
	switch first := lead; {
	case first < whole:
		exponent += int64(whole - first - 1)
	default:
		exponent -= int64(first - whole)
	}
	return decimal{digits: digits, point: point, exponent: exponent}
}

func (d decimal) equal(o decimal) bool {
	if d.exponent != o.exponent || d.len() != o.len() {
		return false
	}
	for i := range d.len() {
		if d.digit(i) != o.digit(i) {
			return false
		}
	}
	return true
}

func (d decimal) len() int {
	if d.point < 0 {
		return len(d.digits)
	}
	return len(d.digits) - 1
}

func (d decimal) digit(i int) byte {
	if d.point >= 0 && i >= d.point {
		i++
	}
	return d.digits[i]
}
