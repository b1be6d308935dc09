package natskv

import (
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Headers of the server that tell what a stored message is.
const (
	headerOperation = "KV-Operation"
	headerMarker    = "Nats-Marker-Reason"
	headerTTL       = "Nats-TTL"
)

// isMarker reports whether a message only says that there is no value any more.
func isMarker(header nats.Header) bool {
	return header.Get(headerOperation) != "" || header.Get(headerMarker) != ""
}

// ttlOf returns the time to live that a value was stored with, 0 for none.
func ttlOf(header nats.Header) time.Duration {
	ttl, err := time.ParseDuration(header.Get(headerTTL))
	if err != nil {
		return 0
	}
	return ttl
}

// overdueAfter is how many times its time to live a value must have been seen
// unchanged until the server counts as having forgotten that it expires. A server
// that is killed and started again has been seen to bring expired values back, and
// to keep them for ever: leases of the dead that nobody could take.
const overdueAfter = 2

// sightings remembers since when values that expire were seen unchanged, by this
// process's monotonic clock. It is safe for concurrent use.
type sightings struct {
	mu   sync.Mutex
	seen map[string]sighting // by key; guarded by mu
}

type sighting struct {
	revision base.Revision
	since    time.Time
}

// overdue notes that a value with a time to live is there, and reports whether it
// has been there unchanged for longer than it may live.
func (s *sightings) overdue(key string, revision base.Revision, ttl time.Duration, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = make(map[string]sighting)
	}
	if before, ok := s.seen[key]; ok && before.revision == revision {
		return now.Sub(before.since) > overdueAfter*ttl
	}
	s.seen[key] = sighting{revision: revision, since: now}
	return false
}

// forget drops what is known of a key.
func (s *sightings) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, key)
}

// keep drops what is known of the keys with a prefix that are not listed any more.
func (s *sightings) keep(prefix string, listed []string) {
	there := make(map[string]bool, len(listed))
	for _, key := range listed {
		there[key] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.seen {
		if strings.HasPrefix(key, prefix) && !there[key] {
			delete(s.seen, key)
		}
	}
}
