package document_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/materialization/document"
)

// outline renders a document, one word a value, names before theirs.
func outline(d *document.Document, n document.Node) string {
	kinds := map[document.Kind]string{
		document.Null: "null", document.False: "false", document.True: "true",
		document.Integer: "integer", document.Decimal: "decimal", document.String: "string",
	}
	var parts []string
	switch kind := d.Kind(n); kind {
	case document.Object:
		for name := d.First(n); name < d.Next(n); {
			value := d.Next(name)
			text, _ := d.Text(name, nil)
			parts = append(parts, string(text)+":"+outline(d, value))
			name = d.Next(value)
		}
		return "{" + strings.Join(parts, " ") + "}"
	case document.Array:
		for e := d.First(n); e < d.Next(n); e = d.Next(e) {
			parts = append(parts, outline(d, e))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case document.Null, document.False, document.True, document.Integer, document.Decimal, document.String:
		return kinds[kind] + "(" + string(d.Raw(n)) + ")"
	default:
		return "unknown"
	}
}

func TestParseKeepsTheStructureAndTheTextOfAPayload(t *testing.T) {
	for payload, want := range map[string]string{
		`null`:                        `null(null)`,
		" true\n":                     `true(true)`,
		`-12`:                         `integer(-12)`,
		`-0`:                          `decimal(-0)`,
		`1.50`:                        `decimal(1.50)`,
		`1e3`:                         `decimal(1e3)`,
		`"a\n"`:                       `string("a\n")`,
		`{}`:                          `{}`,
		` [ ] `:                       `[]`,
		`{"a":[1,{"b":null}],"a":""}`: `{a:[integer(1) {b:null(null)}] a:string("")}`,
		`{"\u0061\ud83d\ude00":1}`:    `{a😀:integer(1)}`,
		`[[],[[]],false]`:             `[[] [[]] false(false)]`,
		`18446744073709551616`:        `integer(18446744073709551616)`,
	} {
		var d document.Document
		require.NoError(t, d.Parse([]byte(payload)), payload)
		require.Equal(t, want, outline(&d, document.Root), payload)
	}
}

func TestParseRefusesWhatIsNotOneJSONValue(t *testing.T) {
	for payload, want := range map[string]string{
		``:                 `not valid JSON: byte 0: the payload ends where a value should be`,
		`{"a":1`:           `not valid JSON: byte 6: the payload ends where a comma or the end of the object should be`,
		`[1 2]`:            `not valid JSON: byte 3: '2' where a comma or the end of the array should be`,
		`{"a":1}x`:         `not valid JSON: byte 7: 'x' where nothing more after the value should be`,
		`[1,]`:             `not valid JSON: byte 3: ']' where a value should be`,
		`{"a":1,}`:         `not valid JSON: byte 7: '}' where a name should be`,
		`{"a" 1}`:          `not valid JSON: byte 5: '1' where a colon should be`,
		`nul`:              `not valid JSON: byte 3: the payload ends where null should be`,
		`01`:               `not valid JSON: byte 1: '1' where nothing more after the value should be`,
		`1.`:               `not valid JSON: byte 2: the payload ends where a digit should be`,
		`1e+`:              `not valid JSON: byte 3: the payload ends where a digit should be`,
		`-`:                `not valid JSON: byte 1: the payload ends where a digit should be`,
		`NaN`:              `not valid JSON: byte 0: 'N' where a value should be`,
		"\"a\tb\"":         `not valid JSON: byte 2: '\t' where an escape, not a raw control character, should be`,
		`"a`:               `not valid JSON: byte 2: the payload ends where a closing quote should be`,
		`"\x"`:             `not valid JSON: byte 2: 'x' where an escape should be`,
		`"\u12"`:           `not valid JSON: byte 3: '1' where four hexadecimal digits should be`,
		`{"\ud800":1}`:     `not valid JSON: byte 1: half a surrogate pair in a name`,
		"\xef\xbb\xbf{}":   `not valid JSON: byte 0: 'ï' where a value should be`,
		"{\"a\":\"\xff\"}": `not valid UTF-8: byte 6`,
	} {
		var d document.Document
		require.EqualError(t, d.Parse([]byte(payload)), want, payload)
	}
}

func TestParseBoundsDepthAndNumberOfValues(t *testing.T) {
	var d document.Document
	nested := func(levels int) []byte {
		return []byte(strings.Repeat("[", levels) + strings.Repeat("]", levels))
	}
	require.NoError(t, d.Parse(nested(document.MaxDepth)))
	require.ErrorIs(t, d.Parse(nested(document.MaxDepth+1)), document.ErrTooDeep)

	wide := func(values int) []byte { return []byte("[" + strings.Repeat("1,", values-2) + "1]") }
	require.NoError(t, d.Parse(wide(document.MaxNodes)))
	require.ErrorIs(t, d.Parse(wide(document.MaxNodes+1)), document.ErrTooLarge)
}

func TestParseForgetsThePayloadBefore(t *testing.T) {
	var d document.Document
	require.NoError(t, d.Parse([]byte(`{"a":[1,2,3]}`)))
	require.Error(t, d.Parse([]byte(`{"a":[`)))
	require.NoError(t, d.Parse([]byte(`"x"`)))
	require.Equal(t, `string("x")`, outline(&d, document.Root))
}

func TestHalfASurrogatePairIsNoText(t *testing.T) {
	for payload, lone := range map[string]bool{
		`"\ud83d\ude00"`:       false,
		`"\ud83d"`:             true,
		`"\ude00\ud83d"`:       true,
		`"\ud83dx"`:            true,
		`"\ud83d\n"`:           true,
		`"\ud83d\ud83d\ude00"`: true,
		`"😀"`:                  false,
	} {
		var d document.Document
		require.NoError(t, d.Parse([]byte(payload)))
		require.Equal(t, lone, d.Lone(document.Root), payload)
		text, _ := d.Text(document.Root, nil)
		var want string
		require.NoError(t, json.Unmarshal([]byte(payload), &want))
		require.Equal(t, want, string(text), payload)
	}
}

// Given a special byte anywhere among any others, the string ends or fails there.
func TestAStringIsReadToTheFirstSpecialByte(t *testing.T) {
	filler := rapid.SampledFrom([]rune{'a', '!', '#', '[', ']', ' ', '\u007f', '\u0080', 'é', '😀', '\ufffd'})
	rapid.Check(t, func(t *rapid.T) {
		before := string(rapid.SliceOfN(filler, 0, 20).Draw(t, "before"))
		after := string(rapid.SliceOfN(filler, 8, 20).Draw(t, "after"))
		control := rapid.Int32Range(0, 0x1f).Draw(t, "control")
		var d document.Document
		if err := d.Parse([]byte(`["` + before + `","` + after + `\"` + before + `"]`)); err != nil {
			t.Fatal(err)
		}
		if got := string(d.Raw(1)); got != `"`+before+`"` {
			t.Fatalf("got %q", got)
		}
		err := d.Parse([]byte(`"` + before + string(control) + after + `"`))
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("byte %d:", len(before)+1)) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestEmptyIsWhatHoldsNoScalar(t *testing.T) {
	for payload, want := range map[string]bool{
		`null`: true, `{}`: true, `[]`: true, `[null,{},[{"a":null}]]`: true, `{"a":{"b":[]}}`: true,
		`0`: false, `""`: false, `false`: false, `[[[0]]]`: false, `{"a":{"b":[""]}}`: false,
	} {
		var d document.Document
		require.NoError(t, d.Parse([]byte(payload)))
		require.Equal(t, want, d.Empty(document.Root), payload)
	}
}

func TestParsingRecordAfterRecordAllocatesNothing(t *testing.T) {
	payload := []byte(`{"id":12345,"name":"a\tb","tags":["x","y"],"at":{"lat":1.5,"lon":-2.25},"ok":true,"no":null}`)
	var d document.Document
	require.NoError(t, d.Parse(payload))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if d.Parse(payload) != nil {
			panic("the payload was valid")
		}
	}))
}

// FuzzParse holds Parse against encoding/json, which decides alone what is
// valid, except for what this package documents to be stricter about.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,2.5,-0,1e9,"\u00e9\ud83d\ude00",true,null,{}]}`, `"\ud800"`, `{"\ud800":1}`, `[`, "\xff", `1 2`, "\"\x01\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		var d document.Document
		err := d.Parse(payload)
		if err != nil {
			require.Less(t, len(err.Error()), 200)
			stricter := !utf8.Valid(payload) || bytes.Contains(payload, []byte(`\u`)) ||
				bytes.Count(payload, []byte("["))+bytes.Count(payload, []byte("{")) > document.MaxDepth
			require.True(t, !json.Valid(payload) || stricter, "%q: %v", payload, err)
			return
		}
		require.True(t, json.Valid(payload), "%q", payload)
		requireSameText(t, &d, document.Root)
	})
}

// requireSameText checks every string and the extent of every value.
func requireSameText(t *testing.T, d *document.Document, n document.Node) {
	t.Helper()
	require.True(t, json.Valid(d.Raw(n)))
	switch kind := d.Kind(n); kind {
	case document.Object, document.Array:
		for child := d.First(n); child < d.Next(n); child = d.Next(child) {
			requireSameText(t, d, child)
		}
	case document.String:
		var want string
		require.NoError(t, json.Unmarshal(d.Raw(n), &want))
		text, _ := d.Text(n, nil)
		require.Equal(t, want, string(text))
		require.Equal(t, "!"+want, string(d.AppendText([]byte("!"), n)))
	case document.Null, document.False, document.True, document.Integer, document.Decimal:
	}
}

func BenchmarkParse(b *testing.B) {
	payload := []byte(fmt.Sprintf(`{"id":%s,"name":"someone","city":"somewhere","score":17.25,"active":true,"tags":["a","b"]}`, strconv.Itoa(123456)))
	var d document.Document
	b.SetBytes(int64(len(payload)))
	for b.Loop() {
		if err := d.Parse(payload); err != nil {
			b.Fatal(err)
		}
	}
}
