package natskv_test

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/coord/natskv"
)

const prefix = "lake"

func TestMain(m *testing.M) {
	if child := os.Getenv(childVariable); child != "" {
		os.Exit(beChild(child))
	}
	goleak.VerifyTestMain(m)
}

// external is a server that runs as an operator would run it.
type external struct {
	options *server.Options
	server  *server.Server
}

func startExternal(t *testing.T) *external {
	t.Helper()
	return startWith(t, &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: t.TempDir(), SyncAlways: true,
	})
}

func startWith(t *testing.T, options *server.Options) *external {
	t.Helper()
	e := &external{options: options}
	e.start(t)
	address, ok := e.server.Addr().(*net.TCPAddr)
	require.True(t, ok)
	e.options.Port = address.Port // where it comes back after a restart
	t.Cleanup(e.stop)
	return e
}

func (e *external) start(t *testing.T) {
	t.Helper()
	s, err := server.NewServer(e.options.Clone())
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(10*time.Second))
	e.server = s
}

func (e *external) stop() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// connect returns a client of the server that knows nothing of this package.
func (e *external) connect(t *testing.T) jetstream.JetStream {
	t.Helper()
	return foreign(t, e.server)
}

func (e *external) open(t *testing.T) *natskv.Store {
	t.Helper()
	s, err := natskv.Open(t.Context(), natskv.External{
		Options: natskv.Options{Prefix: prefix, Name: t.Name()}, URLs: []string{e.server.ClientURL()},
	})
	require.NoError(t, err)
	closeAtEnd(t, s)
	return s
}

func foreign(t *testing.T, s *server.Server, options ...nats.Option) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(s.ClientURL(), options...)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	return js
}

func closeAtEnd(t *testing.T, s coord.Store) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		require.NoError(t, s.Close(ctx))
	})
}

// stray does to a log what any client of the server could do.
func stray(t *testing.T, js jetstream.JetStream, log string, data []byte) {
	t.Helper()
	strayIn(t, js, prefix+"-"+log, data)
}

func strayIn(t *testing.T, js jetstream.JetStream, bucket string, data []byte) {
	t.Helper()
	kv, err := js.KeyValue(t.Context(), bucket)
	require.NoError(t, err)
	if data == nil {
		require.NoError(t, kv.Delete(t.Context(), "commit"))
		return
	}
	_, err = kv.Put(t.Context(), "commit", data)
	require.NoError(t, err)
}

// pass lets real time go by, with what a server may be late to notice it.
func pass(_ *testing.T, d time.Duration) { time.Sleep(d + d/8) }

func TestAcceptanceExternal(t *testing.T) {
	coordtest.Run(t, func(t *testing.T) coordtest.Cluster {
		e := startExternal(t)
		return coordtest.Cluster{
			Open:      func(t *testing.T) coord.Store { return e.open(t) },
			Interrupt: func(t *testing.T) { e.stop(); e.start(t) },
			Pass:      pass,
			Stray:     func(t *testing.T, log string, data []byte) { stray(t, e.connect(t), log, data) },
		}
	})
}

// The first instance of each story holds the directory, the others join it.
func TestAcceptanceEmbedded(t *testing.T) {
	coordtest.Run(t, func(t *testing.T) coordtest.Cluster {
		dir := t.TempDir()
		var stores []*natskv.Store
		return coordtest.Cluster{
			Open: func(t *testing.T) coord.Store {
				stores = append(stores, openDir(t, dir))
				return stores[len(stores)-1]
			},
			Interrupt: func(t *testing.T) {
				for _, s := range stores {
					require.NoError(t, s.Reconnect())
				}
			},
			Pass:  pass,
			Stray: func(t *testing.T, log string, data []byte) { stray(t, joinAsForeigner(t, dir), log, data) },
		}
	})
}
