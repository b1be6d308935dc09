package blob_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/blob/blobtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openURL(t *testing.T, rawURL string) blob.Store {
	t.Helper()
	s, err := blob.Open(t.Context(), rawURL, blob.Options{})
	require.NoError(t, err)
	return s
}

func TestFileStoreAcceptance(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return openURL(t, t.TempDir()) })
}

func TestMemoryStoreAcceptance(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return openURL(t, "mem://") })
}

func TestFaultyWithoutFaultsAcceptance(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store {
		return blob.NewFaulty(openURL(t, "mem://"), func(blob.Call) blob.Fault { return blob.Fault{} })
	})
}
