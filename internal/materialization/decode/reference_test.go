package decode_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization/decode/decodetest"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

// The reference shows payloads and their rows side by side: they are these.
func TestTheReferenceShowsTheRowsOfItsPayloads(t *testing.T) {
	page, err := os.ReadFile("../../../docs/tables.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "```json\n")
	block, _, _ := strings.Cut(rest, "\n```")
	payloads := strings.Split(block, "\n")
	all := make([][]byte, len(payloads))
	for i, payload := range payloads {
		all[i] = []byte(payload)
	}
	d := decoderOf(t, schemaOf(schema.Limits{}, all...), schema.Limits{})
	dead := 0
	for i, payload := range all {
		if !d.Append(0, record(base.Offset(i), payload)).Landed() {
			dead++
			require.Contains(t, string(page), fmt.Sprintf("The record at offset %d is no JSON", i))
		}
	}
	require.Equal(t, 1, dead)
	for _, row := range takeRows(t, d) {
		require.Contains(t, string(page), "\n"+referenceLine(t, row)+"\n")
	}
}

// referenceLine is a row as the page has it.
func referenceLine(t *testing.T, row decodetest.Row) string {
	t.Helper()
	line := "|"
	for _, column := range []string{"__offset", "id", "price", "note", "tags", "address", "value", "__overflow"} {
		switch v := row[column].(type) {
		case nil:
			line += " |"
		case decodetest.Row, []any:
			text, err := json.Marshal(v)
			require.NoError(t, err)
			line += " `" + string(text) + "` |"
		default:
			text := fmt.Sprint(v)
			if column == schema.OverflowColumn {
				text = "`" + text + "`"
			}
			line += " " + text + " |"
		}
	}
	return line
}
