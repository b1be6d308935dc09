package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

const (
	// connectAttempts is how often Benthos's connect loop, which holds all
	// messages back, is told of a store that does not answer. Afterwards the
	// output counts as connected and refuses batches, so that a fallback gets
	// them.
	connectAttempts = 3
	// reconnectPause is the least time between attempts that batches make.
	reconnectPause = time.Second
)

// output implements service.BatchOutput.
type output struct {
	conf    config.Output
	convert converter
	pacer   *pacer
	clock   engine.Clock
	logger  *slog.Logger

	// target is nil until the engine is open and the stream exists.
	target atomic.Pointer[target]

	mu sync.Mutex
	// All below are guarded by mu.
	connection connection
	failures   int
	failed     error     // of the last attempt
	next       time.Time // of the next attempt
	closed     bool
	closeError error
}

func newOutput(conf config.Output, logger *service.Logger, clock engine.Clock) *output {
	log := newLogger(logger)
	return &output{
		conf: conf, convert: newConverter(&conf), pacer: newPacer(clock, log), clock: clock, logger: log,
		connection: connection{own: conf.Engine, logger: log},
	}
}

// Connect opens the engine, and the stream where its name is the same for all
// messages. Errors that only a change can heal are returned as often as Benthos
// asks; for others it gives up holding messages back after a few attempts.
func (o *output) Connect(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.connectLocked(ctx)
	if err == nil || refused(err) || ctx.Err() != nil || o.failures < connectAttempts {
		return connectError(err)
	}
	o.logger.Warn("batches are refused until the stores can be reached", "reason", err.Error())
	return nil
}

func (o *output) connectLocked(ctx context.Context) error {
	if o.target.Load() != nil {
		return nil
	}
	if o.closed {
		return engine.ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	t, err := o.openTarget(ctx)
	o.failed, o.next = err, o.clock.Now().Add(reconnectPause)
	if err != nil {
		o.failures++
		return err
	}
	o.failures = 0
	o.target.Store(t)
	return nil
}

func (o *output) openTarget(ctx context.Context) (*target, error) {
	if err := o.connection.open(ctx); err != nil {
		return nil, err
	}
	t := &target{engine: o.connection.engine, config: o.conf.StreamConfig, max: o.conf.MaxStreams, streams: make(map[string]*engine.Stream)}
	if o.conf.StreamName == "" {
		return t, nil
	}
	var err error
	t.static, err = t.engine.EnsureStream(ctx, o.conf.StreamName, o.conf.StreamConfig)
	return t, err
}

// reach returns the target, connecting when Connect gave up.
func (o *output) reach(ctx context.Context) (*target, error) {
	if t := o.target.Load(); t != nil {
		return t, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.target.Load() == nil && o.failed != nil && o.clock.Now().Before(o.next) {
		return nil, fmt.Errorf("connecting: %w", o.failed)
	}
	if err := o.connectLocked(ctx); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	o.logger.Info("the stores can be reached again")
	return o.target.Load(), nil
}

// WriteBatch appends a batch and returns when each of its messages is durable or
// has failed. An error for some messages is a service.BatchError with their
// indexes. Errors that match engine.ErrUnknown may have been appended all the
// same.
func (o *output) WriteBatch(ctx context.Context, messages service.MessageBatch) (err error) {
	defer recovered(&err)
	t, err := o.reach(ctx)
	if err != nil {
		return err
	}
	var failed failures
	if t.static != nil {
		err = o.write(ctx, t.static, messages, nil, &failed)
	} else {
		err = o.writeByStream(ctx, t, messages, &failed)
	}
	if err == nil {
		err = failed.of(messages)
	}
	if isRefusal(err) || failed.refused() {
		o.pause(ctx)
	}
	return err
}

// refusalPause is how long a batch is held that a fenced or deleted stream refused:
// whoever sends it again at once would only fill the log.
const refusalPause = time.Second

func (o *output) pause(ctx context.Context) {
	select {
	case <-o.clock.After(refusalPause):
	case <-ctx.Done():
	}
}

// isRefusal reports whether a stream takes nothing until somebody changes it.
func isRefusal(err error) bool {
	return errors.Is(err, engine.ErrFenced) || errors.Is(err, engine.ErrStreamPermanentlyDeleted)
}

// write appends messages to one stream: those that pick lists, or all when it is
// nil.
func (o *output) write(ctx context.Context, s *engine.Stream, messages service.MessageBatch, pick []int, failed *failures) error {
	records := takeRecords()
	defer records.giveBack()
	o.convert.records(messages, pick, s.Partitions(), engine.Millis(o.clock.Now().UnixMilli()), records)
	failed.list = append(failed.list, records.failed...)
	if len(records.batch.Logs) == 0 {
		return nil
	}
	records.batch.Urgent = o.conf.Ordered()
	if err := o.append(ctx, s, &records.batch); err != nil {
		return err
	}
	records.addFailures(failed)
	return nil
}

// append appends a batch, when its producers' windows have room for it.
func (o *output) append(ctx context.Context, s *engine.Stream, batch *engine.Batch) error {
	if !o.convert.identity.isOn() {
		return s.Append(ctx, batch)
	}
	turns, err := o.pacer.enter(ctx, s.Name(), batch)
	if err != nil {
		return err
	}
	err = s.Append(ctx, batch)
	o.pacer.leave(turns, s.Name(), batch, err)
	return err
}

// writeByStream appends each message to the stream that its name resolves to, to
// all streams at once.
func (o *output) writeByStream(ctx context.Context, t *target, messages service.MessageBatch, failed *failures) error {
	groups := o.convert.byStream(messages, failed)
	results := make([]failures, len(groups))
	var writes sync.WaitGroup
	for i := range groups {
		writes.Go(func() { o.writeGroup(ctx, t, messages, &groups[i], &results[i]) })
	}
	writes.Wait()
	for i := range results {
		failed.list = append(failed.list, results[i].list...)
	}
	return nil
}

// writeGroup appends the messages of one stream. What fails fails for these alone.
func (o *output) writeGroup(ctx context.Context, t *target, messages service.MessageBatch, g *group, failed *failures) {
	var err error
	func() {
		defer recovered(&err)
		var s *engine.Stream
		if s, err = t.stream(ctx, g.name); err == nil {
			err = o.write(ctx, s, messages, g.indexes, failed)
		}
	}()
	if err != nil {
		failed.list = failed.list[:0]
		for _, i := range g.indexes {
			failed.add(i, err)
		}
	}
}

// Close gives the engine back, once.
func (o *output) Close(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		o.target.Store(nil)
		o.closeError = o.connection.close(ctx)
	}
	return o.closeError
}
