package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

const (
	// connectTimeout bounds one attempt to reach the stores.
	connectTimeout = 15 * time.Second
	// refusedPause is the time between attempts that a change of the
	// configuration or of the data alone can make succeed.
	refusedPause = 10 * time.Second
)

// connection is a component's share of an engine. It is not safe for concurrent
// use.
type connection struct {
	own     *engine.Options
	logger  *slog.Logger
	engine  *engine.Engine
	release func(context.Context) error
}

// open acquires the engine, once.
func (c *connection) open(ctx context.Context) error {
	if c.engine != nil {
		return nil
	}
	opts := config.EngineOptions(c.own)
	opts.Logger = c.logger
	var err error
	c.engine, c.release, err = engine.Acquire(ctx, opts)
	return err
}

// close gives the engine back. Where this was its last user, that takes as long as
// tables need, bounded by the engine's drain_timeout: Benthos sets no deadline.
func (c *connection) close(ctx context.Context) error {
	if c.engine == nil {
		return nil
	}
	release := c.release
	c.engine, c.release = nil, nil
	err := release(ctx)
	if errors.Is(err, engine.ErrTablesBehind) {
		c.logger.Warn("everything is durable in the log, but tables are behind; status says what to do", "reason", err.Error())
		return nil
	}
	return err
}

// refused reports whether trying again unchanged fails again.
func refused(err error) bool {
	for _, class := range []error{engine.ErrInvalid, engine.ErrForeign, engine.ErrNewerFormat, engine.ErrCorrupt} {
		if errors.Is(err, class) {
			return true
		}
	}
	return false
}

// refusal is told of errors that trying again unchanged cannot heal.
var refusal struct {
	mu sync.Mutex
	// fn is guarded by mu.
	fn func(error)
}

// OnRefused makes fn be called with each error of a connecting component that only a
// change of the configuration or of the data can heal. Benthos tries such a component
// again for ever; a program may rather end. It is called by any goroutine.
func OnRefused(fn func(error)) {
	refusal.mu.Lock()
	defer refusal.mu.Unlock()
	refusal.fn = fn
}

// connectError tells Benthos how long to wait before the next attempt.
func connectError(err error) error {
	if refused(err) {
		refusal.mu.Lock()
		fn := refusal.fn
		refusal.mu.Unlock()
		if fn != nil {
			fn(err)
		}
		return service.NewErrBackOff(err, refusedPause)
	}
	return err
}

// recovered turns a panic, which would end the process, into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("writing a batch: %w: panic: %v", engine.ErrUnknown, r)
	}
}
