package natskv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/lakestream-go/lakestream/internal/base"
)

const (
	defaultReserve  = 64 << 20
	defaultJoinWait = 10 * time.Second
	joinPoll        = 50 * time.Millisecond
	// dialLimit bounds connecting to a process on the same machine.
	dialLimit = 2 * time.Second
)

// Embedded describes a data directory whose holder runs the server.
type Embedded struct {
	Options

	// Dir is the data directory, created when absent. It must not lie on a
	// network file system.
	Dir string
	// ReserveBytes is how much of the disk stays free: records are refused
	// before a full disk stops the server. 0 means 64 MiB.
	ReserveBytes uint64
	// JoinWait is how long to wait for a holder that does not answer. 0
	// means 10 s.
	JoinWait time.Duration
}

// OpenEmbedded opens the coordination in a data directory. The first process
// runs the server there; a later one connects to it and takes lock and server
// over when the first goes away, in which case the Store goes on and Reconnects
// grows. At each start of the server all leases are gone.
//
// A directory that cannot be used is ErrInvalid and left as it was. A holder
// that does not answer within JoinWait is ErrUnavailable; the text names it.
func OpenEmbedded(ctx context.Context, e Embedded) (*Store, error) {
	options, err := e.Options.withDefaults()
	if err != nil {
		return nil, err
	}
	e.Options = options
	if e.ReserveBytes == 0 {
		e.ReserveBytes = defaultReserve
	}
	if e.JoinWait <= 0 {
		e.JoinWait = defaultJoinWait
	}
	if err := prepareDir(e.Dir); err != nil {
		if err = openError(e.Dir, err); !errors.Is(err, base.ErrUnavailable) {
			err = base.WithClass(base.ErrInvalid, err)
		}
		return nil, err
	}
	n := newNode(e)
	l := newLink(ctx)
	conn, err := n.connect(ctx, l)
	if err != nil {
		return nil, errors.Join(err, n.abandon(ctx))
	}
	n.begin(ctx)
	label := "embedded NATS in " + e.Dir
	s := &Store{options: e.Options, replicas: 1, label: label, link: l, node: n, conn: conn}
	// The holder may be going away just now, and this process take over.
	s, err = newStore(ctx, s, e.JoinWait)
	if err != nil {
		return nil, errors.Join(err, n.abandon(ctx))
	}
	return s, nil
}

// connect takes the directory, or reaches who holds it, within JoinWait.
func (n *node) connect(ctx context.Context, l *link) (*nats.Conn, error) {
	settings := append(connectOptions(n.Options, l, n.examine),
		nats.InProcessServer(n),
		nats.TokenHandler(n.currentToken),
		nats.IgnoreDiscoveredServers(),
		nats.Timeout(dialLimit),
	)
	deadline := n.Clock.After(n.JoinWait)
	for {
		if err := n.takeOver(ctx); err != nil {
			return nil, openError(n.Dir, err)
		}
		conn, err := nats.Connect("", settings...)
		if err == nil {
			return conn, nil
		}
		select {
		case <-n.Clock.After(joinPoll):
		case <-ctx.Done():
			return nil, n.unreachable(errors.Join(err, ctx.Err()))
		case <-deadline:
			return nil, n.unreachable(err)
		}
	}
}

// openError classes why a directory that can be used could not be opened: a full
// disk may have room later.
func openError(dir string, err error) error {
	err = fmt.Errorf("opening data directory %s: %w", dir, err)
	if errors.Is(err, syscall.ENOSPC) {
		return base.WithClass(base.ErrUnavailable, err)
	}
	return err
}

func (n *node) unreachable(cause error) error {
	holder := "another process"
	if p, err := readPortFile(n.Dir); err == nil {
		holder = fmt.Sprintf("process %d", p.PID)
	}
	return base.WithClass(base.ErrUnavailable, fmt.Errorf(
		"data directory %s is held by %s, whose server does not answer; wait for it, end it, "+
			"or use another directory: %w", n.Dir, holder, cause))
}

// prepareDir creates the directory when absent and refuses what cannot serve.
func prepareDir(dir string) error {
	if err := usableDir(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating it: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockFileName), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // a fixed name in it
	if err != nil {
		return fmt.Errorf("writing in it: %w", err)
	}
	return lock.Close()
}
