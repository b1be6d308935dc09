package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Given a stream that is in its table, when it is looked at, then people get short
// aligned text that names the numbers and says how things are.
func TestTextIsForPeople(t *testing.T) {
	dir := filled(t)
	tests := map[string]struct {
		args []string
		want []string
	}{
		"status": {
			[]string{"status"},
			[]string{
				"instances     none is running\n",
				" in 1 object, ", " that nothing needs, ", " puts a second\n",
				"STREAM       PARTITIONS  RECORDS     SIZE  TABLE        STATE    ROWS  DEAD LETTERS  BEHIND\n",
				"shop/orders           2       20  ",
				"shop.orders  RUNNING    20             0       0\n",
				"\nhealthy\n",
			},
		},
		"stream ls":           {[]string{"stream", "ls"}, []string{"shop/orders           2       20"}},
		"stream ls of one":    {[]string{"stream", "ls", "shop"}, []string{"shop/orders"}},
		"stream ls of none":   {[]string{"stream", "ls", "sho"}, []string{"no streams yet\n"}},
		"stream describe":     {[]string{"stream", "describe", "shop/orders"}, []string{"        0      0    20        20        20        20"}},
		"table ls":            {[]string{"table", "ls"}, []string{"shop.orders  shop/orders  RUNNING    20             0       0\n"}},
		"table describe":      {[]string{"table", "describe", "shop.orders"}, []string{"\n__partition  int required\n", "\nname         string\n", "\nbehind        0 records\n"}},
		"table by its stream": {[]string{"table", "describe", "shop/orders"}, []string{"table         shop.orders\n"}},
		"table head": {
			[]string{"table", "head", "shop.orders", "-n", "1"},
			[]string{"__partition  __offset  __timestamp", "order ", `{"city":"Zürich"}`},
		},
		"table head of columns": {[]string{"table", "head", "shop.orders", "--columns", "name, __offset", "-n", "20"}, []string{"\norder 7   7\n"}},
		"table verify":          {[]string{"table", "verify", "shop.orders"}, []string{"        0  0-20       20", "proven: each record of the log is there exactly once\n"}},
		"compact":               {[]string{"compact", "--once"}, []string{"nothing was left to compact\n"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := inProcess(t, append(test.args, "--data-dir", dir)...)
			require.Zero(t, got.code, got.stderr)
			require.Empty(t, got.stderr)
			for _, want := range test.want {
				require.Contains(t, got.stdout, want)
			}
		})
	}
}

// Given objects and commit records, when they are inspected, then text says what
// they hold.
func TestInspectingSaysWhatIsHeld(t *testing.T) {
	dir := filled(t)
	wal, walPath := findObject(t, dir, "wal")
	compacted, _ := findObject(t, dir, "compacted")
	tests := map[string][]string{
		wal:       {wal + ": WAL object, verified\n", "\nrecords         20\n", "1 none"},
		walPath:   {walPath + ": WAL object, verified\n"},
		compacted: {": compacted object, verified\n", "\noffsets       0-20\n", "ROW GROUP  OFFSETS"},
		"s00@1":   {"s00@1: commit record, verified\nkind      ClusterCreate\n", `"shards": 4`},
	}
	for key, wants := range tests {
		t.Run(key, func(t *testing.T) {
			got := inProcess(t, "inspect", key, "--data-dir", dir)
			require.Zero(t, got.code, got.stderr)
			for _, want := range wants {
				require.Contains(t, got.stdout, want)
			}
		})
	}
	t.Run("a file needs no engine", func(t *testing.T) {
		require.Zero(t, inProcess(t, "inspect", walPath, "--data-dir", dir+"/absent").code)
	})
}
