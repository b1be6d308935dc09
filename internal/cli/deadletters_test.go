package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// withDeadLetters is a directory whose stream default/mixed holds one record that
// is a row and two that are dead letters, one of them not text.
func withDeadLetters(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	e := open(t, dir, nil)
	s, err := e.EnsureStream(t.Context(), "mixed", engine.StreamConfig{Partitions: 1})
	require.NoError(t, err)
	batch := engine.Batch{Logs: []engine.LogRecords{{Records: []engine.Record{
		{Timestamp: 1_790_000_000_000, Value: []byte(`{"id":1}`)},
		{Timestamp: 1_790_000_000_000, Key: []byte("a key"), Value: []byte(`broken`)},
		{Timestamp: 1_790_000_000_120, Value: []byte("\xff")},
	}}}}
	require.NoError(t, s.Append(t.Context(), &batch))
	require.NoError(t, batch.Results[0].Err)
	closeEngine(t, e)
	return dir
}

// Given records that could not become rows, when people look for them, then each
// command shows where they are, and what is text as text.
func TestDeadLettersCanBeLookedAt(t *testing.T) {
	dir := withDeadLetters(t)
	for story, test := range map[string]struct {
		args []string
		want []string
	}{
		"status points to them":         {[]string{"status"}, []string{"\n2 dead letters of default.mixed: see lakestream table head default.mixed_dlt\n"}},
		"they are listed":               {[]string{"table", "ls"}, []string{"default.mixed      default/mixed  RUNNING     1             2", "default.mixed_dlt  default/mixed  RUNNING     2             0"}},
		"a name alone is in default":    {[]string{"table", "head", "mixed", "--columns", "id"}, []string{"id\n1\n"}},
		"and their table is described":  {[]string{"table", "describe", "mixed_dlt"}, []string{"table         default.mixed_dlt\n", "\nrows          2\n", "\nreason       string required\n"}},
		"bytes are text where they are": {[]string{"table", "head", "default.mixed_dlt", "--columns", "code,key,payload"}, []string{"invalid_json  a key  broken\n", "invalid_utf8         /w==\n"}},
		"times have one width": {
			[]string{"table", "head", "default.mixed_dlt", "--columns", "__timestamp,code"},
			[]string{"2026-09-21T14:13:20.000Z  invalid_json\n", "2026-09-21T14:13:20.120Z  invalid_utf8\n"},
		},
		"JSON keeps the bytes": {[]string{"table", "head", "default.mixed_dlt", "--json"}, []string{`"payload": "YnJva2Vu"`}},
	} {
		t.Run(story, func(t *testing.T) {
			got := inProcess(t, append(test.args, "--data-dir", dir)...)
			require.Zero(t, got.code, got.stderr)
			for _, want := range test.want {
				require.Contains(t, got.stdout, want)
			}
		})
	}
	t.Run("the proof is that of both tables", func(t *testing.T) {
		got := inProcess(t, "table", "verify", "mixed_dlt", "--data-dir", dir)
		require.Equal(t, 2, got.code)
		require.Contains(t, got.stderr, "verify table default.mixed, which includes it")
		require.Equal(t, 2, inProcess(t, "table", "reset", "mixed_dlt", "--yes", "--data-dir", dir).code)
		require.Zero(t, inProcess(t, "table", "verify", "mixed", "--data-dir", dir).code)
	})
}

// Given a name written as tables are, or a column that is not there, when they are
// looked at, then the stream is found, and the columns that are there are named.
func TestNamesAreFoundAsPeopleWriteThem(t *testing.T) {
	dir := filled(t)
	got := inProcess(t, "stream", "describe", "shop.orders", "--data-dir", dir)
	require.Zero(t, got.code, got.stderr)
	require.True(t, strings.HasPrefix(got.stdout, "stream     shop/orders\n"), got.stdout)

	got = inProcess(t, "stream", "describe", "shop.absent", "--data-dir", dir)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "stream ls shows those that are")

	got = inProcess(t, "table", "head", "shop.orders", "--columns", "nmae", "--data-dir", dir)
	require.Equal(t, 2, got.code)
	require.Contains(t, got.stderr, `no column "nmae" at the top: want one of __partition, __offset, __timestamp, __overflow, id, name, address`)
}
