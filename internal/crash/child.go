package crash

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/lakestream-go/lakestream/engine"
	"github.com/lakestream-go/lakestream/internal/base"
)

// specVariable carries a child's Spec, as JSON, in its environment.
const specVariable = "LAKESTREAM_CRASH_SPEC"

// Spec is one life of a child process.
type Spec struct {
	// Dir is the data directory. Ledgers lie beside what the engine keeps there.
	Dir string `json:"dir"`
	// Life names this life; no other in the directory has the name.
	Life string `json:"life"`
	// Streams, each of so many Partitions, are what is appended to.
	Streams    []string `json:"streams"`
	Partitions int      `json:"partitions"`
	// Appenders append at once, each Batches batches with Pause between them,
	// to the streams in turn.
	Appenders int           `json:"appenders"`
	Batches   int           `json:"batches"`
	Pause     time.Duration `json:"pause"`
	// LeaseTTL is the engine's. A long one shows that nothing waits for the
	// leases of the dead.
	LeaseTTL time.Duration `json:"lease_ttl"`
	// DrainTimeout bounds how long the tables may take at the end.
	DrainTimeout time.Duration `json:"drain_timeout"`
	Kill         Kill          `json:"kill"`
	// Shared, where set, is what lives of several directories share.
	Shared *Shared `json:"shared,omitempty"`
	// StopFile, where set, makes the appenders stop once it exists.
	StopFile string `json:"stop_file,omitempty"`
	// Producer, where set, makes the appends idempotent: each appender is a producer
	// of its own, which goes on where the lives Before, with the same Producer, have
	// got to, and sends again what they have no acknowledgement for.
	Producer string   `json:"producer,omitempty"`
	Before   []string `json:"before,omitempty"`
	// Patience is how long a life waits for what does not answer when it starts.
	Patience time.Duration `json:"patience"`
}

// Shared is what the instances of a cluster have in common beside its records: the
// servers that coordinate them, a bucket and a catalog.
type Shared struct {
	NATS    string `json:"nats"`
	Bucket  string `json:"bucket"`
	Catalog string `json:"catalog"`
}

// Options are those of the engine that lives the life, but for its logger.
func (s *Spec) Options() engine.Options {
	opts := engine.Options{DataDir: s.Dir, InstanceID: s.Life, LeaseTTL: s.LeaseTTL, DrainTimeout: s.DrainTimeout}
	if s.Shared != nil {
		opts.NATS.URLs = []string{s.Shared.NATS}
		opts.Storage.URL = s.Shared.Bucket
		opts.Catalog.URI = s.Shared.Catalog
		opts.Compaction.Interval = time.Second
		opts.Reclaim = engine.ReclaimOptions{
			Interval: time.Second, Grace: 3 * time.Second, SweepEvery: 5 * time.Second, CheckpointEvery: 3 * time.Second,
		}
	}
	return opts
}

// LedgerPath returns where this life writes its acknowledgements.
func (s *Spec) LedgerPath() string { return ledgerPath(s.Dir, s.Life) }

func ledgerPath(dir, life string) string { return filepath.Join(dir, "ledger-"+life) }

// ledgers returns the paths of all ledgers in a directory.
func ledgers(dir string) ([]string, error) { return filepath.Glob(ledgerPath(dir, "*")) }

// IsChild reports whether this process was started to be a child.
func IsChild() bool { return os.Getenv(specVariable) != "" }

// BeChild lives the life that the environment describes and returns the exit code:
// 0 after a complete drain, 1 after saying on stderr what went wrong. Most lives
// end before.
func BeChild(ctx context.Context, stderr io.Writer) int {
	var spec Spec
	err := json.Unmarshal([]byte(os.Getenv(specVariable)), &spec)
	if err == nil {
		err = spec.live(ctx, slog.New(slog.NewTextHandler(stderr, nil)))
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "life %s: %v\n", spec.Life, err) // nobody else to tell
		return 1
	}
	return 0
}

// die ends this process as a power failure would, but for the page cache.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill() // nothing runs after it
	}
	select {}
}

func (s *Spec) live(ctx context.Context, logger *slog.Logger) (err error) {
	book, err := openLedger(s.LedgerPath())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.close()) }()
	executioner := &executioner{kill: s.Kill, die: die, unlisted: func(name string) {
		panic("crash point " + name + " is not listed in crash.Points")
	}}
	opts := s.Options()
	opts.Logger, opts.CrashPoint = logger, executioner.pass
	var e *engine.Engine
	err = s.patiently(func() (err error) {
		e, err = engine.Open(ctx, opts)
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(s.append(ctx, e, book), e.Close(ctx))
}

// patiently does something again while a server or a store does not answer, for as
// long as the life has patience.
func (s *Spec) patiently(do func() error) error {
	clock := base.SystemClock{}
	for began := clock.Now(); ; {
		err := do()
		waits := errors.Is(err, engine.ErrUnavailable) || errors.Is(err, engine.ErrUnknown)
		if !waits || clock.Now().Sub(began) > s.Patience {
			return err
		}
		<-clock.After(pollEvery)
	}
}

// append runs the appenders to their ends.
func (s *Spec) append(ctx context.Context, e *engine.Engine, book *ledger) error {
	streams := make([]*engine.Stream, len(s.Streams))
	for i, name := range s.Streams {
		err := s.patiently(func() (err error) {
			streams[i], err = e.EnsureStream(ctx, name, engine.StreamConfig{
				Partitions: s.Partitions, Table: engine.TablePolicy{CommitInterval: time.Second},
			})
			return err
		})
		if err != nil {
			return err
		}
	}
	errs := make([]error, s.Appenders)
	var running sync.WaitGroup
	for i := range errs {
		running.Go(func() { errs[i] = s.appender(ctx, i, streams, book) })
	}
	running.Wait()
	return errors.Join(errs...)
}

func (s *Spec) appender(ctx context.Context, index int, streams []*engine.Stream, book *ledger) error {
	var batch engine.Batch
	clock := base.SystemClock{}
	records := newAttempts(cmp.Or(s.Producer, s.Life), index)
	done, err := s.acknowledgedBefore()
	if err != nil {
		return err
	}
	for n := range s.Batches {
		if s.stopped() {
			return nil
		}
		stream := streams[(index+n)%len(streams)]
		names := records.next(&batch, stream.Partitions())
		if s.Producer != "" {
			records.identify(&batch, stream.Name())
		}
		if allIn(done, names) {
			continue
		}
		if err := stream.Append(ctx, &batch); err != nil {
			return err
		}
		acks, err := acknowledged(stream.Name(), &batch, names)
		if err != nil {
			return err
		}
		if err := book.add(acks); err != nil {
			return err
		}
		<-clock.After(s.Pause)
	}
	return nil
}

// acknowledgedBefore returns what the lives before this one were told to be durable.
func (s *Spec) acknowledgedBefore() (map[string]bool, error) {
	done := make(map[string]bool)
	for _, life := range s.Before {
		acks, err := ReadLedger(ledgerPath(s.Dir, life))
		if err != nil {
			return nil, err
		}
		for _, ack := range acks {
			done[ack.Attempt] = true
		}
	}
	return done, nil
}

// allIn reports whether each of the names is done.
func allIn(done map[string]bool, names [][]string) bool {
	for _, some := range names {
		for _, name := range some {
			if !done[name] {
				return false
			}
		}
	}
	return true
}

// stopped reports whether the appenders were told to stop.
func (s *Spec) stopped() bool {
	if s.StopFile == "" {
		return false
	}
	_, err := os.Stat(s.StopFile)
	return err == nil
}

// acknowledged turns the results of an append into entries of the ledger. Every
// record must have been taken.
func acknowledged(stream string, batch *engine.Batch, names [][]string) (acks []Ack, err error) {
	for i, result := range batch.Results {
		p := batch.Logs[i].Log.Partition
		if result.Err != nil {
			return nil, fmt.Errorf("appending to partition %d: %w", p, result.Err)
		}
		if result.Records+len(result.Duplicates) != len(names[i]) {
			return nil, fmt.Errorf("appending to partition %d: %d of %d records were taken, %d were there",
				p, result.Records, len(names[i]), len(result.Duplicates))
		}
		next := result.Base
		for j, name := range names[i] {
			ack := Ack{Attempt: name, Stream: stream, Partition: p, Offset: Somewhere}
			if !slices.Contains(result.Duplicates, j) {
				ack.Offset = next
				next++
			}
			acks = append(acks, ack)
		}
	}
	return acks, nil
}
