package decode_test

import (
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/materialization/decode"
	"github.com/lakestream-go/lakestream/internal/materialization/decode/decodetest"
	"github.com/lakestream-go/lakestream/internal/materialization/document"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

type row = decodetest.Row

// landing is what becomes of one payload.
type landing struct {
	story, landed, payload string
	want                   row
}

func (l landing) run(t *testing.T) {
	rows := rowsOf(t, decoderOf(t, landedBy(l.landed), schema.Limits{}), l.payload)
	require.Equal(t, []row{l.want}, []row{user(rows[0])})
	decodetest.RequireSame(t, []byte(l.payload), rows[0])
	decodetest.RequireClaims(t, []byte(l.payload), rows[0])
}

// Given several members that match one column, then one of them claims it.
func TestOneMemberClaimsAColumn(t *testing.T) {
	for _, test := range []landing{
		{"another case fills the column", `{"id":1}`, `{"ID":5}`, row{"id": int64(5)}},
		{"the exact name wins", `{"id":1}`, `{"id":5,"ID":6}`, row{"id": int64(5), "__overflow": `{"ID":6}`}},
		{"wherever it stands", `{"id":1}`, `{"ID":44,"id":4}`, row{"id": int64(4), "__overflow": `{"ID":44}`}},
		{"even when its value does not fit", `{"id":1}`, `{"id":12345678901234567890123456789,"ID":3}`, row{
			"__overflow": `{"id":12345678901234567890123456789,"ID":3}`,
		}},
		{"or is null", `{"id":1}`, `{"ID":6,"id":null}`, row{"__overflow": `{"ID":6}`}},
		{"without one, the first wins", `{"id":1}`, `{"Id":"x","ID":6}`, row{"__overflow": `{"Id":"x","ID":6}`}},
		{"a null that comes first", `{"id":1}`, `{"ID":null,"Id":6}`, row{"__overflow": `{"Id":6}`}},
		{
			"the same name again and again", `{"id":1}`, `{"ID":4,"ID":3,"id":5,"id":6,"id":7,"id":8}`,
			row{"id": int64(5), "__overflow": `{"id":6,"id~#2":7,"id~#3":8,"ID":4,"ID~#2":3}`},
		},
		{
			"in each object of a list", `{"l":[{"a":1}]}`, `{"l":[{"A":1},{"A":2,"a":3},{"a":4,"A":5}]}`,
			row{"l": []any{row{"a": int64(1)}, row{"a": int64(3)}, row{"a": int64(4)}}, "__overflow": `{"l.1.A":2,"l.2.A":5}`},
		},
		{"a struct under another name", `{"o":{"a":1}}`, `{"O":{"A":2,"b":3}}`, row{"o": row{"a": int64(2)}, "__overflow": `{"O.b":3}`}},
		{"a twin in a struct", `{"o":{"a":1}}`, `{"o":{"a":1},"O":{"a":2}}`, row{"o": row{"a": int64(1)}, "__overflow": `{"O":{"a":2}}`}},
	} {
		t.Run(test.story, test.run)
	}
}

func TestValuesLandInTheirColumnsOrInTheOverflow(t *testing.T) {
	for _, test := range []landing{
		{
			"scalars", `{"i":1,"d":1.5,"s":"x","b":true}`, `{"b":false,"s":"é\n","d":2,"i":-3}`,
			row{"i": int64(-3), "d": 2.0, "s": "é\n", "b": false},
		},
		{
			"nested", `{"o":{"a":1,"l":[{"x":1}]}}`, `{"o":{"l":[{"x":1},null,{}]}}`,
			row{"o": row{"l": []any{row{"x": int64(1)}, nil, row{}}}},
		},
		{"an empty object is not null", `{"o":{"a":1}}`, `{"o":{}}`, row{"o": row{}}},
		{"an empty array is not null", `{"l":[1]}`, `{"l":[]}`, row{"l": []any{}}},
		{"a fraction in a long", `{"n":1}`, `{"n":1.5}`, row{"__overflow": `{"n":1.5}`}},
		{"1.0 is no integer literal", `{"n":1}`, `{"n":1.0}`, row{"__overflow": `{"n":1.0}`}},
		{"beyond 64 bits", `{"n":1}`, `{"n":9223372036854775808}`, row{"__overflow": `{"n":9223372036854775808}`}},
		{"an integer that a double cannot hold", `{"n":1.5}`, `{"n":9007199254740993}`, row{"__overflow": `{"n":9007199254740993}`}},
		{"one that it can", `{"n":1.5}`, `{"n":9007199254740992}`, row{"n": float64(1 << 53)}},
		{"more digits than a double keeps", `{"n":1.5}`, `{"n":0.10000000000000000001}`, row{"__overflow": `{"n":0.10000000000000000001}`}},
		{"text in a number", `{"n":1}`, `{"n":"1"}`, row{"__overflow": `{"n":"1"}`}},
		{"a number in text", `{"s":"x"}`, `{"s":1.50}`, row{"__overflow": `{"s":1.50}`}},
		{"an object in a scalar", `{"n":1}`, `{"n":{"a": [1]}}`, row{"__overflow": `{"n":{"a": [1]}}`}},
		{"even an empty one", `{"n":1}`, `{"n":{}}`, row{"__overflow": `{"n":{}}`}},
		{"a scalar in a struct", `{"o":{"a":1}}`, `{"o":"x"}`, row{"__overflow": `{"o":"x"}`}},
		{"a scalar in a list", `{"l":[1]}`, `{"l":2}`, row{"__overflow": `{"l":2}`}},
		{"half a surrogate pair", `{"s":"x"}`, `{"s":"\ud83d"}`, row{"__overflow": `{"s":"\ud83d"}`}},
		{
			"an element that does not fit", `{"l":[1]}`, `{"l":[1,"x",3]}`,
			row{"l": []any{int64(1), nil, int64(3)}, "__overflow": `{"l.1":"x"}`},
		},
		{
			"deep in a list", `{"l":[{"a":{"b":1}}]}`, `{"l":[{},{"a":{"b":"x","c":2}}]}`,
			row{"l": []any{row{}, row{"a": row{}}}, "__overflow": `{"l.1.a.b":"x","l.1.a.c":2}`},
		},
		{"no column", `{"a":1}`, `{"a":1,"b":{"c":[true]}}`, row{"a": int64(1), "__overflow": `{"b":{"c":[true]}}`}},
		{"no column, nothing in it", `{"a":1}`, `{"b":{},"c":[],"d":null,"e":[[{"f":null}]]}`, row{}},
		{
			"a system column's name", `{"a":1}`, `{"__offset":9,"__Overflow":"x","a":1}`,
			row{"a": int64(1), "__overflow": `{"__offset":9,"__Overflow":"x"}`},
		},
		{
			"a dot in a name", `{"a.b":1,"a":{"b":1}}`, `{"a.b":2,"a":{"b":3,"c.d":4}}`,
			row{"a~1b": int64(2), "a": row{"b": int64(3)}, "__overflow": `{"a.c~1d":4}`},
		},
		{"a tilde in a name", `{"a~b":1}`, `{"a~b":2,"~":3}`, row{"a~0b": int64(2), "__overflow": `{"~0":3}`}},
		{"an escaped name", `{"ab":1}`, `{"\u0061b":2}`, row{"ab": int64(2)}},
		{"quotes and control characters in a path", `{"a":1}`, `{"\"\n\\":1}`, row{"__overflow": `{"\"\u000a\\":1}`}},
		{"an empty name", `{"a":1}`, `{"":1,"a":2}`, row{"a": int64(2), "__overflow": `{"":1}`}},
		{"no object", `[1]`, `[1,"x"]`, row{"value": []any{int64(1), nil}, "__overflow": `{"value.1":"x"}`}},
		{"no object and no column", `{"a":1}`, ` "x" `, row{"__overflow": `{"value":"x"}`}},
		{"null", `{"a":1}`, `null`, row{}},
	} {
		t.Run(test.story, test.run)
	}
}

func TestRowsTellWhereTheyCameFrom(t *testing.T) {
	system := schema.SystemColumns{Partition: true, Offset: true, Timestamp: true, Key: true, Headers: true}
	landed := schema.New(system, schema.NewInference(schema.Limits{}))
	d, err := decode.New(landed, system, schema.Limits{})
	require.NoError(t, err)
	d.Append(3, &recordbatch.Positioned{Offset: 41, Record: recordbatch.Record{
		Timestamp: 1_750_000_000_123, Key: []byte{0xff}, Value: []byte(`{}`),
		Headers: []recordbatch.Header{{Key: "trace", Value: []byte{1}}, {Key: "null"}, {Key: "bad\xff", Value: []byte{}}},
	}})
	d.Append(3, &recordbatch.Positioned{Offset: 42, Record: recordbatch.Record{Key: []byte{}, Value: []byte(`{}`)}})
	d.Append(3, &recordbatch.Positioned{Offset: 43, Record: recordbatch.Record{Timestamp: math.MaxInt64, Value: []byte(`{}`)}})

	require.Equal(t, []row{
		{
			"__partition": int32(3), "__offset": int64(41), "__timestamp": arrow.Timestamp(1_750_000_000_123_000),
			"__key": []byte{0xff}, "__headers": []any{
				row{"key": "trace", "value": []byte{1}}, row{"key": "null"}, row{"key": "bad\uFFFD", "value": []byte{}},
			},
		},
		{"__partition": int32(3), "__offset": int64(42), "__timestamp": arrow.Timestamp(0), "__key": []byte{}},
		{"__partition": int32(3), "__offset": int64(43), "__overflow": `{"~timestamp":9223372036854775807}`},
	}, takeRows(t, d))
}

func TestWhatIsNoRowIsADeadLetter(t *testing.T) {
	d := decoderOf(t, landedBy(`{"a":1}`), schema.Limits{})
	for payload, want := range map[string]decode.Verdict{
		``:                        {Code: schema.CodeInvalidJSON, Reason: "not valid JSON: byte 0: the payload ends where a value should be"},
		`{"a":1}{`:                {Code: schema.CodeInvalidJSON, Reason: "not valid JSON: byte 7: '{' where nothing more after the value should be"},
		"\"\xff\"":                {Code: schema.CodeInvalidUTF8, Reason: "not valid UTF-8: byte 1"},
		strings.Repeat("[", 1000): {Code: schema.CodeTooDeep, Reason: "nested too deep: byte 512: more than 512 levels"},
		"[" + strings.Repeat("0,", document.MaxNodes) + "0]": {Code: schema.CodeTooLarge, Reason: "too many values: more than 4194304"},
	} {
		require.Equal(t, want, d.Append(0, record(1, []byte(payload))))
	}
	tombstone := d.Append(0, record(2, nil))
	require.Equal(t, decode.Verdict{Code: schema.CodeTombstone, Reason: "the record has no payload"}, tombstone)
	require.Zero(t, d.Rows(), "a dead letter leaves nothing behind")
}

func TestADecoderTellsWhenTheSchemaCouldGrow(t *testing.T) {
	for payload, want := range map[string]bool{
		`{"a":1}`:                       false,
		`{"a":"conflict","A":2}`:        false,
		`{"b":null,"c":{},"d":[[]]}`:    false,
		`{"__offset":1,"":2}`:           false,
		`{"n":9223372036854775808}`:     false,
		`{"b":1}`:                       true,
		`{"o":{"y":[""]}}`:              true,
		`{"l":[{"x":1},{"y":1}]}`:       true,
		`{"deep":{"a":{"b":{"c":1}}}}`:  false,
		`{"deep":{"a":{"b":1,"c":[]}}}`: true,
		`5`:                             true,
	} {
		d := decoderOf(t, landedBy(`{"a":1,"o":{"x":1},"l":[{"x":1}]}`), schema.Limits{MaxDepth: 3})
		rowsOf(t, d, payload)
		require.Equal(t, want, d.Novel(), payload)
	}
	full := decoderOf(t, landedBy(`{"a":1}`), schema.Limits{MaxColumns: 5})
	rowsOf(t, full, `{"b":1}`)
	require.False(t, full.Novel(), "no more columns may come")
}

func TestASecondBatchStartsFresh(t *testing.T) {
	d := decoderOf(t, landedBy(`{"a":1,"l":[{"s":"x"}],"b":true}`), schema.Limits{})
	payloads := []string{`{"a":1,"l":[{"s":"x"},{}],"b":true}`, `{}`, `{"l":[]}`}
	first := rowsOf(t, d, payloads...)
	require.Zero(t, d.Rows())
	require.Zero(t, d.Bytes())
	require.Equal(t, first, rowsOf(t, d, payloads...))
}

func TestColumnsOfOtherTypesStayNull(t *testing.T) {
	p := iceberg.PrimitiveTypes
	landed := landedBy()
	fields := landed.Fields()
	id := landed.HighestFieldID()
	for _, column := range []iceberg.NestedField{
		{Name: "date", Type: p.Date},
		{Name: "at", Type: p.TimestampTz},
		{Name: "id", Type: p.UUID},
		{Name: "price", Type: iceberg.DecimalTypeOf(10, 2)},
		{Name: "raw", Type: p.Binary},
		{Name: "small", Type: p.Int32},
		{Name: "f", Type: p.Float32},
		{Name: "m", Type: &iceberg.MapType{KeyID: 101, KeyType: p.String, ValueID: 102, ValueType: p.Int64}},
	} {
		id++
		column.ID = id
		fields = append(fields, column)
	}
	payload := `{"date":"2026-11-01","at":1,"id":"x","price":1.5,"raw":"x","small":2147483648,"f":0.5,"m":{"k":1}}`
	rows := rowsOf(t, decoderOf(t, iceberg.NewSchema(1, fields...), schema.Limits{}), payload, `{"small":-2147483648}`)
	require.Equal(t, row{"__overflow": payload}, user(rows[0]))
	require.Equal(t, row{"small": int32(math.MinInt32)}, user(rows[1]))
}

func TestASchemaThatPayloadsCannotFillIsRefused(t *testing.T) {
	withField := func(field iceberg.NestedField) *iceberg.Schema {
		landed := landedBy()
		field.ID = 50
		return iceberg.NewSchema(1, append(landed.Fields(), field)...)
	}
	required := iceberg.NestedField{ID: 51, Name: "x", Type: iceberg.PrimitiveTypes.Int64, Required: true}
	for _, test := range []struct {
		landed *iceberg.Schema
		want   string
	}{
		{withField(required), "column x: invalid: the column is required, but a payload may lack it: make it optional"},
		{withField(iceberg.NestedField{Name: "o", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{required}}}), "column o: x: invalid"},
		{withField(iceberg.NestedField{Name: "l", Type: &iceberg.ListType{ElementID: 51, Element: required.Type, ElementRequired: true}}), "column l: element: invalid"},
		{iceberg.NewSchema(0), "no such column"},
	} {
		_, err := decode.New(test.landed, schema.DefaultSystemColumns(), schema.Limits{})
		require.ErrorIs(t, err, base.ErrInvalid)
		require.ErrorContains(t, err, test.want)
	}
}

// Given any payloads and a table evolved by some of them, every scalar of every
// payload is found again, exactly, and nothing else.
func TestEveryScalarIsFoundAgain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seen := decodetest.Payloads(4).Draw(rt, "seen")
		payloads := append(decodetest.Payloads(4).Draw(rt, "unseen"), seen...)
		d := decoderOf(rt, schemaOf(schema.Limits{}, seen...), schema.Limits{})
		texts := make([]string, len(payloads))
		for i, p := range payloads {
			texts[i] = string(p)
		}
		for i, row := range rowsOf(t, d, texts...) {
			decodetest.RequireSame(t, payloads[i], row)
			decodetest.RequireClaims(t, payloads[i], row)
			require.Equal(t, int64(i), row["__offset"])
		}
	})
}

// Given one landed schema, a row does not depend on the rows around it.
func TestARowDependsOnSchemaAndRecordAlone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		landed := schemaOf(schema.Limits{}, decodetest.Payloads(4).Draw(rt, "seen")...)
		payload := string(decodetest.Payload().Draw(rt, "payload"))
		alone := rowsOf(t, decoderOf(rt, landed, schema.Limits{}), payload)[0]
		d := decoderOf(rt, landed, schema.Limits{})
		var texts []string
		for _, p := range decodetest.Payloads(4).Draw(rt, "before") {
			texts = append(texts, string(p))
		}
		rows := rowsOf(t, d, append(texts, payload)...)
		last := rows[len(rows)-1]
		require.Equal(t, user(alone), user(last))
	})
}
