package kafka

import (
	"testing"

	"go.uber.org/goleak"
)

// Every test closes what it opened; nothing may run on. A NATS server that is shut
// down while it creates a stream leaves two goroutines of that stream behind, which
// nobody can end.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server/ats.Register.func1"),
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.(*fileStore).flushStreamStateLoop"),
	)
}
