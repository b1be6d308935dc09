package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

// connectTimeout bounds one attempt to connect, which Benthos repeats.
const connectTimeout = 15 * time.Second

// input implements service.BatchInput.
type input struct {
	conf   config.KafkaInput
	clock  engine.Clock
	logger *service.Logger
	window int64 // of each consumer

	mu sync.Mutex
	// All below are guarded by mu.
	consumer *consumer // nil until connected
	closed   bool
}

// newInput refuses, as engine.ErrInvalid, what the client would refuse whenever it
// connects: Benthos repeats Connect for ever.
func newInput(conf config.KafkaInput, logger *service.Logger, clock engine.Clock) (*input, error) {
	in := &input{conf: conf, clock: clock, logger: logger, window: engine.ProducerWindow}
	if err := kgo.ValidateOpts(newConsumer(&in.conf, logger, clock, in.window).options()...); err != nil {
		return nil, fmt.Errorf("configuring the client: %w: %w", engine.ErrInvalid, err)
	}
	return in, nil
}

// Connect connects to the brokers. After ReadBatch returned service.ErrNotConnected
// it begins again at the committed offsets.
func (in *input) Connect(ctx context.Context) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return engine.ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if in.consumer != nil {
		if err := in.consumer.close(ctx); err != nil {
			in.logger.Warnf("ending a connection that failed: %v", err)
		}
		in.consumer = nil
	}
	c := newConsumer(&in.conf, in.logger, in.clock, in.window)
	if err := c.connect(ctx); err != nil {
		return err
	}
	in.consumer = c
	return nil
}

// ReadBatch returns the next batch of any partition.
func (in *input) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	in.mu.Lock()
	c := in.consumer
	in.mu.Unlock()
	if c == nil {
		return nil, nil, service.ErrNotConnected
	}
	b, err := c.next(ctx)
	if err != nil {
		return nil, nil, err
	}
	return b.messages(), c.acknowledge(b), nil
}

// Close commits what was accepted and leaves the group, once. Benthos closes an
// input when everything that it handed out is accepted, or when it must not wait.
func (in *input) Close(ctx context.Context) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	if in.consumer == nil {
		return nil
	}
	c := in.consumer
	in.consumer = nil
	return c.close(ctx)
}
