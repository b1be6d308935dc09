package cli_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// Given a log of which a part is in the table, when it is verified, then the part is
// proven and the rest counted; a complete proof fails until the rest is there.
func TestVerifyTellsTheProvenPartFromTheRest(t *testing.T) {
	dir := t.TempDir()
	verify := func(flags ...string) result {
		return inProcess(t, append([]string{"table", "verify", "shop.orders", "--data-dir", dir}, flags...)...)
	}
	e := open(t, dir, withoutCompaction)
	appendOrders(t, e, 5)
	closeEngine(t, e)
	got := verify()
	require.Equal(t, 1, got.code, "there is no table yet")
	require.Contains(t, got.stderr, "5 records of the log lie ahead")
	require.Equal(t, 3, verify("--complete").code)
	status := inProcess(t, "status", "--data-dir", dir)
	require.Contains(t, status.stdout, "healthy; tables are 5 records behind and no instance is running\nnext: run a pipeline, or compact --once\n")
	require.Contains(t, inProcess(t, "table", "describe", "shop.orders", "--data-dir", dir).stdout, "it is created with its first record")

	require.Zero(t, inProcess(t, "compact", "--once", "--data-dir", dir).code)
	require.Zero(t, verify("--complete").code)

	e = open(t, dir, withoutCompaction)
	appendOrders(t, e, 3)
	closeEngine(t, e)
	got = verify()
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "3 records of the log are still to come")
	got = verify("--complete", "--json")
	require.Equal(t, 3, got.code)
	require.Equal(t, "error: not all of the log is materialized: table shop.orders: 3 records remain\n", got.stderr)
	var report engine.VerifyReport
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report), "the report is there although the check failed")
	require.Equal(t, int64(3), report.Rest)

	got = verify("--wait", "10ms", "--complete")
	require.Equal(t, 3, got.code, "nobody fills the table meanwhile")
	require.Contains(t, got.stderr, "waiting up to 10ms for 3 records to reach table shop.orders")
}

// Given a table that another tool rolled back, when it is verified, then the check
// fails and names the offsets that are missing.
func TestVerifyFindsWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		e := open(t, dir, nil)
		appendOrders(t, e, 5)
		closeEngine(t, e)
	}
	changeCatalog(t, dir, "UPDATE iceberg_tables SET metadata_location = previous_metadata_location WHERE table_name = 'orders'")
	got := lakestream(t, "table", "verify", "--data-dir", dir, "shop.orders")
	require.Equal(t, 3, got.code, got.stderr)
	require.Contains(t, got.stdout, "! missing: partition 0, offsets 5 to 9\n")
	require.Contains(t, got.stdout, "NOT PROVEN")
	require.Contains(t, got.stderr, "5 missing")
}
