package schema_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/materialization/decode/decodetest"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

func TestInferTurnsPayloadsIntoColumns(t *testing.T) {
	for _, test := range []struct {
		story    string
		payloads []string
		want     string
	}{
		{"scalars", []string{`{"i":1,"d":1.5,"s":"x","b":true}`}, "i long, d double, s string, b boolean"},
		{"text is not guessed to be a time", []string{`{"at":"2026-11-01T00:00:00Z"}`}, "at string"},
		{"objects are structs, arrays lists", []string{`{"o":{"x":1,"l":[{"y":"z"}]}}`}, "o struct<x long, l list<struct<y string>>>"},
		{"a payload that is no object", []string{`[1,2]`}, "value list<long>"},
		{"numbers of a new column become double", []string{`{"n":1}`, `{"n":1.5}`}, "n double"},
		{"what no number type holds makes no column", []string{`{"n":9223372036854775808,"p":3.14159265358979323846}`}, ""},
		{"-0 is no integer", []string{`{"n":-0}`}, "n double"},
		{"half a surrogate pair is no text", []string{`{"s":"\ud83d"}`}, ""},
		{"nulls and containers of nothing are held back", []string{`{"a":null,"b":{},"c":[],"d":[null],"e":[{}],"f":{"g":null}}`}, ""},
		{"until a type is known", []string{`{"a":{}}`, `{"a":{"b":1}}`}, "a struct<b long>"},
		{"elements are unioned", []string{`{"l":[{"x":1},{"y":"s"}]}`, `{"l":[null,{"x":2.5}]}`}, "l list<struct<x double, y string>>"},
		{"most values decide", []string{`{"v":1}`, `{"v":"x"}`, `{"v":2}`}, "v long"},
		{"the richer kind at a tie", []string{`{"v":1}`, `{"v":"x"}`}, "v string"},
		{"an object beats text at a tie", []string{`{"v":"x"}`, `{"v":{"a":1}}`}, "v struct<a long>"},
		{"an empty object is no evidence for a struct", []string{`{"v":{}}`, `{"v":{}}`, `{"v":"x"}`}, "v string"},
		{"names match without case, lower case wins", []string{`{"ID":1}`, `{"id":2}`}, "id long"},
		{"a twin in one object does not count", []string{`{"v":1,"V":"x","v":"y"}`}, "v long"},
		{"but the one whose name the column takes", []string{`{"V":"x","o":{"A":[1],"a":{"b":1}},"v":1,"O":2}`}, "v long, o struct<a struct<b long>>"},
		{"with all that is inside", []string{`{"O":{"a":[{"B":1,"b":"x"}],"c":1},"o":{"a":[{"b":true}]}}`}, "o struct<a list<struct<b boolean>>>"},
		{"nor does a null take the place of its twin", []string{`{"v":null,"V":"x"}`}, "V string"},
		{"system columns belong to the engine", []string{`{"__offset":1,"__Overflow":2,"o":{"__offset":3}}`}, "o struct<__offset long>"},
		{"a dot and a tilde in a name", []string{`{"a.b":1,"a":{"b":2},"c~d":3}`}, "a~1b long, a struct<b long>, c~0d long"},
		{"an empty name has no column", []string{`{"":1,"o":{"":2}}`}, ""},
		{"columns stand as in the payloads", []string{`{"z":1,"a":2}`, `{"m":3,"z":1}`}, "m long, z long, a long"},
	} {
		t.Run(test.story, func(t *testing.T) { require.Equal(t, test.want, infer(t, test.payloads...)) })
	}
}

func TestNamesOfColumnsAreBounded(t *testing.T) {
	long := strings.Repeat("n", schema.MaxNameBytes)
	require.Equal(t, long+" long", infer(t, `{"`+long+`":1,"`+long+`x":1}`))
}

func TestDepthIsBounded(t *testing.T) {
	in := inferred(t, schema.Limits{MaxDepth: 3}, `{"a":{"b":{"c":{"d":1}},"x":[1],"y":[[1]]},"l":[[1]]}`)
	require.Equal(t, "a struct<x list<long>>, l list<list<long>>", columns(schema.New(schema.SystemColumns{}, in)))
}

func TestNumberOfColumnsIsBounded(t *testing.T) {
	payload := `{"a":1,"o":{"b":2,"c":3,"d":4},"e":5}`
	in := inferred(t, schema.Limits{MaxColumns: 4}, payload) // of which __overflow is one
	s := schema.New(schema.SystemColumns{}, in)
	require.Equal(t, "a long, o struct<b long, c long>", columns(s))
	require.Equal(t, 4, schema.Leaves(s))

	_, changed, err := schema.Union(s, 0, schema.SystemColumns{}, in)
	require.NoError(t, err)
	require.False(t, changed)
}

func TestInferenceRemembersABoundedNumberOfNames(t *testing.T) {
	in := schema.NewInference(schema.Limits{MaxColumns: 2})
	payload := `{"` + strings.Join(strings.Split("abcdefghijklmnopqrstuvwxyz", ""), `":{},"`) + `":1}`
	in = inferredInto(t, in, payload)
	require.Empty(t, columns(schema.New(schema.SystemColumns{}, in)), "z came after the names that are remembered")
}

// Given the same payloads in any order, a new table is the same.
func TestInferenceDoesNotDependOnTheOrderOfPayloads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payloads := decodetest.Payloads(8).Draw(t, "payloads")
		shuffled := rapid.Permutation(payloads).Draw(t, "shuffled")
		one, other := inferenceOf(t, payloads), inferenceOf(t, shuffled)
		a := schema.New(schema.DefaultSystemColumns(), one)
		b := schema.New(schema.DefaultSystemColumns(), other)
		if !a.Equals(b) {
			t.Fatalf("%s\n%s", a, b)
		}
	})
}

// CanBecomeColumn may call for an inference in vain, never miss one.
func TestWhatAnInferenceWouldAddIsForeseen(t *testing.T) {
	limits := schema.Limits{MaxDepth: 3}.WithDefaults()
	rapid.Check(t, func(t *rapid.T) {
		payload := decodetest.Payload().Draw(t, "payload")
		doc := parsed(t, []byte(`{"top":`+string(payload)+`}`))
		in := schema.NewInference(limits)
		in.Add(doc)
		foreseen := limits.CanBecomeColumn([]byte("top"), doc, doc.Next(1), 1)
		if columns(schema.New(schema.SystemColumns{}, in)) != "" && !foreseen {
			t.Fatal("not foreseen")
		}
	})
}
