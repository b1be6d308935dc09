package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/engine"
)

// A record goes when either bound says so: what is kept is the lesser of both.
func TestRetentionIsToldAsWhatIsKept(t *testing.T) {
	const hour, mebibyte = 3600 * 1000, 1 << 20
	for says, r := range map[string]engine.RetentionStatus{
		"everything":                        {TimeMS: engine.Unlimited, Bytes: engine.Unlimited},
		"1h0m0s":                            {TimeMS: hour, Bytes: engine.Unlimited},
		"the newest 1.0 MiB of a partition": {TimeMS: engine.Unlimited, Bytes: mebibyte},
		"1h0m0s, or the newest 1.0 MiB of a partition where that is less": {TimeMS: hour, Bytes: mebibyte},
		"0s": {TimeMS: 0, Bytes: engine.Unlimited},
	} {
		require.Equal(t, says, r.String())
	}
}
