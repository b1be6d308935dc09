package engine

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/lakestream-go/lakestream/internal/base"
)

// registry holds the engines that components of this process share.
var registry = struct {
	mu sync.Mutex
	// engines is guarded by mu.
	engines map[string]*sharedEngine
}{engines: make(map[string]*sharedEngine)}

// sharedEngine is opened and closed under its own lock, so that components of
// other engines need not wait.
type sharedEngine struct {
	// lock holds one token while the engine is neither being opened nor closed;
	// who has taken it may use the rest.
	lock chan struct{}
	opts Options
	// engine is nil while refs is 0.
	engine *Engine
	refs   int
}

// Acquire returns the engine of this process for the cluster that the options
// name, opening it for the first caller. Callers whose options differ in any
// other field get ErrInvalid, which names the field. When ctx ends while the engine
// is being opened or closed for another caller, that is ErrUnavailable. The engine
// is closed when the last caller has released it; calling release again does
// nothing.
func Acquire(ctx context.Context, opts Options) (e *Engine, release func(context.Context) error, err error) {
	opts = opts.WithDefaults()
	s := sharedFor(opts.identity())
	select {
	case <-s.lock:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("waiting for the engine of this process: %w", base.WithClass(base.ErrUnavailable, ctx.Err()))
	}
	defer s.unlock()
	if s.engine == nil {
		if s.engine, err = Open(ctx, opts); err != nil {
			return nil, nil, err
		}
		s.opts = opts
	} else if field := firstDifference(s.opts, opts); field != "" {
		return nil, nil, fmt.Errorf("components of one process share the engine on %s and must agree; they differ in %s: %w",
			s.engine.coordination, field, base.ErrInvalid) // not by its identity, which may hold a password
	}
	s.refs++
	var once sync.Once
	release = func(ctx context.Context) (err error) {
		once.Do(func() { err = s.release(ctx) })
		return err
	}
	return s.engine, release, nil
}

func sharedFor(identity string) *sharedEngine {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	s := registry.engines[identity]
	if s == nil {
		s = &sharedEngine{lock: make(chan struct{}, 1)}
		s.unlock()
		registry.engines[identity] = s
	}
	return s
}

func (s *sharedEngine) unlock() { s.lock <- struct{}{} }

// release waits for who opens or closes the engine just now, whatever becomes of
// ctx: a user that stayed counted would keep the engine open for ever.
func (s *sharedEngine) release(ctx context.Context) error {
	<-s.lock
	defer s.unlock()
	if s.refs--; s.refs > 0 {
		return nil
	}
	e := s.engine
	s.engine = nil
	return e.Close(ctx)
}

// firstDifference names the first field in which two options differ, with both
// values, as "wal.linger (10ms and 20ms)", but for lists and maps: a password may
// be in those.
func firstDifference(a, b Options) string {
	a.Logger, b.Logger = nil, nil
	a.CrashPoint, b.CrashPoint = nil, nil
	a.NATS.TLS.Load, b.NATS.TLS.Load = nil, nil // their sources are compared
	return difference("", reflect.ValueOf(a), reflect.ValueOf(b))
}

func difference(path string, a, b reflect.Value) string {
	for i := range a.NumField() {
		if !a.Type().Field(i).IsExported() {
			continue
		}
		name := strings.TrimPrefix(path+"."+snakeCase(a.Type().Field(i).Name), ".")
		x, y := a.Field(i), b.Field(i)
		if x.Kind() == reflect.Struct {
			if field := difference(name, x, y); field != "" {
				return field
			}
			continue
		}
		switch {
		case reflect.DeepEqual(x.Interface(), y.Interface()):
		case x.Kind() == reflect.Map, x.Kind() == reflect.Slice:
			return name
		default:
			return fmt.Sprintf("%s (%v and %v)", name, x.Interface(), y.Interface())
		}
	}
	return ""
}

// snakeCase turns a field's Go name into its name in a configuration.
func snakeCase(name string) string {
	var b strings.Builder
	for i, r := range name {
		upper := 'A' <= r && r <= 'Z'
		if upper && i > 0 && name[i-1] >= 'a' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// closeHooks are told of each engine that drained.
var closeHooks = struct {
	mu sync.Mutex
	// fns is guarded by mu.
	fns []func(Status, error)
}{}

// OnClose makes fn be called with the last status of every engine of this process
// that closes, and with what Close then returns of its draining.
func OnClose(fn func(Status, error)) {
	closeHooks.mu.Lock()
	defer closeHooks.mu.Unlock()
	closeHooks.fns = append(closeHooks.fns, fn)
}

func reportClosing(ctx context.Context, e *Engine, drained error) {
	closeHooks.mu.Lock()
	fns := slices.Clone(closeHooks.fns)
	closeHooks.mu.Unlock()
	if len(fns) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	status := e.Status(ctx)
	for _, fn := range fns {
		fn(status, drained)
	}
}
