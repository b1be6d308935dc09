package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/lakestream-go/lakestream/engine"
)

const (
	// owedPatience is how long a message that failed holds back those that are a
	// window ahead of it. It comes again at once, unless a pipeline gave it up.
	owedPatience = 30 * time.Second
	// maxOwed bounds the messages of one producer that are remembered so.
	maxOwed = engine.ProducerWindow
)

// pacer keeps what an output has in flight within the window that a stream remembers
// of each producer: what is not acknowledged must not fall out of it, for it could
// never be appended any more. It is safe for concurrent use.
type pacer struct {
	clock  engine.Clock
	logger *slog.Logger

	mu sync.Mutex
	// senders is guarded by mu, as is all that it holds. changed is closed, and
	// replaced, when something was acknowledged or failed.
	senders map[senderKey]*sender
	changed chan struct{}
}

// senderKey names a producer of a stream.
type senderKey struct{ stream, producer string }

// sender is what of a producer is not acknowledged.
type sender struct {
	// turns are the batches in flight, or waiting, in the order of arrival.
	turns []*turn
	// owed holds when each sequence failed.
	owed map[engine.ProducerSeq]time.Time
}

// turn is one batch's part of a producer.
type turn struct {
	key       senderKey
	low, high engine.ProducerSeq
}

func newPacer(clock engine.Clock, logger *slog.Logger) *pacer {
	return &pacer{clock: clock, logger: logger, senders: make(map[senderKey]*sender), changed: make(chan struct{})}
}

// enter waits until a batch fits the windows of its producers beside what arrived
// before it and is not acknowledged. Batches wait for earlier ones only, so that none
// waits for another in a circle. Every enter without an error needs a leave.
func (p *pacer) enter(ctx context.Context, stream string, batch *engine.Batch) ([]*turn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	turns := p.arriveLocked(stream, batch)
	for {
		fits, until := p.fitsLocked(turns)
		if fits {
			return turns, nil
		}
		var expiry <-chan time.Time
		if !until.IsZero() {
			expiry = p.clock.After(until.Sub(p.clock.Now()))
		}
		changed := p.changed
		p.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-expiry:
		case <-ctx.Done():
			err = fmt.Errorf("waiting for earlier messages of a producer: %w", context.Cause(ctx))
		}
		p.mu.Lock()
		if err != nil {
			p.departLocked(turns)
			return nil, err
		}
	}
}

// arriveLocked notes a batch's range of each producer.
func (p *pacer) arriveLocked(stream string, batch *engine.Batch) []*turn {
	var turns []*turn
	for i := range batch.Logs {
		l := &batch.Logs[i]
		if l.Producer == "" || len(l.Sequences) == 0 {
			continue
		}
		key := senderKey{stream: stream, producer: l.Producer}
		at := slices.IndexFunc(turns, func(t *turn) bool { return t.key == key })
		if at < 0 {
			at = len(turns)
			turns = append(turns, &turn{key: key, low: l.Sequences[0], high: l.Sequences[0]})
			p.senderLocked(key).turns = append(p.senderLocked(key).turns, turns[at])
		}
		turns[at].low = min(turns[at].low, slices.Min(l.Sequences))
		turns[at].high = max(turns[at].high, slices.Max(l.Sequences))
	}
	return turns
}

func (p *pacer) senderLocked(key senderKey) *sender {
	s := p.senders[key]
	if s == nil {
		s = &sender{owed: make(map[engine.ProducerSeq]time.Time)}
		p.senders[key] = s
	}
	return s
}

// fitsLocked tells whether a batch may go, and else when a failed message that it
// waits for is given up, if it waits for one.
func (p *pacer) fitsLocked(turns []*turn) (fits bool, until time.Time) {
	fits = true
	for _, t := range turns {
		s := p.senders[t.key]
		for _, earlier := range s.turns[:slices.Index(s.turns, t)] {
			if ahead(t.high, earlier.low) {
				fits = false
			}
		}
		for sequence, failed := range s.owed {
			end := failed.Add(owedPatience)
			switch {
			case !ahead(t.high, sequence) || sequence >= t.low:
			case !p.clock.Now().Before(end):
				delete(s.owed, sequence)
				p.logger.Warn("a message that failed did not come again, others of its producer go on without it",
					"stream", t.key.stream, "producer", t.key.producer, "sequence", uint64(sequence))
			default:
				fits = false
				if until.IsZero() || end.Before(until) {
					until = end
				}
			}
		}
	}
	return fits, until
}

// ahead reports whether a sequence would push another one out of the window.
func ahead(high, low engine.ProducerSeq) bool { return high > low && high-low >= engine.ProducerWindow }

// leave notes what became of a batch: err is that of all of it.
func (p *pacer) leave(turns []*turn, stream string, batch *engine.Batch, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	for i := range batch.Logs {
		l := &batch.Logs[i]
		if l.Producer == "" {
			continue
		}
		s := p.senderLocked(senderKey{stream: stream, producer: l.Producer})
		failure := err
		if failure == nil {
			failure = batch.Results[i].Err
		}
		comesAgain := failure != nil && !errors.Is(failure, engine.ErrInvalid)
		for _, sequence := range l.Sequences {
			switch {
			case !comesAgain:
				delete(s.owed, sequence)
			case len(s.owed) < maxOwed:
				s.owed[sequence] = now
			}
		}
	}
	p.departLocked(turns)
}

func (p *pacer) departLocked(turns []*turn) {
	for _, t := range turns {
		s := p.senders[t.key]
		at := slices.Index(s.turns, t)
		s.turns = slices.Delete(s.turns, at, at+1)
		if len(s.turns) == 0 && len(s.owed) == 0 {
			delete(p.senders, t.key)
		}
	}
	close(p.changed)
	p.changed = make(chan struct{})
}
