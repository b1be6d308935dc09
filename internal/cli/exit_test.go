package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"
	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
	"github.com/lakestream-go/lakestream/internal/cli"
)

// Whatever an error is wrapped in, its class decides the exit code.
func TestEachClassOfErrorHasItsExitCode(t *testing.T) {
	tests := []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("anything"), 1},
		{engine.ErrNotFound, 1},
		{engine.ErrCorrupt, 1},
		{engine.ErrForeign, 1},
		{engine.ErrNewerFormat, 1},
		{engine.ErrUnknown, 1},
		{context.Canceled, 1},
		{engine.ErrInvalid, 2},
		{engine.ErrNotProven, 3},
		{engine.ErrIncomplete, 3},
		{fmt.Errorf("%w: %w", engine.ErrIncomplete, engine.ErrNotFound), 3},
		{engine.ErrUnavailable, 4},
		{engine.ErrTablesBehind, 4},
		{context.DeadlineExceeded, 4},
		{ucli.Exit("decided", 7), 7},
	}
	for _, test := range tests {
		require.Equal(t, test.want, cli.ExitCode(test.err), "%v", test.err)
		if test.err != nil {
			require.Equal(t, test.want, cli.ExitCode(fmt.Errorf("doing: %w", test.err)), "%v", test.err)
		}
	}
}

// Given the binary, when commands are used rightly and wrongly, then each ends with
// its code, and what went wrong is said on standard error alone.
func TestTheBinaryEndsWithTheRightCode(t *testing.T) {
	dir := filled(t)
	t.Setenv("LAKESTREAM_DATA_DIR", dir)
	pipeline := filepath.Join(t.TempDir(), "pipeline.yaml")
	require.NoError(t, os.WriteFile(pipeline, fmt.Appendf(nil, "output: { lakestream: { stream: a, engine: { data_dir: %q } } }", dir), 0o600))
	tests := map[string]struct {
		args []string
		code int
		says string
	}{
		"healthy":                     {[]string{"status", "--check"}, 0, ""},
		"by the configuration":        {[]string{"status", "-c", pipeline, "--check"}, 0, ""},
		"configuration first":         {[]string{"-c", pipeline, "status"}, 0, ""},
		"proven":                      {[]string{"table", "verify", "--complete", "shop.orders"}, 0, ""},
		"help":                        {[]string{"table", "head", "--help"}, 0, ""},
		"no such directory":           {[]string{"status", "--data-dir", dir + "/absent"}, 1, "does not exist"},
		"no such table":               {[]string{"table", "head", "no.such"}, 1, "table ls"},
		"no such stream":              {[]string{"stream", "describe", "no/such"}, 1, "no such stream"},
		"no such object":              {[]string{"inspect", "wal/s00/1/none"}, 1, "wal/s00/1/none"},
		"no such revision":            {[]string{"inspect", "s00@99"}, 1, "not found"},
		"no such shard":               {[]string{"inspect", "s77@1"}, 2, "s00@17"},
		"no such column":              {[]string{"table", "head", "shop.orders", "--columns", "none"}, 2, `"none"`},
		"no such command":             {[]string{"table", "forget"}, 2, "verify, reset"},
		"no command":                  {[]string{"table"}, 2, "verify, reset"},
		"unknown flag":                {[]string{"status", "--chek"}, 2, "-chek"},
		"late unknown flag":           {[]string{"table", "verify", "shop.orders", "--complet"}, 2, "-complet"},
		"flag without effect":         {[]string{"--chilled", "status"}, 2, "-chilled"},
		"flag before the command":     {[]string{"table", "--json", "ls"}, 2, "-json"},
		"too many arguments":          {[]string{"status", "now"}, 2, "1 argument given"},
		"too few arguments":           {[]string{"table", "verify"}, 2, "want TABLE"},
		"wrong value":                 {[]string{"table", "head", "shop.orders", "-n", "0"}, 2, "-n 0"},
		"negative time":               {[]string{"status", "--timeout", "-1s"}, 2, "--timeout"},
		"negative wait":               {[]string{"table", "verify", "shop.orders", "--wait", "-1s"}, 2, "--wait"},
		"contradiction":               {[]string{"status", "--check", "--watch"}, 2, "--watch"},
		"no such configuration":       {[]string{"status", "-c", dir + "/none.yaml"}, 2, "none.yaml"},
		"unconfirmed":                 {[]string{"table", "reset", "shop.orders"}, 2, ""},
		"a directory to inspect":      {[]string{"inspect", dir}, 2, "not a file"},
		"compact without end":         {[]string{"compact"}, 2, "--once"},
		"the table is not gone":       {[]string{"table", "reset", "shop.orders", "--yes"}, 1, "drop or rename"},
		"too little time":             {[]string{"status", "--timeout", "1ns"}, 4, "--timeout 1ns"},
		"nothing that can be decoded": {[]string{"inspect", pipeline}, 1, "no object and no commit record"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := lakestream(t, test.args...)
			require.Equal(t, test.code, got.code, "%s%s", got.stdout, got.stderr)
			if test.code == 0 {
				require.Empty(t, got.stderr)
				require.NotEmpty(t, got.stdout)
				return
			}
			require.Empty(t, got.stdout)
			require.Contains(t, got.stderr, test.says)
			require.Contains(t, got.stderr, "error: ")
		})
	}
}

// Given a directory whose holder does not answer, when a command looks at it, then
// it gives up and says that trying again may help.
func TestADirectoryHeldByASilentProcessIsUnavailable(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "nats"), 0o700))
	lock := flock.New(filepath.Join(dir, "LOCK"))
	locked, err := lock.TryLock()
	require.NoError(t, err)
	require.True(t, locked)
	defer func() { require.NoError(t, lock.Close()) }()

	got := lakestream(t, "status", "--data-dir", dir, "--timeout", "500ms")
	require.Equal(t, 4, got.code, got.stderr)
	require.Contains(t, got.stderr, "is held by another process")
}
