package crash

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// Server is a coordination server in a process of its own, as an operator runs one,
// which keeps its address and its data when it is started again. It is not safe for
// concurrent use.
type Server struct {
	binary, config, address string
	process                 *Process
}

// NewServer prepares a server that keeps its data in a directory. binary is the path
// of its program.
func NewServer(ctx context.Context, binary, dir string) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("finding a free port: %w", err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, fmt.Errorf("finding a free port: %w", err)
	}
	text := fmt.Sprintf("listen: %q\njetstream { store_dir: %q, sync_interval: always }\n", address, filepath.Join(dir, "store"))
	config := filepath.Join(dir, "server.conf")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("configuring the server: %w", err)
	}
	return &Server{binary: binary, config: config, address: address}, nil
}

// URL returns where clients find the server.
func (s *Server) URL() string { return "nats://" + s.address }

// Start starts the server and waits until it can be reached, or ctx ends.
func (s *Server) Start(ctx context.Context) (err error) {
	if s.process, err = Run(context.WithoutCancel(ctx), []string{s.binary, "-c", s.config}); err != nil {
		return err
	}
	var dialer net.Dialer
	return await(ctx, func() (bool, error) {
		connection, err := dialer.DialContext(ctx, "tcp", s.address)
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}
		return true, connection.Close()
	})
}

// Stop ends the server and waits for that: by SIGKILL when hard, or else as its
// operator would. One that does not run stays so.
func (s *Server) Stop(hard bool) {
	if s.process == nil {
		return
	}
	if hard {
		_ = s.process.Kill() // it may have ended by itself
	} else {
		_ = s.process.Terminate()
	}
	s.process.Wait()
	s.process = nil
}
