package wal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// The estimate of how many callers there are follows a crowd at once, and forgets
// it by and by.
func TestACrowdGrowsAtOnceAndShrinksSlowly(t *testing.T) {
	var c crowd
	c.renew()
	require.Zero(t, c.half(), "nobody came")
	for range 512 {
		c.came()
	}
	c.renew()
	require.Equal(t, 256, c.half())
	c.left(512)
	c.renew()
	require.Equal(t, 256, c.half(), "they were there at the last renewal")
	c.renew()
	require.Equal(t, 224, c.half())
	for c.half() > 0 {
		before := c.size
		c.renew()
		require.Less(t, c.size, before)
	}
	require.Positive(t, c.size, "a small crowd is not worth waiting for")
}

// addTo brings n appends of one small record to a core.
func addTo(t *testing.T, c *Core, n int) {
	t.Helper()
	for range n {
		a, err := Encode(&Batch{Logs: []LogRecords{{Log: base.LogID{Stream: 1}, Records: make([]recordbatch.Record, 1)}}}, 1000)
		require.NoError(t, err)
		c.Add(a)
	}
}

// crowdedCore returns a core with 64 appends in flight in one object.
func crowdedCore(t *testing.T) *Core {
	t.Helper()
	c := NewCore(CoreConfig{MaxObjectBytes: 1 << 20, EagerBytes: 1 << 20, UploadConcurrency: 2, FlushWhenIdle: true})
	addTo(t, c, 64)
	require.False(t, c.IsCompanyDue(1), "nobody was seen before")
	c.Settled(1)
	c.WriterOpened(7)
	return c
}

// Given a crowd in flight, when half as many have come again, then these go too, as
// long as there is a slot: nobody is left to wait for.
func TestHalfACrowdIsFlushedBesideTheOther(t *testing.T) {
	c := crowdedCore(t)
	addTo(t, c, 31)
	require.Equal(t, 1, c.InFlight())
	addTo(t, c, 1)
	require.Equal(t, 2, c.InFlight())
	addTo(t, c, 64)
	require.Equal(t, 2, c.InFlight(), "both slots are taken")
}

// Given a crowd that was answered, when few of it are back, then company is due until
// half of them are, and never where one appends alone.
func TestCompanyIsDueUntilHalfACrowdIsBack(t *testing.T) {
	c := crowdedCore(t)
	o := c.queue[0]
	c.Uploaded(o, 7)
	c.Outcome(&shard.Outcome{Writer: 7, Seq: 1, Logs: []shard.LogOutcome{{Log: base.LogID{Stream: 1}, Records: 64}}})
	c.CommitPut(o)
	require.Zero(t, c.callers.waiting)

	addTo(t, c, 31)
	require.True(t, c.IsCompanyDue(2))
	require.False(t, c.IsCompanyDue(1), "that object is gone")
	addTo(t, c, 1)
	require.False(t, c.IsCompanyDue(2))
	require.Zero(t, c.InFlight(), "more may come at once, so it settles first")
}
