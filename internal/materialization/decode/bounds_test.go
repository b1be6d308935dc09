package decode_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/materialization/decode/decodetest"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

// Given a long path before each of many small values, when their overflow would
// dwarf the payload, then the field stands there once, whole.
func TestTheOverflowOfARowIsBounded(t *testing.T) {
	long := strings.Repeat("n", 200)
	landed := landedBy(`{"` + long + `":[{"a":1}],"b":1}`)
	array := `[` + strings.Repeat(`{"a":"x"},`, 10_000) + `{"a":7}]`
	payload := `{"b":"y","` + long + `":` + array + `,"c":true}`

	rows := rowsOf(t, decoderOf(t, landed, schema.Limits{}), payload, `{"b":"z"}`)

	var overflow map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(rows[0]["__overflow"].(string)), &overflow))
	require.Len(t, overflow, 3)
	require.JSONEq(t, array, string(overflow[long]))
	require.Equal(t, `"y"`, string(overflow["b"]))
	require.Equal(t, `true`, string(overflow["c"]))
	require.Less(t, len(rows[0]["__overflow"].(string)), 2*len(payload))
	require.JSONEq(t, `{"b":"z"}`, rows[1]["__overflow"].(string), "the next row is its own")
}

func TestTheOverflowOfAPayloadThatIsNoObjectIsBoundedToo(t *testing.T) {
	landed := landedBy(`[{"` + strings.Repeat("n", 200) + `":{"a":1}}]`)
	payload := `[` + strings.Repeat(`{"`+strings.Repeat("n", 200)+`":{"a":"","b":1}},`, 2_000) + `1]`
	row := rowsOf(t, decoderOf(t, landed, schema.Limits{}), payload)[0]
	require.Equal(t, `{"value":`+payload+`}`, row["__overflow"])
}

// Given a list of wide structs, when a payload brings a million empty ones, then
// the array overflows instead of exhausting memory.
func TestTheElementsOfARowAreBounded(t *testing.T) {
	var wide []string
	for i := range 500 {
		wide = append(wide, fmt.Sprintf(`"c%d":%d`, i, i))
	}
	landed := landedBy(`{"l":[{` + strings.Join(wide, ",") + `}]}`)
	array := `[` + strings.Repeat(`{},`, 1_000_000) + `{"c1":1}]`
	d := decoderOf(t, landed, schema.Limits{})

	row := rowsOf(t, d, `{"l":`+array+`}`)[0]
	require.Equal(t, `{"l":`+array+`}`, row["__overflow"])
	require.Nil(t, row["l"])

	small := `{"l":[` + strings.Repeat(`{},`, 1_000) + `{"c1":1}]}`
	require.True(t, d.Append(0, record(0, []byte(small))).Landed())
	require.Greater(t, d.Bytes(), int64(1_000*500*8), "null elements count")
	decodetest.RequireSame(t, []byte(small), takeRows(t, d)[0])
}

func TestWideRowsCountTheirNullColumns(t *testing.T) {
	var wide []string
	for i := range 1000 {
		wide = append(wide, fmt.Sprintf(`"c%d":%d`, i, i))
	}
	d := decoderOf(t, landedBy(`{`+strings.Join(wide, ",")+`}`), schema.Limits{})
	d.Append(0, record(0, []byte(`{}`)))
	require.Greater(t, d.Bytes(), int64(8_000))
}

// FuzzDecoder throws any bytes at a decoder: each payload lands, all of it found
// again, or is a dead letter with a short reason; memory stays in proportion.
func FuzzDecoder(f *testing.F) {
	landed := landedBy(`{"a":1,"b":1.5,"c":"x","d":true,"o":{"p":[{"q":1}]},"l":[["x"]],"value":[1]}`)
	for _, seed := range []string{
		`{"a":1,"b":2,"c":"é","d":false,"o":{"p":[{"q":1},{"q":"x"}]},"l":[["x",1],2]}`,
		`{"A":1,"a":2,"a":3,"o":{"p":{}},"x.y":"\ud83d"}`, `[1,"x",[2]]`, `{"a":`, "\xff", ``, `{"l":[[[[[[[]]]]]]]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		d := decoderOf(t, landed, schema.Limits{})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		verdict := d.Append(0, record(5, payload))
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20+200*len(payload)))
		if !verdict.Landed() {
			require.NotEmpty(t, verdict.Reason)
			require.Less(t, len(verdict.Reason), 200)
			require.Zero(t, d.Rows())
			return
		}
		row := takeRows(t, d)[0]
		require.Equal(t, int64(5), row["__offset"])
		decodetest.RequireSame(t, payload, row)
		decodetest.RequireClaims(t, payload, row)
	})
}
