package natskv

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go"
)

// link follows the state of the connection.
type link struct {
	root context.Context // never ends

	mu         sync.Mutex
	alive      context.Context    // guarded by mu; ends when the connection is lost
	end        context.CancelFunc // guarded by mu; ends alive
	reconnects uint64             // guarded by mu
	reported   string             // guarded by mu; the latest error, until a connection is made
	denied     error              // guarded by mu; the latest refusal of a subject
}

// newLink takes the values of ctx, not its end.
func newLink(ctx context.Context) *link {
	l := &link{root: context.WithoutCancel(ctx)}
	l.alive, l.end = context.WithCancel(l.root)
	return l
}

// context returns one that ends when the connection of now is lost.
func (l *link) context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alive
}

func (l *link) lost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
	l.alive, l.end = context.WithCancel(l.root)
}

func (l *link) restored() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reconnects++
	l.reported = ""
}

// report takes an error that the client learned of by itself, and reports whether
// it is news: attempts to connect fail many times a second for one reason.
func (l *link) report(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, nats.ErrPermissionViolation) {
		l.denied = err
	}
	news := l.reported != err.Error()
	l.reported = err.Error()
	return news
}

// denial returns the latest refusal of a subject, or nil. A request that was refused
// so gets no answer.
func (l *link) denial() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.denied
}

func (l *link) count() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reconnects
}

// request derives the context of one request: it ends with ctx, after the
// timeout, and as soon as the connection is lost, since no answer can come then.
func (s *Store) request(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, timeout := context.WithTimeout(ctx, s.options.Timeout)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.link.context(), func() { cancel(errLinkLost) })
	return ctx, func() {
		stop()
		cancel(nil)
		timeout()
	}
}
