package crash

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

func TestALedgerIsReadBackWithoutItsTornEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger-a")
	acks, err := ReadLedger(path)
	require.NoError(t, err)
	require.Empty(t, acks)

	want := []Ack{{Attempt: "a-0-1", Stream: "x/y", Partition: 2, Offset: 7}, {Attempt: "a-0-2", Stream: "x/y", Partition: 0, Offset: 0}}
	for _, ack := range want { // a ledger that is opened again goes on
		book, err := openLedger(path)
		require.NoError(t, err)
		require.NoError(t, book.add([]Ack{ack}))
		require.NoError(t, book.close())
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(text, "a-0-3 x/y 1 1"...), 0o600))

	acks, err = ReadLedger(path)
	require.NoError(t, err)
	require.Equal(t, want, acks)

	require.NoError(t, os.WriteFile(path, []byte("nonsense\n"), 0o600))
	_, err = ReadLedger(path)
	require.Error(t, err)
}

func TestALedgerTakesEntriesOfManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger-a")
	book, err := openLedger(path)
	require.NoError(t, err)
	var running sync.WaitGroup
	for i := range 10 {
		running.Go(func() {
			for j := range 20 {
				_ = book.add([]Ack{{Attempt: "x", Stream: "x/y", Partition: engine.Partition(i % 4), Offset: engine.Offset(j)}}) // counted below
			}
		})
	}
	running.Wait()
	require.NoError(t, book.close())
	acks, err := ReadLedger(path)
	require.NoError(t, err)
	require.Len(t, acks, 200)
}

func TestPayloadsTellTheirAttempt(t *testing.T) {
	records := newAttempts("life", 3)
	var batch engine.Batch
	seen := make(map[string]bool)
	undecodable := 0
	for range 100 {
		names := records.next(&batch, 4)
		require.Len(t, names, len(batch.Logs))
		for i, l := range batch.Logs {
			require.Len(t, names[i], len(l.Records))
			for j, r := range l.Records {
				name, decodable, err := attemptOf(r.Value)
				require.NoError(t, err)
				require.Equal(t, names[i][j], name)
				require.Equal(t, engine.KeyPartition(r.Key, 4), int(l.Log.Partition))
				require.False(t, seen[name], "an attempt's name is its own")
				seen[name] = true
				if !decodable {
					undecodable++
				}
			}
		}
	}
	require.Equal(t, len(seen)/undecodableEvery, undecodable)
	_, _, err := attemptOf([]byte("[1"))
	require.Error(t, err)
}

func TestOnlyTheChosenPassingEnds(t *testing.T) {
	for _, c := range []struct {
		kill Kill
		want int
	}{
		{Kill{}, 0},
		{Kill{Point: "before-put", Passing: 1}, 1},
		{Kill{Point: "before-put", Passing: 3}, 5},
		{Kill{Point: "before-put", Passing: 4}, 0},
		{Kill{Point: AnyPoint, Passing: 4}, 4},
	} {
		at, ended, unlisted := 0, 0, ""
		e := executioner{kill: c.kill, die: func() { ended = at }, unlisted: func(name string) { unlisted = name }}
		for _, name := range []string{"before-put", "after-put", "before-put", "after-put", "before-put", "between"} {
			at++
			e.pass(name)
		}
		require.Equal(t, c.want, ended, "%s", c.kill)
		require.Equal(t, "between", unlisted, "a point that is not listed is told")
	}
}
