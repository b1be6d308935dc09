package plugin

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

// streamPoll is how often the input looks for a stream that does not exist yet.
const streamPoll = 500 * time.Millisecond

// input implements service.BatchInput.
type input struct {
	conf   config.Input
	clock  engine.Clock
	logger *slog.Logger

	mu sync.Mutex
	// All below are guarded by mu.
	connection connection
	session    *session // nil until connected
	closed     bool
	closeError error
}

func newInput(conf config.Input, logger *service.Logger, clock engine.Clock) *input {
	log := newLogger(logger)
	return &input{conf: conf, clock: clock, logger: log, connection: connection{own: conf.Engine, logger: log}}
}

// Connect opens the engine, waits until every stream exists, and starts reading.
func (in *input) Connect(ctx context.Context) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return engine.ErrClosed
	}
	if in.session != nil {
		return nil
	}
	opening, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := in.connection.open(opening); err != nil {
		return connectError(err)
	}
	for _, selection := range in.conf.Streams {
		if selection.Pattern != nil {
			continue
		}
		if _, err := in.await(ctx, selection.Stream); err != nil {
			return err
		}
	}
	origin, err := in.survey(ctx)
	if err != nil {
		return connectError(err)
	}
	subscription, err := in.subscribe(ctx, origin)
	if err != nil {
		return connectError(err)
	}
	in.session = startSession(sessionOptions{
		engine: in.connection.engine, subscription: subscription, origin: origin, stopAtEnd: in.conf.StopAtEnd, inFlight: in.conf.InFlight,
		limits: engine.ReadLimits{MaxMessages: in.conf.MaxBatchMessages, MaxBytes: in.conf.MaxBatchBytes}, replay: in.conf.AutoReplayNacks,
		commitPeriod: in.conf.CommitPeriod, rebalanceTimeout: in.conf.Group.RebalanceTimeout, heartbeat: in.conf.Group.Heartbeat,
		clock: in.clock, logger: in.logger,
	})
	return nil
}

// subscribe joins the group, or begins to read alone.
func (in *input) subscribe(ctx context.Context, o *origin) (*engine.Subscription, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	subscription, err := in.connection.engine.Subscribe(ctx, in.conf.Group)
	if err != nil {
		return nil, err
	}
	if err := in.refuseUncommitted(ctx, subscription, o); err != nil {
		return nil, errors.Join(err, subscription.Close(context.WithoutCancel(ctx)))
	}
	return subscription, nil
}

// await returns a stream as soon as it exists.
func (in *input) await(ctx context.Context, name string) (*engine.Stream, error) {
	for told := false; ; told = true {
		s, err := in.connection.engine.Stream(name)
		if !errors.Is(err, engine.ErrNotFound) {
			return s, err
		}
		if !told {
			in.logger.Warn("waiting for a stream that does not exist", "stream", name)
		}
		select {
		case <-in.clock.After(streamPoll):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ReadBatch returns the next batch of any partition. The input ends when it stops
// at the end and every record was accepted.
func (in *input) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	in.mu.Lock()
	s := in.session
	in.mu.Unlock()
	if s == nil {
		return nil, nil, service.ErrNotConnected
	}
	d, err := s.next(ctx)
	if err != nil {
		return nil, nil, err
	}
	return d.messages, d.acknowledge, nil
}

// Close stops reading and gives the engine back, once. Benthos closes an input
// when everything that it handed out is accepted, or when it must not wait.
func (in *input) Close(ctx context.Context) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return in.closeError
	}
	in.closed = true
	if in.session != nil {
		in.session.close(ctx)
	}
	in.closeError = in.connection.close(ctx)
	return in.closeError
}
