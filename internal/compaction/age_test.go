package compaction

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
)

// settable is a clock that a test sets.
type settable struct {
	base.SystemClock

	at time.Time
}

func (c *settable) Now() time.Time { return c.at }

// Given a machine whose clock is hours behind the log's, or is set back, then records
// grow old all the same.
func TestRecordsGrowOldWhateverTheMachinesClockSays(t *testing.T) {
	clock := &settable{at: time.UnixMilli(1_000_000)}
	age := newAgeClock(clock)
	require.EqualValues(t, 1_000_000, age.now(0))
	clock.at = clock.at.Add(5 * time.Second)
	require.EqualValues(t, 1_005_000, age.now(900_000), "the log is behind")
	require.EqualValues(t, 9_000_000, age.now(9_000_000), "the log is ahead")
	clock.at = clock.at.Add(7 * time.Second)
	require.EqualValues(t, 9_007_000, age.now(9_000_000))
	clock.at = clock.at.Add(-7 * time.Hour)
	require.EqualValues(t, 9_000_000, age.now(9_000_000))
	require.EqualValues(t, 9_010_000, age.now(9_010_000))
	clock.at = clock.at.Add(time.Minute)
	require.EqualValues(t, 9_070_000, age.now(9_010_000), "at the pace of the clock as it was set")
}
