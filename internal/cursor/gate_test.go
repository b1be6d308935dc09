package cursor

import (
	"context"
	"sync"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// gate lets a test stop what one member asks of coordination.
type gate struct {
	coord.Documents

	mu     sync.Mutex
	dead   bool          // guarded by mu
	paused chan struct{} // guarded by mu; closed at the end of a pause; nil for none
}

// kill makes coordination unreachable until revive.
func (g *gate) kill()   { g.setDead(true) }
func (g *gate) revive() { g.setDead(false) }

func (g *gate) setDead(dead bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead = dead
}

// pause makes it silent until the returned function is called.
func (g *gate) pause() (resume func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	paused := make(chan struct{})
	g.paused = paused
	return func() {
		g.mu.Lock()
		g.paused = nil
		g.mu.Unlock()
		close(paused)
	}
}

// wait returns at the end of a pause.
func (g *gate) wait(ctx context.Context) {
	g.mu.Lock()
	paused := g.paused
	g.mu.Unlock()
	if paused != nil {
		select {
		case <-paused:
		case <-ctx.Done():
		}
	}
}

func (g *gate) pass(ctx context.Context) error {
	g.wait(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead || ctx.Err() != nil {
		return base.ErrUnavailable
	}
	return nil
}

func (g *gate) Get(ctx context.Context, key string) (coord.Document, error) {
	if err := g.pass(ctx); err != nil {
		return coord.Document{}, err
	}
	return g.Documents.Get(ctx, key)
}

func (g *gate) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (base.Revision, error) {
	if err := g.pass(ctx); err != nil {
		return 0, err
	}
	return g.Documents.Create(ctx, key, value, ttl)
}

func (g *gate) Update(ctx context.Context, key string, value []byte, at base.Revision, ttl time.Duration) (base.Revision, error) {
	if err := g.pass(ctx); err != nil {
		return 0, err
	}
	return g.Documents.Update(ctx, key, value, at, ttl)
}

func (g *gate) Delete(ctx context.Context, key string, at base.Revision) error {
	if err := g.pass(ctx); err != nil {
		return err
	}
	return g.Documents.Delete(ctx, key, at)
}

func (g *gate) List(ctx context.Context, prefix string) ([]coord.Document, error) {
	if err := g.pass(ctx); err != nil {
		return nil, err
	}
	return g.Documents.List(ctx, prefix)
}
