package natskv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// startLimit bounds the start of the server, which reads its files back.
	startLimit = 30 * time.Second
	// Limits of the embedded server. Its streams are bounded by the disk, so
	// the store's limit only has to be out of the way.
	maxMemoryBytes = 64 << 20
	maxStoreBytes  = 1 << 40
	maxConnections = 256
	// leasePrefix starts the keys of documents that a connection keeps alive.
	leasePrefix = "lease."
)

// embeddedServer is a running NATS server over a data directory.
type embeddedServer struct {
	*server.Server

	token string
}

// startServer runs a server over dir/nats, which the caller must have locked.
// It returns once the server answers, every lease of its past is gone and the
// port file lets others in. After an error nothing runs.
func startServer(ctx context.Context, dir, prefix string, logger *slog.Logger) (_ *embeddedServer, err error) {
	if err := removePortFile(dir); err != nil { // it names a server that is gone
		return nil, err
	}
	store := filepath.Join(dir, natsDirName)
	if err := os.MkdirAll(store, 0o700); err != nil {
		return nil, fmt.Errorf("creating server directory: %w", err)
	}
	if err := finishCreations(store); err != nil {
		return nil, err
	}
	token := rand.Text()
	log := &serverLogger{logger: logger}
	srv, err := server.NewServer(serverOptions(store, token))
	if err != nil {
		return nil, fmt.Errorf("configuring embedded server: %w", err)
	}
	srv.SetLoggerV2(log, false, false, false)
	defer func() {
		if err != nil {
			srv.Shutdown()
			srv.WaitForShutdown()
		}
	}()
	srv.Start()
	if err := log.failure(); err != nil {
		return nil, fmt.Errorf("starting embedded server: %w", err)
	}
	if !srv.ReadyForConnections(startLimit) {
		return nil, errors.New("starting embedded server: it does not accept connections")
	}
	log.running.Store(true)
	started := &embeddedServer{Server: srv, token: token}
	if err := started.clearLeases(ctx, prefix); err != nil {
		return nil, err
	}
	address := portFile{URL: srv.ClientURL(), Token: token, PID: os.Getpid()}
	if err := writePortFile(dir, address); err != nil {
		return nil, err
	}
	return started, nil
}

func serverOptions(store, token string) *server.Options {
	return &server.Options{
		ServerName:         "lakestream",
		Host:               "127.0.0.1",
		Port:               server.RANDOM_PORT,
		NoSigs:             true,
		Authorization:      token,
		MaxConn:            maxConnections,
		JetStream:          true,
		StoreDir:           store,
		SyncAlways:         true, // the default syncs every two minutes
		JetStreamMaxMemory: maxMemoryBytes,
		JetStreamMaxStore:  maxStoreBytes,
	}
}

// clearLeases deletes all leases. The server has just started, so each belongs
// to a connection that is gone: a restart after a crash must not wait for the
// dead process's leases, and a live process that held one learns of the loss at
// its next renewal. Nobody else is connected yet: the token is not published.
func (s *embeddedServer) clearLeases(ctx context.Context, prefix string) error {
	conn, err := nats.Connect("", nats.InProcessServer(s), nats.Token(s.token), nats.NoReconnect())
	if err != nil {
		return fmt.Errorf("connecting to embedded server: %w", err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return fmt.Errorf("opening JetStream: %w", err)
	}
	config := documentsBucket(prefix, 1)
	stream, err := js.Stream(ctx, config.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clearing leases: %w", err)
	}
	leases := "$KV." + prefix + "." + leasePrefix + ">"
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(leases)); err != nil {
		return fmt.Errorf("clearing leases: %w", err)
	}
	return nil
}

// writeError returns why the server's files take no more records, or nil. The
// server stays in that state until it is started again, even when the cause,
// mostly a full disk, is long gone.
func (s *embeddedServer) writeError() error {
	health := s.Healthz(&server.HealthzOptions{Details: true})
	for _, e := range health.Errors {
		if strings.Contains(e.Error, "write error") {
			return errors.New(e.Error)
		}
	}
	return nil
}

func (s *embeddedServer) stop() {
	s.Shutdown()
	s.WaitForShutdown()
}
