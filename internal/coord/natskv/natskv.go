// Package natskv keeps the coordination of a cluster in NATS JetStream: one KV
// bucket per commit log, whose single key's history is the log, and one bucket
// for the documents. It is the only importer of NATS.
//
// Open connects to servers that others run. OpenEmbedded runs the server inside
// this process, over a data directory; a second process on the same directory
// joins the first one's server and takes it over when the first goes away.
//
// Guarantees, for buckets as this package creates them: a revision that Put
// returns is durable where the servers sync always, which the embedded server
// does and external ones must be told to (sync_interval: always); revisions of
// a log are dense; reads are answered by the leader. Buckets are created once
// and never reset: one that is configured otherwise is refused.
//
// To extend it: what a bucket must look like stands in bucket.go, the meaning
// of client errors in errors.go, the life of the embedded server in node.go.
package natskv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// Store is one connection to the coordination of a cluster. It implements
// coord.Store and is safe for concurrent use.
type Store struct {
	options  Options
	replicas int
	label    string
	link     *link
	node     *node // nil unless embedded
	conn     *nats.Conn
	js       jetstream.JetStream

	reads     silence
	writes    silence
	documents *documents

	mu   sync.Mutex
	logs map[string]*commitLog // guarded by mu
	told map[string]bool       // guarded by mu; the weaknesses that were warned of
}

var _ coord.Store = (*Store)(nil)

// newStore completes a connected store and creates the documents bucket when
// absent, trying for as long as patience while no server answers. It owns conn:
// after an error the connection is closed.
func newStore(ctx context.Context, s *Store, patience time.Duration) (*Store, error) {
	js, err := jetstream.New(s.conn, jetstream.WithDefaultTimeout(s.options.Timeout))
	if err != nil {
		s.conn.Close()
		return nil, fmt.Errorf("opening JetStream: %w", err)
	}
	s.js, s.logs, s.told = js, map[string]*commitLog{}, map[string]bool{}
	deadline := s.options.Clock.After(patience)
	for {
		b, err := s.bind(ctx, documentsBucket(s.options.Prefix, s.replicas))
		if err == nil {
			s.documents = &documents{bucket: b}
			return s, nil
		}
		if errors.Is(err, base.ErrUnavailable) && s.pause(ctx, deadline) {
			continue
		}
		s.conn.Close()
		if denied := s.link.denial(); denied != nil {
			err = base.WithClass(base.ErrInvalid, fmt.Errorf(
				"%w: %w; permit the user the subjects that docs/nats.md lists", err, denied))
		}
		return nil, err
	}
}

// pause waits before the next attempt, and reports false when there is none.
func (s *Store) pause(ctx context.Context, deadline <-chan time.Time) bool {
	select {
	case <-s.options.Clock.After(joinPoll):
		return true
	case <-ctx.Done():
		return false
	case <-deadline:
		return false
	}
}

// Log opens a commit log, creating its bucket when absent. A bucket of that
// name that is configured otherwise is ErrInvalid and left alone.
func (s *Store) Log(ctx context.Context, name string) (coord.CommitLog, error) {
	if err := coord.CheckLogName(name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	log, ok := s.logs[name]
	s.mu.Unlock()
	if ok {
		return log, nil
	}
	return s.openLog(ctx, name, logBucket(s.options.Prefix, name, s.replicas))
}

// LogFrom creates the bucket of a commit log whose first record gets revision
// first, under the same rules as Log.
func (s *Store) LogFrom(ctx context.Context, name string, first base.Revision) (coord.CommitLog, error) {
	if err := errors.Join(coord.CheckLogName(name), coord.CheckFirst(first)); err != nil {
		return nil, err
	}
	config := logBucket(s.options.Prefix, name, s.replicas)
	config.FirstSeq = uint64(first)
	log, err := s.openLog(ctx, name, config)
	if err != nil {
		return nil, err
	}
	begin, last, err := log.Bounds(ctx)
	if err != nil {
		return nil, fmt.Errorf("creating log %s: %w", name, err)
	}
	if empty := last == 0 || begin > last; !empty || last != first-1 {
		return nil, fmt.Errorf("creating log %s from revision %d: %w: its next revision is %d",
			name, first, base.ErrExists, last+1)
	}
	return log, nil
}

func (s *Store) openLog(ctx context.Context, name string, config jetstream.StreamConfig) (coord.CommitLog, error) {
	b, err := s.bind(ctx, config)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &commitLog{bucket: b}
	s.logs[name] = log
	return log, nil
}

// Documents returns the documents of the cluster.
func (s *Store) Documents() coord.Documents { return s.documents }

// Reconnects counts how often the connection was made again.
func (s *Store) Reconnects() uint64 { return s.link.count() }

// String names the servers or the data directory, without secrets.
func (s *Store) String() string { return s.label }

// Close ends watches and requests and closes the connection, and the embedded
// server where this process runs it. When ctx ends first, the server goes on
// shutting down in the background and the error says so.
func (s *Store) Close(ctx context.Context) error {
	s.conn.Close()
	s.link.lost()
	if s.node == nil {
		return nil
	}
	return s.node.close(ctx)
}

// ready refuses an operation that cannot reach a server. Nothing was sent.
func (s *Store) ready(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return base.WithClass(base.ErrUnavailable, ctx.Err())
	case s.conn.IsClosed():
		return fmt.Errorf("%s: %w", s.label, base.ErrClosed)
	case !s.conn.IsConnected():
		return fmt.Errorf("%s: %w: not connected%s", s.label, base.ErrUnavailable, s.reason())
	}
	return nil
}

// reason tells why the connection was lost or cannot be made again, if known.
func (s *Store) reason() string {
	if err := s.conn.LastError(); err != nil {
		return " (" + err.Error() + ")"
	}
	return ""
}

// readyToWrite is ready, and for an embedded server refuses to fill the disk.
func (s *Store) readyToWrite(ctx context.Context, data []byte) error {
	limit := min(int64(coord.MaxRecordBytes), s.conn.MaxPayload()-headerRoom)
	if err := coord.CheckData(data, int(limit)); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	if s.node != nil {
		return s.node.checkDisk()
	}
	return nil
}

// headerRoom is what headers may take of a server's largest payload.
const headerRoom = 4 << 10

// read classes the outcome of a request that changes nothing.
func (s *Store) read(ctx context.Context, err error) error {
	err = readError(ctx, err)
	s.listen(&s.reads, err)
	return err
}

// wrote classes the outcome of a write, and has an embedded server examined when
// it did not answer.
func (s *Store) wrote(ctx context.Context, err error) error {
	err = writeError(ctx, err)
	s.listen(&s.writes, err)
	if s.node != nil && errors.Is(err, base.ErrUnknown) {
		s.node.examine()
	}
	return err
}
