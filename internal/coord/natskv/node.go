package natskv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/lakestream-go/lakestream/internal/base"
)

// examinePeriod is how often a server that takes no records is looked at again.
const examinePeriod = time.Second

// node is this process's part in a data directory: its server where it holds
// the lock, else the way to the server of who does. The client asks it for each
// connection, so a Store outlives every change of the holder.
type node struct {
	Embedded

	free func() (uint64, error)
	// lock is used by connect, then by keep, then by close, never at once.
	lock *flock.Flock

	mu     sync.Mutex
	server *embeddedServer // guarded by mu; nil where another process runs it, or none
	token  string          // guarded by mu; of the server of the latest connection
	broken error           // guarded by mu; why the server takes no records

	wake   chan struct{} // one slot: something may have changed
	stop   context.CancelFunc
	keeper sync.WaitGroup
}

func newNode(e Embedded) *node {
	return &node{
		Embedded: e,
		free:     func() (uint64, error) { return freeBytes(e.Dir) },
		lock:     flock.New(filepath.Join(e.Dir, lockFileName)),
		wake:     make(chan struct{}, 1),
		stop:     func() {},
	}
}

// begin starts looking after the server, once the node is connected. It goes on
// until close, whatever becomes of ctx.
func (n *node) begin(ctx context.Context) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	n.keeper.Go(func() { n.keep(ctx) })
}

// examine asks for a look at the server, or for one in its holder's place. It
// never blocks.
func (n *node) examine() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// keep takes the server over when its holder is gone, and starts it again when
// a write error has made it useless.
func (n *node) keep(ctx context.Context) {
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		case <-again:
		}
		again = nil
		if err := n.look(ctx); err != nil && ctx.Err() == nil {
			n.Logger.Warn("Embedded coordination server is not working", "dir", n.Dir, "error", err)
			again = n.Clock.After(examinePeriod)
		}
	}
}

func (n *node) look(ctx context.Context) error {
	server := n.running()
	if server == nil {
		return n.takeOver(ctx)
	}
	cause := server.writeError()
	if cause == nil {
		return nil
	}
	n.setBroken(cause)
	if err := n.checkReserve(); err != nil {
		return errors.Join(cause, err)
	}
	n.Logger.Info("Starting the embedded coordination server again after a write error", "error", cause)
	n.setServer(nil)
	server.stop()
	return n.takeOver(ctx)
}

// takeOver starts the server here if no other process holds the directory.
func (n *node) takeOver(ctx context.Context) error {
	if n.running() != nil {
		return nil
	}
	locked, err := n.lock.TryLock()
	if err != nil {
		return fmt.Errorf("locking it: %w", err)
	}
	if !locked {
		return nil
	}
	server, err := startServer(ctx, n.Dir, n.Prefix, n.Logger)
	if err != nil {
		return errors.Join(err, n.lock.Unlock())
	}
	n.setServer(server)
	return nil
}

// InProcessConn connects to the server of this process or of the holder. The
// client calls it with its own lock held, so it waits for nothing but a dial on
// this machine.
func (n *node) InProcessConn() (net.Conn, error) {
	if server := n.running(); server != nil {
		n.setToken(server.token)
		return server.InProcessConn()
	}
	conn, err := n.dialHolder()
	if err != nil {
		n.examine()
		return nil, fmt.Errorf("connecting to the holder of %s: %w", n.Dir, err)
	}
	return conn, nil
}

// dialHolder reads the port file anew, since each start of a server changes it.
func (n *node) dialHolder() (net.Conn, error) {
	holder, err := readPortFile(n.Dir)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(holder.URL)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", portFileName, err)
	}
	n.setToken(holder.Token)
	dialer := net.Dialer{Timeout: dialLimit}
	return dialer.DialContext(context.Background(), "tcp", address.Host)
}

// checkDisk refuses to write while the server cannot, or soon could not.
func (n *node) checkDisk() error {
	n.mu.Lock()
	broken := n.broken
	n.mu.Unlock()
	if broken != nil {
		return base.WithClass(base.ErrUnavailable, fmt.Errorf(
			"embedded server in %s takes no records until the disk has room again: %w", n.Dir, broken))
	}
	return n.checkReserve()
}

func (n *node) checkReserve() error {
	free, err := n.free()
	if err != nil {
		return base.WithClass(base.ErrUnavailable, fmt.Errorf("reading free space of %s: %w", n.Dir, err))
	}
	if free < n.ReserveBytes {
		return fmt.Errorf("%w: disk of %s has %d MiB free, the reserve is %d MiB; free some space",
			base.ErrUnavailable, n.Dir, free>>20, n.ReserveBytes>>20)
	}
	return nil
}

// close gives the directory up, so that another process can take it over.
func (n *node) close(ctx context.Context) error {
	n.stop()
	closed := make(chan error, 1)
	go func() { closed <- n.release() }()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("closing data directory %s: %w: its server is still shutting down", n.Dir, ctx.Err())
	}
}

// abandonLimit bounds the end of a server whose directory could not be opened.
const abandonLimit = 10 * time.Second

// abandon closes a node that was not opened, also when ctx is what ended it: the
// caller has nothing that it could close later.
func (n *node) abandon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonLimit)
	defer cancel()
	return n.close(ctx)
}

func (n *node) release() error {
	n.keeper.Wait()
	var err error
	if server := n.running(); server != nil {
		err = removePortFile(n.Dir) // nobody new may come while it shuts down
		n.setServer(nil)
		server.stop()
	}
	return errors.Join(err, n.lock.Close())
}

func (n *node) running() *embeddedServer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server
}

// setServer sets a server that has just started, in good order, or nil.
func (n *node) setServer(server *embeddedServer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server = server
	if server != nil {
		n.broken = nil
	}
}

func (n *node) setBroken(cause error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broken = cause
}

func (n *node) setToken(token string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.token = token
}

func (n *node) currentToken() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.token
}
