package kafka

import (
	"testing"

	"go.uber.org/goleak"
)

// Every test closes what it opened; nothing may run on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
