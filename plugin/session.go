package plugin

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

const (
	// preparedBatches bounds the batches that all readers together hold ready,
	// whatever the number of partitions.
	preparedBatches = 16
	// minPause and maxPause bound the pauses before something is tried again.
	minPause = 10 * time.Millisecond
	maxPause = 5 * time.Second
)

// sessionOptions are what a session needs of its input.
type sessionOptions struct {
	limits engine.ReadLimits
	replay bool
	clock  engine.Clock
	logger *slog.Logger
}

// session reads partitions side by side, each in order, from Connect to Close. It
// is safe for concurrent use.
type session struct {
	sessionOptions
	ctx    context.Context //nolint:containedctx // the lifetime of the readers
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	// starting is held while a task starts, so that none does once close waits:
	// batches may be rejected at any time.
	starting sync.Mutex

	// ready has no room: a batch waits in the hands of its reader, which holds
	// one of the slots meanwhile.
	ready chan *delivery
	slots chan struct{}
	// open counts readers that have not reached their end and batches that were
	// not accepted; ended is closed when it reaches 0.
	open  atomic.Int64
	ended chan struct{}
}

func startSession(parts []*partition, opts sessionOptions) *session {
	s := &session{
		sessionOptions: opts, ready: make(chan *delivery), slots: make(chan struct{}, preparedBatches), ended: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.open.Store(int64(len(parts)))
	for _, p := range parts {
		r := &reader{session: s, partition: p, builder: newBuilder(p)}
		s.start(r.run)
	}
	return s
}

// next returns the next batch, or service.ErrEndOfInput when there will be none.
func (s *session) next(ctx context.Context) (*delivery, error) {
	select {
	case d := <-s.ready:
		return d, nil
	case <-s.ended:
		return nil, service.ErrEndOfInput
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// settle takes one off what is open.
func (s *session) settle() {
	if s.open.Add(-1) == 0 {
		close(s.ended)
	}
}

// acquire waits for one of the slots that bound memory.
func (s *session) acquire() bool {
	select {
	case s.slots <- struct{}{}:
		return true
	case <-s.ctx.Done():
		return false
	}
}

func (s *session) free() { <-s.slots }

// offer hands a batch over and frees the slot that its maker holds.
func (s *session) offer(d *delivery) bool {
	defer s.free()
	select {
	case s.ready <- d:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// pause waits before attempt n, from 1, is repeated.
func (s *session) pause(n int) bool {
	d := maxPause
	if n <= 9 { // beyond, the shift would exceed maxPause
		d = min(maxPause, minPause<<(n-1))
	}
	select {
	case <-s.clock.After(d):
		return true
	case <-s.ctx.Done():
		return false
	}
}

// start runs a task unless the session closes.
func (s *session) start(task func()) {
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.ctx.Err() == nil {
		s.tasks.Go(task)
	}
}

// close stops the readers. Batches that are out stay unaccepted.
func (s *session) close() {
	s.starting.Lock()
	s.cancel()
	s.starting.Unlock()
	s.tasks.Wait()
}

// trouble tells a read error once for as long as it stays the same.
type trouble struct {
	text     string
	attempts int
}

// note counts an error and logs it when it is new.
func (t *trouble) note(err error, p *partition, logger *slog.Logger) {
	if t.attempts++; t.text == err.Error() {
		return
	}
	t.text = err.Error()
	logger.Warn("reading fails and is tried again", p.label(), "error", err)
}

// over logs that reading goes on.
func (t *trouble) over(p *partition, logger *slog.Logger) {
	if t.attempts > 0 {
		logger.Info("reading goes on", p.label())
		*t = trouble{}
	}
}

// isClosing reports whether an error comes of closing.
func (s *session) isClosing(err error) bool {
	return s.ctx.Err() != nil || errors.Is(err, engine.ErrClosed)
}
