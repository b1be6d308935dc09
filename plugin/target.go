package plugin

import (
	"context"
	"fmt"
	"sync"

	"github.com/lakestream-go/lakestream/engine"
)

// target is where an output writes: one stream, or as many as its messages name,
// up to a bound. It is safe for concurrent use.
type target struct {
	engine *engine.Engine
	static *engine.Stream // nil when messages name their streams
	config engine.StreamConfig
	max    int

	// opening lets one caller at a time create a stream, without holding up
	// those that write to open ones.
	opening sync.Mutex
	mu      sync.RWMutex
	// streams, by the text that named them, is guarded by mu.
	streams map[string]*engine.Stream
}

// stream returns the stream of this name, creating it when it is absent.
func (t *target) stream(ctx context.Context, name string) (*engine.Stream, error) {
	if s := t.known(name); s != nil {
		return s, nil
	}
	t.opening.Lock()
	defer t.opening.Unlock()
	if s := t.known(name); s != nil {
		return s, nil
	}
	if len(t.streams) >= t.max { // changed under opening only
		return nil, fmt.Errorf("stream %q would be one more than max_streams (%d): %w", name, t.max, engine.ErrInvalid)
	}
	s, err := t.engine.EnsureStream(ctx, name, t.config)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams[name] = s
	return s, nil
}

func (t *target) known(name string) *engine.Stream {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.streams[name]
}
