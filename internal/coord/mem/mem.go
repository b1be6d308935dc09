// Package mem keeps the coordination of a cluster in memory: for tests, and for
// the simulator, which opens several Stores on one Server as its instances.
//
// It starts no goroutine and takes its time from a clock, so the same calls give
// the same results: when Put returns, the record lies in the channel of every
// watch. A watch that is not drained for long is interrupted, as a server does
// with a slow consumer. Nothing is durable beyond the Server value.
package mem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// Server holds what the instances of one cluster share. It is safe for
// concurrent use.
type Server struct {
	clock base.Clock

	mu        sync.Mutex
	logs      map[string]*history // guarded by mu
	documents map[string]document // guarded by mu
	revision  base.Revision       // guarded by mu; of the last change of any document
}

// NewServer returns an empty cluster whose time is told by clock.
func NewServer(clock base.Clock) *Server {
	return &Server{clock: clock, logs: map[string]*history{}, documents: map[string]document{}}
}

// Open returns the view of one more instance. Name shows in Store.String.
func (s *Server) Open(name string) *Store {
	return &Store{server: s, name: name}
}

// Stray appends a record to a log as a foreign client would: bytes of its own,
// or with nil data the marker that deleting the key leaves behind.
func (s *Server) Stray(log string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history(log).append(base.MillisOf(s.clock.Now()), data)
}

// history returns the log of this name, which exists from now on. It needs mu.
func (s *Server) history(name string) *history {
	h, ok := s.logs[name]
	if !ok {
		h = &history{first: 1}
		s.logs[name] = h
	}
	return h
}

// Store is the connection of one instance to a Server. It implements
// coord.Store; an operation under an ended context is refused as unavailable.
type Store struct {
	server *Server
	name   string

	closed     bool   // guarded by server.mu
	reconnects uint64 // guarded by server.mu
}

var _ coord.Store = (*Store)(nil)

// Log opens a commit log, creating it empty when absent.
func (s *Store) Log(ctx context.Context, name string) (coord.CommitLog, error) {
	if err := coord.CheckLogName(name); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("opening log %s: %w", name, err)
	}
	defer s.server.mu.Unlock()
	return &commitLog{store: s, history: s.server.history(name)}, nil
}

// LogFrom creates a commit log whose first record gets revision first.
func (s *Store) LogFrom(ctx context.Context, name string, first base.Revision) (coord.CommitLog, error) {
	if err := errors.Join(coord.CheckLogName(name), coord.CheckFirst(first)); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("creating log %s: %w", name, err)
	}
	defer s.server.mu.Unlock()
	h, ok := s.server.logs[name]
	if !ok {
		h = &history{first: first}
		s.server.logs[name] = h
	}
	if len(h.entries) > 0 || h.first != first {
		return nil, fmt.Errorf("creating log %s from revision %d: %w: its next revision is %d",
			name, first, base.ErrExists, h.next())
	}
	return &commitLog{store: s, history: h}, nil
}

// Documents returns the documents of the Server.
func (s *Store) Documents() coord.Documents { return documents{store: s} }

// Reconnects counts the calls of Interrupt.
func (s *Store) Reconnects() uint64 {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	return s.reconnects
}

// Interrupt acts as a lost and restored connection: the watches of this
// instance close and Reconnects grows. Records are untouched.
func (s *Store) Interrupt() {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.reconnects++
	s.endWatches()
}

// String names the instance.
func (s *Store) String() string { return "mem:" + s.name }

// Close ends the watches of this instance; its further calls get ErrClosed.
// The Server and other instances live on. It always succeeds.
func (s *Store) Close(context.Context) error {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.closed = true
	s.endWatches()
	return nil
}

// endWatches closes every watch of this instance. It needs server.mu.
func (s *Store) endWatches() {
	for _, h := range s.server.logs {
		for _, w := range slices.Clone(h.watches) { // end takes them out
			if w.store == s {
				w.end()
			}
		}
	}
}

// enter locks the server for one operation, or refuses it.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return base.WithClass(base.ErrUnavailable, err)
	}
	s.server.mu.Lock()
	if s.closed {
		s.server.mu.Unlock()
		return fmt.Errorf("coordination %s: %w", s, base.ErrClosed)
	}
	return nil
}
