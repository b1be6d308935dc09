package natskv_test

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy stands between a client and a server and can lose the server's answers.
type proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	mode  proxyMode  // guarded by mu
	conns []net.Conn // guarded by mu
}

type proxyMode int

const (
	passing  proxyMode = iota
	silent             // what the server says is swallowed
	dropping           // the connection breaks when the server says something
)

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: listener, target: target}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target) //nolint:noctx // ends with the listener's test
			if err != nil {
				_ = client.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, client, server)
			p.mu.Unlock()
			running.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
			running.Go(func() { p.answer(client, server) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		running.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) silence() { p.set(silent) }

func (p *proxy) dropOnNextRequest() { p.set(dropping) }

func (p *proxy) set(mode proxyMode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = mode
}

// answer passes on what the server says, as the mode allows.
func (p *proxy) answer(client, server net.Conn) {
	defer client.Close() //nolint:errcheck // a test's connection
	buffer := make([]byte, 1<<16)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		mode := p.mode
		if mode == dropping {
			p.mode = passing
		}
		p.mu.Unlock()
		switch mode {
		case silent:
			continue
		case dropping:
			return
		case passing:
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
}
