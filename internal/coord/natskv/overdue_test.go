package natskv

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

func TestAValueIsOverdueWhenItStandsUnchangedForTooLong(t *testing.T) {
	var s sightings
	start := time.Now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	const ttl = 5 * time.Second
	require.False(t, s.overdue("lease.a", 7, ttl, at(0)), "it may have been written just now")
	require.False(t, s.overdue("lease.a", 7, ttl, at(10)))
	require.True(t, s.overdue("lease.a", 7, ttl, at(11)))
	require.False(t, s.overdue("lease.a", 8, ttl, at(12)), "it was renewed")
	require.False(t, s.overdue("lease.a", 8, ttl, at(22)))
	require.True(t, s.overdue("lease.a", 8, ttl, at(23)))
	s.forget("lease.a")
	require.False(t, s.overdue("lease.a", 8, ttl, at(30)), "it is another one")
}

func TestOnlyWhatIsStillThereIsRemembered(t *testing.T) {
	var s sightings
	for _, key := range []string{"lease.a", "lease.b", "status.c"} {
		s.overdue(key, 1, time.Second, time.Now())
	}
	s.keep("lease.", []string{"lease.b"})
	require.Len(t, s.seen, 2)
	require.Contains(t, s.seen, "lease.b")
	require.Contains(t, s.seen, "status.c")
}

func TestHeadersAreRead(t *testing.T) {
	require.Equal(t, 5*time.Second, ttlOf(nats.Header{headerTTL: {"5s"}}))
	require.Zero(t, ttlOf(nil))
	require.Zero(t, ttlOf(nats.Header{headerTTL: {"never"}}))
	require.False(t, isMarker(nats.Header{headerTTL: {"5s"}}))
	require.True(t, isMarker(nats.Header{headerOperation: {"PURGE"}}))
	require.True(t, isMarker(nats.Header{headerMarker: {"MaxAge"}}))
}
