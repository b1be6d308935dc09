package natskv

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

const (
	defaultTimeout = 5 * time.Second
	// reconnectWait and reconnectJitter space attempts to connect again.
	reconnectWait   = 50 * time.Millisecond
	reconnectJitter = 50 * time.Millisecond
	// A server that answers no ping for pingInterval × maxPings is lost.
	pingInterval = 5 * time.Second
	maxPings     = 2
	// clusteredReplicas is what a cluster of servers keeps of each bucket.
	clusteredReplicas = 3
)

// Options are common to both ways to open a Store.
type Options struct {
	// Prefix names the documents bucket and starts the names of the log
	// buckets: one token of A-Z a-z 0-9 _ and -. Required.
	Prefix string
	// Name labels the connection for people who look at the server.
	Name string
	// Timeout bounds each request, besides its context. 0 means 5 s.
	Timeout time.Duration
	// Clock paces waiting; nil means the machine's.
	Clock base.Clock
	// Logger receives what the client and an embedded server have to say; nil
	// means nobody.
	Logger *slog.Logger
}

// External describes servers that others run.
type External struct {
	Options

	// URLs are the addresses of one server or of several in a cluster.
	URLs []string
	// Replicas is how many servers keep each bucket that is created; 0 means
	// 3 where the server is part of a cluster, else 1.
	Replicas int
	// Auth says who connects. Credentials in a URL exclude it.
	Auth Auth
	// TLS loads the configuration of encrypted connections. It is called for
	// each connection, so that what its files hold can be replaced while a Store
	// is open; by several goroutines at once. Nil means no encryption but where
	// a URL has the scheme tls.
	TLS func() (*tls.Config, error)
	// AllowPlaintext lets credentials go unencrypted to other machines.
	AllowPlaintext bool
}

// Check validates what describes the servers, without connecting or reading files.
// What is wrong is ErrInvalid.
func (e External) Check() error {
	if e.Replicas < 0 {
		return fmt.Errorf("nats.replicas: %w: %d: want 0 or more", base.ErrInvalid, e.Replicas)
	}
	if _, err := publicURLs(e.URLs); err != nil {
		return err
	}
	return e.checkCredentials()
}

// withDefaults validates the options and fills in what was left out.
func (o Options) withDefaults() (Options, error) {
	if err := coord.CheckLogName(o.Prefix); err != nil {
		return o, fmt.Errorf("bucket prefix: %w", err)
	}
	if o.Timeout < 0 {
		return o, fmt.Errorf("%w: request timeout %s: want 0 or more", base.ErrInvalid, o.Timeout)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Clock == nil {
		o.Clock = base.SystemClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// Open connects to external servers and creates the documents bucket when it is
// absent. Servers that cannot be reached are ErrUnavailable; credentials or
// certificates that one side refuses, a bucket that is configured otherwise, or a
// number of replicas that they refuse, ErrInvalid.
func Open(ctx context.Context, e External) (*Store, error) {
	options, err := e.Options.withDefaults()
	if err != nil {
		return nil, err
	}
	e.Options = options
	if err := e.Check(); err != nil {
		return nil, err
	}
	l := newLink(ctx)
	conn, err := e.connect(ctx, l)
	if err != nil {
		return nil, err
	}
	replicas := e.Replicas
	if replicas == 0 {
		replicas = 1
		if conn.ConnectedClusterName() != "" {
			replicas = clusteredReplicas
		}
	}
	s := &Store{options: options, replicas: replicas, label: e.label(), link: l, conn: conn}
	return newStore(ctx, s, 0)
}

// label names the servers, without secrets.
func (e External) label() string {
	label, err := publicURLs(e.URLs)
	if err != nil {
		return "NATS"
	}
	return label
}

func (e External) connect(ctx context.Context, l *link) (*nats.Conn, error) {
	timeout := e.bound(ctx)
	settings := append(connectOptions(e.Options, l, func() {}), nats.Timeout(timeout))
	auth, dialer, err := e.Auth.options(timeout)
	if err != nil {
		return nil, err
	}
	secure, err := loadTLS(e.TLS).options()
	if err != nil {
		return nil, err
	}
	settings = append(append(settings, auth...), secure...)
	if e.carriesCredentials() && !e.AllowPlaintext && !e.allEncrypted() {
		// The servers may name others, which are not on this machine.
		settings = append(settings, nats.IgnoreDiscoveredServers())
	}
	conn, err := dial(strings.Join(e.URLs, ","), settings)
	if err != nil {
		return nil, connectError(e.label(), e.Auth, err)
	}
	if dialer != nil {
		dialer.conn.Store(conn)
	}
	return conn, nil
}

// connectOptions are those of every connection. lost is called after the link
// learned that the connection is gone.
func connectOptions(o Options, l *link, lost func()) []nats.Option {
	return []nats.Option{
		nats.Name(o.Name),
		// Whom the servers let hear only his own answers can be told apart.
		nats.CustomInboxPrefix("_INBOX." + o.Prefix),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectJitter, reconnectJitter),
		// Half of a buffer replayed later would be a record that its writer
		// believes refused.
		nats.ReconnectBufSize(-1),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPings),
		nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(conn *nats.Conn, err error) {
			if !conn.IsClosed() { // closing is no loss
				o.Logger.Warn("Coordination connection lost", "error", err)
			}
			l.lost()
			lost()
		}),
		nats.ReconnectHandler(func(conn *nats.Conn) {
			o.Logger.Info("Coordination connection restored", "server", conn.ConnectedAddr())
			l.restored()
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if l.report(err) {
				o.Logger.Warn("Coordination client reported an error", "error", err)
			}
		}),
	}
}

// bound returns the shorter of the request timeout and what is left of ctx.
func (o Options) bound(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return max(min(o.Timeout, deadline.Sub(o.Clock.Now())), time.Millisecond)
	}
	return o.Timeout
}

// publicURLs renders addresses without user information, and refuses addresses
// that do not parse without repeating them, since they may hold a password.
func publicURLs(urls []string) (string, error) {
	if len(urls) == 0 {
		return "", fmt.Errorf("%w: no NATS URL", base.ErrInvalid)
	}
	public := make([]string, len(urls))
	for i, raw := range urls {
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" {
			return "", fmt.Errorf("%w: NATS URL number %d: want nats://host:port", base.ErrInvalid, i+1)
		}
		public[i] = u.Scheme + "://" + u.Host
	}
	return strings.Join(public, ","), nil
}
