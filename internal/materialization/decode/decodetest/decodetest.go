// Package decodetest reads rows back and compares them with the payloads that
// they came from, by means of encoding/json and math/big alone, so that nothing
// of the decoder is trusted in judging it.
package decodetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"
)

// Row is a row by column name: nil, bool, int32, int64, float64, string,
// []byte, arrow.Timestamp, []any or Row.
type Row map[string]any

// Rows returns the rows of a batch. Null columns are absent.
func Rows(t testing.TB, batch arrow.RecordBatch) []Row {
	t.Helper()
	rows := make([]Row, batch.NumRows())
	for i := range rows {
		rows[i] = Row{}
		for c, column := range batch.Columns() {
			if v := value(t, column, i); v != nil {
				rows[i][batch.ColumnName(c)] = v
			}
		}
	}
	return rows
}

func value(t testing.TB, a arrow.Array, i int) any {
	t.Helper()
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Int32:
		return a.Value(i)
	case *array.Int64:
		return a.Value(i)
	case *array.Timestamp:
		return a.Value(i)
	case *array.Float64:
		return a.Value(i)
	case *array.String:
		return a.Value(i)
	case *array.Binary:
		return bytes.Clone(a.Value(i))
	case *array.Struct:
		row := Row{}
		for f, field := range a.DataType().(*arrow.StructType).Fields() {
			if v := value(t, a.Field(f), i); v != nil {
				row[field.Name] = v
			}
		}
		return row
	case *array.List:
		from, to := a.ValueOffsets(i)
		list := []any{}
		for e := from; e < to; e++ {
			list = append(list, value(t, a.ListValues(), int(e)))
		}
		return list
	default:
		require.Failf(t, "unexpected column", "%s", a.DataType())
		return nil
	}
}

// Scalars are the leaves of a row or a payload: how often each folded path holds
// each value.
type Scalars map[string]int

func (s Scalars) add(path, value string) { s[strings.ToLower(path)+" = "+value]++ }

// RequireSame fails unless the row holds exactly the scalars of the payload, in
// its columns or in __overflow, nothing lost and nothing made up.
func RequireSame(t testing.TB, payload []byte, row Row) {
	t.Helper()
	want := PayloadScalars(t, payload)
	require.Equal(t, want, RowScalars(t, row, want), "payload %s\nrow %v", payload, row)
}

// PayloadScalars returns the scalars of a payload. One that is no object is at
// the path value.
func PayloadScalars(t testing.TB, payload []byte) Scalars {
	t.Helper()
	scalars := Scalars{}
	path := "value"
	if bytes.HasPrefix(bytes.TrimSpace(payload), []byte("{")) {
		path = ""
	}
	scalars.tokens(t, path, payload)
	return scalars
}

// tokens adds what a JSON text holds below a path, twins and all.
func (s Scalars) tokens(t testing.TB, path string, text []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	s.next(t, d, path, true)
}

func (s Scalars) next(t testing.TB, d *json.Decoder, path string, top bool) {
	t.Helper()
	token, err := d.Token()
	require.NoError(t, err)
	switch v := token.(type) {
	case json.Delim:
		for i := 0; d.More(); i++ {
			step := strconv.Itoa(i)
			if v == '{' {
				name, err := d.Token()
				require.NoError(t, err)
				step = strings.ReplaceAll(strings.ReplaceAll(name.(string), "~", "~0"), ".", "~1")
			}
			if !top || path != "" {
				step = path + "." + step
			}
			s.next(t, d, step, false)
		}
		_, err = d.Token()
		require.NoError(t, err)
	case json.Number:
		s.add(path, Number(t, v.String()))
	case string:
		s.add(path, "text "+v)
	case bool:
		s.add(path, fmt.Sprint(v))
	case nil:
	}
}

// Number renders a JSON number as the exact fraction that it denotes, its sign
// even when it is zero.
func Number(t testing.TB, literal string) string {
	t.Helper()
	if mantissa, exponent, found := strings.Cut(strings.ToLower(literal), "e"); found && len(exponent) > 4 {
		return mantissa + "e" + exponent // not a double, so its text must survive
	}
	number, ok := new(big.Rat).SetString(literal)
	require.True(t, ok, literal)
	if number.Sign() == 0 && strings.HasPrefix(literal, "-") {
		return "-0"
	}
	return number.RatString()
}

var repeat = regexp.MustCompile(`~#\d+$`)

// RowScalars returns the scalars of a row: those of its columns and those in
// __overflow. want tells whether a double is meant as its shortest decimal or
// as the integer that it equals.
func RowScalars(t testing.TB, row Row, want Scalars) Scalars {
	t.Helper()
	scalars := Scalars{}
	for _, name := range slices.Sorted(maps.Keys(row)) {
		if !strings.HasPrefix(name, "__") {
			scalars.column(t, name, row[name], want)
		}
	}
	text, ok := row["__overflow"].(string)
	if !ok {
		return scalars
	}
	var entries map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &entries), text)
	for path, raw := range entries {
		if path == "~timestamp" {
			continue
		}
		scalars.overflowed(t, repeat.ReplaceAllString(path, ""), raw)
	}
	return scalars
}

func (s Scalars) overflowed(t testing.TB, path string, raw json.RawMessage) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	s.next(t, d, path, false)
}

func (s Scalars) column(t testing.TB, path string, value any, want Scalars) {
	t.Helper()
	switch v := value.(type) {
	case Row:
		for name, inner := range v {
			s.column(t, path+"."+name, inner, want)
		}
	case []any:
		for i, element := range v {
			s.column(t, path+"."+strconv.Itoa(i), element, want)
		}
	case bool:
		s.add(path, fmt.Sprint(v))
	case int32, int64:
		s.add(path, fmt.Sprint(v))
	case string:
		s.add(path, "text "+v)
	case float64:
		exact := new(big.Rat).SetFloat64(v).RatString()
		if v != 0 && want[strings.ToLower(path)+" = "+exact] > 0 {
			s.add(path, exact)
			return
		}
		s.add(path, Number(t, strconv.FormatFloat(v, 'g', -1, 64)))
	case nil:
	default:
		require.Failf(t, "unexpected value", "%T at %s", value, path)
	}
}
