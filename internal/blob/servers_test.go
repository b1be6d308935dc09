package blob_test

import (
	"testing"

	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/blob/blobtest"
	"github.com/lakestream-go/lakestream/internal/blob/servertest"
)

// onServers runs a story on each real server that is there.
func onServers(t *testing.T, story func(*testing.T, *servertest.Server)) {
	t.Run("S3", func(t *testing.T) { story(t, servertest.S3(t)) })
	t.Run("GCS", func(t *testing.T) { story(t, servertest.GCS(t)) })
	t.Run("Azure", func(t *testing.T) { story(t, servertest.Azure(t)) })
}

func TestServerAcceptance(t *testing.T) {
	onServers(t, func(t *testing.T, server *servertest.Server) {
		blobtest.Run(t, func(t *testing.T) blob.Store { return server.Open(t) })
	})
}
