package schema_test

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/decode/decodetest"
	"github.com/lakestream-go/lakestream/internal/materialization/document"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

func parsed(t rapid.TB, payload []byte) *document.Document {
	var doc document.Document
	if err := doc.Parse(payload); err != nil {
		t.Fatalf("%s: %v", payload, err)
	}
	return &doc
}

func inferenceOf(t rapid.TB, payloads [][]byte) *schema.Inference {
	in := schema.NewInference(schema.Limits{})
	for _, payload := range payloads {
		in.Add(parsed(t, payload))
	}
	return in
}

func inferredInto(t rapid.TB, in *schema.Inference, payload string) *schema.Inference {
	in.Add(parsed(t, []byte(payload)))
	return in
}

func TestUnionAddsColumnsAtAnyDepth(t *testing.T) {
	for _, test := range []struct{ story, before, payload, want string }{
		{"at the top", `{"a":1}`, `{"b":"x"}`, "a long, b string"},
		{"in a struct", `{"o":{"a":1}}`, `{"o":{"b":{"c":true}}}`, "o struct<a long, b struct<c boolean>>"},
		{"in a struct in a list", `{"l":[{"a":1}]}`, `{"l":[{"b":[1.5]}]}`, "l list<struct<a long, b list<double>>>"},
		{"in a list of lists", `{"l":[[{"a":1}]]}`, `{"l":[[{"b":1}]]}`, "l list<list<struct<a long, b long>>>"},
		{"under another case of the name", `{"o":{"a":1}}`, `{"O":{"A":2,"b":1}}`, "o struct<a long, b long>"},
		{"a long stays long", `{"n":1}`, `{"n":1.5}`, "n long"},
		{"a scalar stays scalar", `{"n":1}`, `{"n":{"a":1}}`, "n long"},
		{"a struct stays struct", `{"o":{"a":1}}`, `{"o":"text","x":1}`, "o struct<a long>, x long"},
		{"an element stays what it is", `{"l":[1]}`, `{"l":["x",{"a":1}]}`, "l list<long>"},
		{"what was held back", `{"a":{},"n":1}`, `{"a":{"b":1}}`, "n long, a struct<b long>"},
	} {
		t.Run(test.story, func(t *testing.T) {
			tb := newTable(t, test.before)
			tb.evolve(t, inferred(t, schema.Limits{}, test.payload))
			require.Equal(t, test.want, columns(tb.schema))
		})
	}
}

func TestTheLandedKindDecidesEvenAgainstTheMost(t *testing.T) {
	tb := newTable(t, `{"o":{"a":1}}`)
	tb.evolve(t, inferred(t, schema.Limits{}, `{"o":1}`, `{"o":2}`, `{"o":{"b":1}}`))
	require.Equal(t, "o struct<a long, b long>", columns(tb.schema))
}

func TestAFieldIDNeverComesBack(t *testing.T) {
	tb := newTable(t, `{"o":{"a":1,"b":2}}`)
	dropped := tb.schema.Fields()
	o := dropped[len(dropped)-1].Type.(*iceberg.StructType)
	gone := o.FieldList[1]
	o.FieldList = o.FieldList[:1]
	tb.schema = iceberg.NewSchema(1, dropped...)
	require.Less(t, tb.schema.HighestFieldID(), tb.lastID)

	tb.evolve(t, inferred(t, schema.Limits{}, `{"o":{"b":2}}`))

	back, found := tb.schema.FindFieldByName("o.b")
	require.True(t, found)
	require.Greater(t, back.ID, gone.ID)
}

func TestANewTableHasItsSystemColumnsFirst(t *testing.T) {
	all, err := schema.ParseSystemColumns([]string{"partition", "offset", "timestamp", "key", "headers"})
	require.NoError(t, err)
	s := schema.New(all, inferred(t, schema.Limits{}, `{"a":1}`))
	require.Equal(t, "__partition int, __offset long, __timestamp timestamptz, __key binary, "+
		"__headers list<struct<key string, value binary>>, __overflow string, a long", render(s.Fields()))
	for _, field := range s.Fields() {
		require.Equal(t, field.Name == "__partition" || field.Name == "__offset", field.Required, field.Name)
	}
}

func TestSystemColumnsAreAddedToATableOfAnother(t *testing.T) {
	landed := iceberg.NewSchema(3, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.Int64})
	s, changed, err := schema.Union(landed, 8, schema.DefaultSystemColumns(), schema.NewInference(schema.Limits{}))
	require.NoError(t, err)
	require.True(t, changed)
	require.NoError(t, materialization.CheckEvolution(landed, 8, s))
	require.Equal(t, "a long, __partition int, __offset long, __timestamp timestamptz, __overflow string", render(s.Fields()))
}

func TestAColumnThatTakesASystemNameIsRefused(t *testing.T) {
	landed := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "__offset", Type: iceberg.PrimitiveTypes.String})
	_, _, err := schema.Union(landed, 1, schema.DefaultSystemColumns(), schema.NewInference(schema.Limits{}))
	require.ErrorIs(t, err, base.ErrInvalid)
	require.ErrorContains(t, err, `column __offset is string and must be long: rename it, or leave the system column "offset" out`)
}

func TestUnknownSystemColumnsAreRefused(t *testing.T) {
	_, err := schema.ParseSystemColumns([]string{"offset", "topic"})
	require.ErrorIs(t, err, base.ErrInvalid)
	require.ErrorContains(t, err, `"topic"`)
}

func TestTheDeadLetterSchemaIsFixed(t *testing.T) {
	require.Equal(t, "__partition int, __offset long, __timestamp timestamptz, code string, reason string, "+
		"key binary, payload binary, headers list<struct<key string, value binary>>, failed_at timestamptz",
		render(schema.DeadLetter().Fields()))
	require.True(t, schema.Fits(schema.DeadLetter(), schema.DeadLetter()))
	require.False(t, schema.Fits(newTable(t).schema, schema.DeadLetter()))
}

// landOf makes a table out of payloads and evolves it with others.
func landOf(t rapid.TB, first [][]byte, then ...[][]byte) *iceberg.Schema {
	s := schema.New(schema.DefaultSystemColumns(), inferenceOf(t, first))
	for _, payloads := range then {
		s = union(t, s, inferenceOf(t, payloads))
	}
	return s
}

func union(t rapid.TB, landed *iceberg.Schema, in *schema.Inference) *iceberg.Schema {
	next, _, err := schema.Union(landed, 0, schema.DefaultSystemColumns(), in)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if err := materialization.CheckEvolution(landed, landed.HighestFieldID(), next); err != nil {
		t.Fatalf("%s\n%s\n%v", landed, next, err)
	}
	return next
}

// Given a landed table, unioning only adds, and a second time adds nothing.
func TestUnionOnlyAddsAndSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb := landOf(t, decodetest.Payloads(4).Draw(t, "first"))
		in := inferenceOf(t, decodetest.Payloads(4).Draw(t, "then"))
		next := union(t, tb, in)
		if again := union(t, next, in); !again.Equals(next) {
			t.Fatalf("%s\n%s", next, again)
		}
	})
}

// Given two instances that evolve one table at once, whichever lands first, the
// other unions with it, and then neither has anything to add.
func TestTwoInstancesConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := landOf(t, decodetest.Payloads(3).Draw(t, "start"))
		one := inferenceOf(t, decodetest.Payloads(3).Draw(t, "one"))
		two := inferenceOf(t, decodetest.Payloads(3).Draw(t, "two"))
		for _, order := range [][2]*schema.Inference{{one, two}, {two, one}} {
			settled := union(t, union(t, start, order[0]), order[1])
			if !union(t, union(t, settled, one), two).Equals(settled) {
				t.Fatalf("still changing: %s", settled)
			}
		}
	})
}

// Given instances whose payloads agree on types, the order in which they land
// makes no difference to what columns there are.
func TestTheOrderOfLandingMakesNoDifferenceWithoutConflicts(t *testing.T) {
	member := rapid.SampledFrom([]string{
		`"a":1`, `"b":"x"`, `"o":{"c":true}`, `"o":{"d":1.5}`, `"l":[{"e":1}]`, `"l":[{"f":["y"]}]`, `"o":{"l":[{"g":1}]}`,
	})
	rapid.Check(t, func(t *rapid.T) {
		var batches [3][][]byte
		for i := range batches {
			batches[i] = [][]byte{[]byte(`{` + member.Draw(t, "member") + `}`), []byte(`{` + member.Draw(t, "member") + `}`)}
		}
		ab := landOf(t, batches[0], batches[1], batches[2])
		ba := landOf(t, batches[2], batches[1], batches[0])
		if leavesByPath(ab) != leavesByPath(ba) {
			t.Fatalf("%s\n%s", ab, ba)
		}
	})
}
