package natskv

import (
	"errors"
	"sync"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
)

const (
	// maxUnanswered requests in a row, over at least unansweredFor, make a client
	// turn to another server: one that is cut off from its peers keeps its clients
	// and answers nothing for them, while the others go on.
	maxUnanswered = 3
	unansweredFor = 5 * time.Second
)

// silence counts the requests in a row that no server answered. It is safe for
// concurrent use.
type silence struct {
	mu    sync.Mutex
	count int       // guarded by mu
	since time.Time // guarded by mu; of the first of them
}

// answered ends a silence.
func (s *silence) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count = 0
}

// unanswered takes one more, and reports whether the silence has become too long.
// It begins anew then.
func (s *silence) unanswered(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == 0 {
		s.since = now
	}
	s.count++
	if s.count < maxUnanswered || now.Sub(s.since) < unansweredFor {
		return false
	}
	s.count = 0
	return true
}

// listen follows the outcomes of the requests of one sort, and has the client
// connect to the next server when this one does not answer. A leader that is cut off
// goes on answering what needs no majority, so an answer to the one sort says nothing
// of the other. A lost connection is no silence.
func (s *Store) listen(sort *silence, err error) {
	switch {
	case errors.Is(err, errLinkLost), !s.conn.IsConnected():
		return
	case !errors.Is(err, base.ErrUnavailable) && !errors.Is(err, base.ErrUnknown):
		sort.answered()
		return
	}
	if sort.unanswered(s.options.Clock.Now()) && len(s.conn.Servers()) > 1 {
		s.options.Logger.Warn("Coordination server does not answer, trying another", "server", s.conn.ConnectedAddr(), "error", err)
		if err := s.conn.ForceReconnect(); err != nil {
			s.options.Logger.Warn("Connecting to another coordination server failed", "error", err)
		}
	}
}
