package prepare_test

import (
	"bufio"
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/materialization/decode/decodetest"
	"github.com/lakestream-go/lakestream/internal/materialization/memtables"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

// githubPayloads are the real deliveries of the quickstart, one a line.
func githubPayloads(t testing.TB) [][]byte {
	t.Helper()
	data, err := os.ReadFile("../../../examples/quickstart/github-webhooks.ndjson")
	require.NoError(t, err)
	var payloads [][]byte
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		payloads = append(payloads, bytes.Clone(lines.Bytes()))
	}
	require.NoError(t, lines.Err())
	require.Len(t, payloads, 329)
	return payloads
}

func TestEveryScalarOfRealPayloadsIsFoundAgain(t *testing.T) {
	payloads := githubPayloads(t)
	tables := memtables.New()

	prepared := prepareAll(t, tables, request(payloads))

	require.Empty(t, prepared[0].DeadLetter)
	rows := readRows(t, tables, prepared[0].Main)
	require.Len(t, rows, len(payloads))
	overflowed := 0
	for i, row := range rows {
		require.Equal(t, int64(i), row[schema.OffsetColumn])
		require.Equal(t, int64(i+1), row["delivery"])
		decodetest.RequireSame(t, payloads[i], row)
		if row[schema.OverflowColumn] != nil {
			overflowed++
		}
	}
	t.Logf("%d columns, %d rows with overflow", schema.Leaves(landed(t, tables).Schema), overflowed)
}
