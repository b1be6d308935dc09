package plugin

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

const (
	// preparedBatches bounds the batches that all partitions together hold
	// ready, whatever their number; as many again may be held for a second
	// delivery, and as many are read ahead at most.
	preparedBatches = 16
	// aheadBytes bounds what is read ahead, by the largest batch that is allowed:
	// of one batch at least, and a larger record comes alone.
	aheadBytes = 16 << 20
	// minPause and maxPause bound the pauses before something is tried again.
	minPause = 10 * time.Millisecond
	maxPause = 5 * time.Second
)

// sessionOptions are what a session needs of its input.
type sessionOptions struct {
	engine       *engine.Engine
	subscription *engine.Subscription
	origin       *origin
	stopAtEnd    bool
	// inFlight bounds the unaccepted batches of one partition.
	inFlight int
	limits   engine.ReadLimits
	replay   bool

	commitPeriod, rebalanceTimeout, heartbeat time.Duration

	clock  engine.Clock
	logger *slog.Logger
}

// session reads the partitions that its subscription hands out side by side, each
// in order, from Connect to Close. It is safe for concurrent use.
type session struct {
	sessionOptions
	ctx    context.Context //nolint:containedctx // the lifetime of the readers
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	// starting is held while a task starts, so that none does once close waits:
	// batches may be rejected at any time.
	starting sync.Mutex

	// ready has no room: a batch waits in the hands of its reader, which holds
	// one of the slots meanwhile, or one of the replays for a second delivery.
	// Those are apart: a first delivery may wait until a second was accepted. A
	// batch that is read ahead waits for its turn, with one of ahead, which nobody
	// waits for: it keeps no other partition from being read.
	ready                 chan *delivery
	slots, replays, ahead chan struct{}
	// ended is closed when every partition has reached its end and all of it
	// was accepted; failed when there is nothing more to be had.
	ended, failed chan struct{}

	mu sync.Mutex
	// All below are guarded by mu.
	held map[engine.Place]*partition
	// unsettled are the partitions that have not reached their ends, nil when
	// there are none.
	unsettled map[engine.Place]engine.Offset
	failure   error
}

func startSession(opts sessionOptions) *session {
	s := &session{
		sessionOptions: opts, ready: make(chan *delivery),
		slots: make(chan struct{}, preparedBatches), replays: make(chan struct{}, preparedBatches),
		ahead: make(chan struct{}, batchesAhead(opts.limits.MaxBytes)),
		ended: make(chan struct{}), failed: make(chan struct{}), held: make(map[engine.Place]*partition),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if s.stopAtEnd {
		s.unsettled = maps.Clone(s.origin.heads)
		if len(s.unsettled) == 0 {
			close(s.ended)
		}
		s.start(s.watchOthers)
	}
	s.start(s.assign)
	s.start(s.commit)
	return s
}

// batchesAhead returns how many batches of at most so many bytes all partitions
// together may read ahead.
func batchesAhead(batchBytes int64) int {
	return int(min(max(aheadBytes/max(batchBytes, 1), 1), preparedBatches))
}

// assign starts the reading of each partition that the subscription hands out.
func (s *session) assign() {
	for {
		claim, err := s.subscription.Next(s.ctx)
		if err != nil {
			if s.ctx.Err() == nil {
				s.fail(err)
			}
			return
		}
		p := newPartition(s, claim)
		s.mu.Lock()
		s.held[p.place] = p
		s.mu.Unlock()
		s.start(func() {
			p.run()
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.held[p.place] == p {
				delete(s.held, p.place)
			}
		})
	}
}

// commit makes durable what was accepted, now and then.
func (s *session) commit() {
	for {
		select {
		case <-s.clock.After(s.commitPeriod):
		case <-s.ctx.Done():
			return
		}
		for _, p := range s.partitions() {
			p.claim.Cursor().SetStalled(p.window.stalled(s.rebalanceTimeout))
			err := p.claim.Commit(s.ctx)
			if err != nil && s.ctx.Err() == nil && !errors.Is(err, engine.ErrClosed) && !errors.Is(err, engine.ErrFenced) {
				s.logger.Warn("committing fails and is tried again", label(p.place), "error", err)
				break // so would the others
			}
		}
	}
}

func (s *session) partitions() []*partition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.held))
}

// watchOthers looks whether other members have brought their partitions to the end,
// and whether partitions are gone, until all are settled.
func (s *session) watchOthers() {
	for {
		select {
		case <-s.clock.After(s.heartbeat):
		case <-s.ended:
			return
		case <-s.ctx.Done():
			return
		}
		for place, end := range s.elsewhere() {
			next, _, err := s.subscription.Committed(s.ctx, place)
			if err == nil && next >= end || !s.engine.Exists(place) {
				s.settle(place)
			}
		}
	}
}

// elsewhere returns the unsettled partitions that this session does not read.
func (s *session) elsewhere() map[engine.Place]engine.Offset {
	s.mu.Lock()
	defer s.mu.Unlock()
	places := maps.Clone(s.unsettled)
	maps.DeleteFunc(places, func(place engine.Place, _ engine.Offset) bool { return s.held[place] != nil })
	return places
}

// endOf returns where to stop in a partition. When the input stops at the end, one
// that came later is not read.
func (s *session) endOf(place engine.Place) engine.Offset {
	if !s.stopAtEnd {
		return endless
	}
	return s.origin.heads[place]
}

// settle notes that all of a partition was accepted up to its end.
func (s *session) settle(place engine.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.unsettled[place]; !ok {
		return
	}
	if delete(s.unsettled, place); len(s.unsettled) == 0 {
		close(s.ended)
	}
}

// fail ends the session for good.
func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
	close(s.failed)
}

// next returns the next batch, or service.ErrEndOfInput when there will be none.
func (s *session) next(ctx context.Context) (*delivery, error) {
	select {
	case d := <-s.ready:
		return d, nil
	case <-s.ended:
		return nil, service.ErrEndOfInput
	case <-s.failed:
		// Benthos asks again and again.
		select {
		case <-s.clock.After(refusedPause):
		case <-ctx.Done():
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, s.failure
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// acquire waits for one of the slots that bound memory.
func (s *session) acquire(ctx context.Context, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// offer hands a batch over and frees the slot that its maker holds.
func (s *session) offer(ctx context.Context, d *delivery, slots chan struct{}) bool {
	defer func() { <-slots }()
	select {
	case s.ready <- d:
		return true
	case <-ctx.Done():
		return false
	}
}

// pause waits before attempt n, from 1, is repeated.
func (s *session) pause(ctx context.Context, n int) bool {
	d := maxPause
	if n <= 9 { // beyond, the shift would exceed maxPause
		d = min(maxPause, minPause<<(n-1))
	}
	select {
	case <-s.clock.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// start runs a task unless the session closes; it returns whether it does.
func (s *session) start(task func()) bool {
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.tasks.Go(task)
	return true
}

// close stops the readers, commits what was accepted, and leaves the group. Batches
// that are out stay unaccepted.
func (s *session) close(ctx context.Context) {
	s.starting.Lock()
	s.cancel()
	s.starting.Unlock()
	s.tasks.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := s.subscription.Close(ctx); err != nil {
		s.logger.Warn("the group could not be left; its partitions move when the session times out", "error", err)
	}
}

// trouble tells a read error once for as long as it stays the same.
type trouble struct {
	text     string
	attempts int
}

// note counts an error and logs it when it is new.
func (t *trouble) note(err error, place engine.Place, logger *slog.Logger) {
	if t.attempts++; t.text == err.Error() {
		return
	}
	t.text = err.Error()
	logger.Warn("reading fails and is tried again", label(place), "error", err)
}

// over logs that reading goes on.
func (t *trouble) over(place engine.Place, logger *slog.Logger) {
	if t.attempts > 0 {
		logger.Info("reading goes on", label(place))
		*t = trouble{}
	}
}
