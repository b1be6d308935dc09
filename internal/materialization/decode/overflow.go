package decode

import (
	"strconv"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization/document"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

// overflowSlack is by how much the overflow of a row may be larger than its
// payload before it keeps whole fields instead. Without a bound, a long path
// repeated before each of a million small values would exhaust memory.
const overflowSlack = 64 << 10

// overflow gathers what found no column in one row.
type overflow struct {
	doc *document.Document
	// top is the step at the top of the payload under which the decoder is.
	top   step
	limit int

	text []byte
	path []byte
	// times counts how often a path was put.
	times map[string]int
	// tops are the steps at the top with anything in the overflow, in order.
	tops  []step
	whole bool
	// kept is how much of text stands when whole fields replace the rest.
	kept int
}

// start begins the row of a parsed payload of size bytes.
func (o *overflow) start(doc *document.Document, size int) {
	o.doc, o.limit = doc, size+overflowSlack
	o.text, o.tops, o.whole, o.kept = o.text[:0], o.tops[:0], false, 0
	clear(o.times)
}

// timestamp puts a record time that fits no column, under a path that no field
// can have.
func (o *overflow) timestamp(at base.Millis) {
	o.put([]byte("~timestamp"), strconv.AppendInt(nil, int64(at), 10))
	o.kept = len(o.text)
}

// add puts the value at a path.
func (o *overflow) add(path []step, value document.Node) {
	if len(o.tops) == 0 || o.tops[len(o.tops)-1] != o.top {
		o.tops = append(o.tops, o.top)
	}
	if o.whole {
		return
	}
	o.path = o.path[:0]
	for i, s := range path {
		if i > 0 {
			o.path = append(o.path, '.')
		}
		o.path = o.appendStep(o.path, s)
	}
	raw := o.doc.Raw(value)
	if len(o.text)+len(o.path)+len(raw) > o.limit {
		o.whole = true
		return
	}
	o.put(o.path, raw)
}

func (o *overflow) appendStep(dst []byte, s step) []byte {
	switch {
	case s.name >= 0:
		return schema.AppendStep(dst, o.doc.AppendText(nil, s.name))
	case s.index >= 0:
		return strconv.AppendInt(dst, int64(s.index), 10)
	default:
		return append(dst, schema.ValueColumn...)
	}
}

// put appends one path and the JSON text of its value.
func (o *overflow) put(path, raw []byte) {
	if o.times == nil {
		o.times = make(map[string]int)
	}
	o.times[string(path)]++
	if len(o.text) == 0 {
		o.text = append(o.text, '{')
	} else {
		o.text = append(o.text, ',')
	}
	o.text = append(o.text, '"')
	o.text = appendQuoted(o.text, path)
	if times := o.times[string(path)]; times > 1 {
		o.text = append(o.text, "~#"...)
		o.text = strconv.AppendInt(o.text, int64(times), 10)
	}
	o.text = append(o.text, `":`...)
	o.text = append(o.text, raw...)
}

// finish returns the JSON object of the row, valid until the next start, or nil
// when nothing overflowed.
func (o *overflow) finish() []byte {
	if o.whole {
		o.text = o.text[:o.kept]
		clear(o.times)
		for _, top := range o.tops {
			value := document.Root
			if top.name >= 0 {
				value = o.doc.Next(top.name)
			}
			o.put(o.appendStep(nil, top), o.doc.Raw(value))
		}
	}
	if len(o.text) == 0 {
		return nil
	}
	return append(o.text, '}')
}

// appendQuoted appends UTF-8 text as it stands between the quotes of a JSON string.
func appendQuoted(dst, text []byte) []byte {
	const digits = "0123456789abcdef"
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
