package crash_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/natskv"
	"github.com/lakestream-go/lakestream/internal/crash"
)

// Given leases that end while their server is away, when the server is killed later,
// which brings expired values back for ever, then they end all the same.
func TestLeasesOfTheDeadEndHoweverTheirServerEnded(t *testing.T) {
	t.Parallel()
	binary, err := serverBinary()
	require.NoError(t, err)
	server, err := crash.NewServer(t.Context(), binary, t.TempDir())
	require.NoError(t, err)
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(func() { server.Stop(true) })
	store, err := natskv.Open(t.Context(), natskv.External{
		Options: natskv.Options{Prefix: "lake", Name: "test", Clock: base.SystemClock{}, Logger: slog.New(slog.DiscardHandler)},
		URLs:    []string{server.URL()},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close(context.WithoutCancel(t.Context()))) })
	for round := range 4 {
		for i := range 20 {
			_, err := store.Documents().Create(t.Context(), fmt.Sprintf("lease.%d-%d", round, i), []byte("dead"), time.Second)
			require.NoError(t, err)
		}
		server.Stop(round == 3)
		time.Sleep(2 * time.Second) // they end while nobody can look
		require.NoError(t, server.Start(t.Context()))
		awaitStore(t, store)
	}
	require.Eventually(t, func() bool {
		left, err := store.Documents().List(t.Context(), "lease.")
		return err == nil && len(left) == 0
	}, patience, 200*time.Millisecond)
}

// awaitStore waits until a store answers.
func awaitStore(t *testing.T, store coord.Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := store.Documents().Get(t.Context(), "nothing")
		return errors.Is(err, base.ErrNotFound)
	}, patience, 50*time.Millisecond)
}
