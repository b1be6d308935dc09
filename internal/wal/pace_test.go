package wal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The estimate of how many callers there are follows a crowd at once, and forgets
// it by and by, to nothing.
func TestACrowdGrowsAtOnceAndShrinksSlowly(t *testing.T) {
	var c crowd
	require.Zero(t, c.renew())
	c.saw(512)
	c.saw(3)
	require.EqualValues(t, 512, c.renew())
	c.saw(10)
	require.EqualValues(t, 448, c.renew())
	for size := c.size; size > 0; size = c.size {
		require.Less(t, c.renew(), size)
	}
}
