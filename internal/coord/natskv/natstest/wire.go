package natstest

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// wire passes on what is said on connections to one address. While it is cut, what
// is said is lost, though the connections stand.
type wire struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu    sync.Mutex
	dead  bool       // guarded by mu
	conns []net.Conn // guarded by mu
}

func startWire(t *testing.T, target string) *wire {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &wire{listener: listener, target: target}
	w.running.Go(w.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		w.hangUp()
		w.running.Wait()
	})
	return w
}

func (w *wire) address() string { return w.listener.Addr().String() }

func (w *wire) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.target) //nolint:noctx // on this machine, refused or done at once
		if err != nil {
			_ = near.Close()
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, near, far)
		w.mu.Unlock()
		w.running.Go(func() { w.pass(near, far) })
		w.running.Go(func() { w.pass(far, near) })
	}
}

func (w *wire) pass(from, to net.Conn) {
	defer from.Close() //nolint:errcheck // nothing is written by its end
	defer to.Close()   //nolint:errcheck // both ends go together
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		w.mu.Lock()
		dead := w.dead
		w.mu.Unlock()
		if dead {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (w *wire) cut() { w.set(true) }

// mend lets new connections speak; on the old ones something is missing.
func (w *wire) mend() {
	w.set(false)
	w.hangUp()
}

func (w *wire) set(dead bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = dead
}

func (w *wire) hangUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}
