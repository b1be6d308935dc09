package coord_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

func TestKeysAreTokensAndDots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.SliceOfN(rapid.StringMatching(`[A-Za-z0-9_-]{1,10}`), 1, 5).Draw(t, "tokens")
		key := strings.Join(tokens, ".")
		require.NoError(t, coord.CheckKey(key))
		assert.Equal(t, len(tokens) == 1, coord.CheckLogName(key) == nil)
		bad := rapid.SampledFrom([]string{" ", "*", ">", "/", "$", "é", "\x00", ".."}).Draw(t, "bad")
		require.ErrorIs(t, coord.CheckKey(key+bad+key), base.ErrInvalid)
		require.ErrorIs(t, coord.CheckLogName(key+bad), base.ErrInvalid)
	})
}

func TestLengthsAreBounded(t *testing.T) {
	longest := strings.Repeat("k", 255)
	require.NoError(t, coord.CheckKey(longest))
	require.NoError(t, coord.CheckLogName(longest))
	require.ErrorIs(t, coord.CheckKey(longest+"k"), base.ErrInvalid)
	require.ErrorIs(t, coord.CheckLogName(longest+"k"), base.ErrInvalid)
	require.NoError(t, coord.CheckData(make([]byte, 10), 10))
	err := coord.CheckData(make([]byte, 11), 10)
	require.ErrorIs(t, err, base.ErrInvalid)
	require.ErrorContains(t, err, "record of 11 bytes: the limit is 10")
}

func TestTimesToLiveAreWholeSeconds(t *testing.T) {
	for ttl, valid := range map[time.Duration]bool{
		0: true, time.Second: true, time.Hour: true,
		-time.Second: false, time.Nanosecond: false, 1500 * time.Millisecond: false,
	} {
		assert.Equal(t, valid, coord.CheckTTL(ttl) == nil, "%s", ttl)
	}
}

func TestALogStartsWithinItsBounds(t *testing.T) {
	for first, valid := range map[base.Revision]bool{0: false, 1: true, 1 << 53: true, 1<<53 + 1: false} {
		assert.Equal(t, valid, coord.CheckFirst(first) == nil, "%d", first)
	}
}
