package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/semaphore"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/cluster"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/natskv"
	"github.com/lakestream-go/lakestream/internal/log"
	"github.com/lakestream-go/lakestream/internal/materialization/icebergtables"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// closeTimeout bounds what Close does beside draining.
const closeTimeout = 10 * time.Second

// Engine is one instance of a cluster. Open one and Close it; it is safe for
// concurrent use.
type Engine struct {
	opts     Options
	clock    base.Clock
	logger   *slog.Logger
	instance string
	started  time.Time

	coordination coord.Store
	objects      *blob.Counted
	// warehouse is the store of tables that lie outside of objects, or nil.
	warehouse blob.Store
	tables    *icebergtables.Tables
	identity  cluster.Identity
	meta      *shard.View
	shards    []*shardEngine
	catalog   *catalog.Catalog
	fetcher   *log.Fetcher
	// background reads for passes and proofs, which would push out of the cache
	// what tails are about to read.
	background *log.Fetcher
	// room is what the appends of all shards may hold together.
	room    *semaphore.Weighted
	history historyJobs
	// scratch is the directory that is removed at the end, or empty.
	scratch string

	stop context.CancelFunc
	jobs sync.WaitGroup
	once sync.Once
	end  error
}

// Open finds or creates the cluster that the options name and starts this
// instance of it. A configuration error is ErrInvalid and names the field; a
// directory, server or store that cannot be reached is ErrUnavailable; data of
// another cluster is ErrForeign. Whatever fails, nothing half-created remains
// that a later Open would mistake for a cluster.
func Open(ctx context.Context, opts Options) (*Engine, error) {
	opts = opts.WithDefaults()
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("opening engine: %w", err)
	}
	clock := opts.hooks.clockOrSystem()
	e := &Engine{
		opts: opts, clock: clock, logger: opts.Logger, started: clock.Now(),
		room:     semaphore.NewWeighted(opts.WAL.MaxBufferedBytes),
		instance: ulid.Make().String(),
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	e.stop = stop
	if err := e.open(ctx, running); err != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("opening engine: %w", err), e.release(closing))
	}
	return e, nil
}

// open opens everything in the order in which each needs the one before.
func (e *Engine) open(ctx, running context.Context) error {
	if err := e.refuseMissing(); err != nil {
		return err
	}
	if err := e.forgetWithMemory(); err != nil {
		return err
	}
	if err := e.openStores(ctx); err != nil {
		return err
	}
	identity, err := cluster.Bootstrap{
		Coordination: e.coordination, Objects: e.objects, Shards: e.opts.Shards,
		MustExist: e.opts.Observe, FoldVersion: e.opts.hooks.newestFold(), Clock: e.clock, Entropy: rand.Reader, Logger: e.logger,
	}.Run(ctx)
	if err != nil {
		return err
	}
	e.identity = identity
	if err := e.openTables(ctx); err != nil {
		return err
	}
	if e.fetcher, err = log.NewFetcher(e.objects, e.opts.CacheBytes); err != nil {
		return err
	}
	if e.background, err = log.NewFetcher(e.objects, backgroundCacheBytes); err != nil {
		return err
	}
	if err := e.openViews(ctx); err != nil {
		return err
	}
	if e.opts.Observe {
		return nil
	}
	if err := e.defineNamespaces(ctx); err != nil {
		return err
	}
	e.tellMemory()
	e.startJobs(running)
	return nil
}

// tellMemory tells what this engine may fill of the process's memory, beside
// what callers hold.
func (e *Engine) tellMemory() {
	limit := "none"
	if n := debug.SetMemoryLimit(-1); n < math.MaxInt64 { // -1 only asks
		limit = humanize.IBytes(uint64(n)) //nolint:gosec // no limit is negative
	}
	budget := func(n int64) string { return humanize.IBytes(uint64(n)) } //nolint:gosec // Validate bounds it from below
	o := &e.opts
	e.logger.Info("memory budget", "appends", budget(o.WAL.MaxBufferedBytes), "read_cache", budget(o.CacheBytes),
		"pass", budget(o.Compaction.MaxMemoryBytes), "go_limit", limit)
}

// refuseMissing keeps a command that only looks from creating what it looks for.
func (e *Engine) refuseMissing() error {
	if !e.opts.Observe || len(e.opts.NATS.URLs) > 0 {
		return nil
	}
	if _, err := os.Stat(e.opts.DataDir); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("data directory %s does not exist: run a pipeline first, or name another with --data-dir, or the pipeline's file with -c: %w", e.opts.DataDir, base.ErrNotFound)
	}
	if !natskv.IsDataDir(e.opts.DataDir) {
		return fmt.Errorf("%s is no data directory of an engine: run a pipeline first, or name another with --data-dir, or the pipeline's file with -c; if its nats directory was lost, run lakestream recover: %w", e.opts.DataDir, base.ErrNotFound)
	}
	return nil
}

// forgetWithMemory gives an engine whose objects are in memory a directory that
// goes with them: coordination and tables that outlive their objects would refuse
// the next start.
func (e *Engine) forgetWithMemory() (err error) {
	if !e.opts.inMemory() {
		return nil
	}
	if e.scratch, err = os.MkdirTemp("", "lakestream-"); err != nil {
		return base.WithClass(base.ErrUnavailable, fmt.Errorf("making a directory beside the memory store: %w", err))
	}
	e.opts.DataDir = e.scratch
	return nil
}

func (e *Engine) openStores(ctx context.Context) (err error) {
	options := natskv.Options{Prefix: e.opts.NATS.Bucket, Name: e.label(), Clock: e.clock, Logger: e.logger}
	if len(e.opts.NATS.URLs) > 0 {
		e.coordination, err = openExternal(ctx, e.opts.NATS.external(options))
	} else {
		e.coordination, err = openEmbedded(ctx, natskv.Embedded{Options: options, Dir: e.opts.DataDir})
	}
	if err != nil {
		return err
	}
	e.coordination = e.opts.hooks.wrapCoordination(e.coordination)
	return e.openObjects(ctx)
}

// openExternal and openEmbedded keep a nil *natskv.Store out of the interface.
func openExternal(ctx context.Context, e natskv.External) (coord.Store, error) {
	store, err := natskv.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	return store, nil
}

func openEmbedded(ctx context.Context, e natskv.Embedded) (coord.Store, error) {
	store, err := natskv.OpenEmbedded(ctx, e)
	if err != nil {
		return nil, err
	}
	return store, nil
}

func (e *Engine) openViews(ctx context.Context) error {
	ledgers := make([]catalog.Ledger, 0, e.identity.Shards)
	for _, sh := range e.identity.Logs() {
		view, err := e.openView(ctx, sh)
		if err != nil {
			return err
		}
		if err := e.refuseNewerFold(view); err != nil {
			view.Close()
			return err
		}
		if sh == base.MetaShard {
			e.meta = view
			continue
		}
		e.shards = append(e.shards, newShardEngine(e, sh, view))
		ledgers = append(ledgers, view)
	}
	e.catalog = catalog.New(ledgers, e.meta, e.logger)
	return nil
}

func (e *Engine) openView(ctx context.Context, sh base.Shard) (*shard.View, error) {
	commits, err := e.coordination.Log(ctx, sh.String())
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", sh, err)
	}
	return shard.OpenView(ctx, shard.ViewOptions{
		Cluster: e.identity.Cluster, Shard: sh, Log: commits, Checkpoints: e.loader(sh), Reconnects: e.coordination.Reconnects,
		Clock: e.clock, Logger: e.logger, Entropy: rand.Reader,
	})
}

// label names this instance for people.
func (e *Engine) label() string {
	host := e.opts.InstanceID
	if host == "" {
		host, _ = os.Hostname()
	}
	return strings.TrimSpace("lakestream " + host)
}

// Cluster returns the id of the cluster as text.
func (e *Engine) Cluster() string { return e.identity.Cluster.String() }

// Close makes every append that was accepted durable, waits at most DrainTimeout
// until the tables of the streams that this engine wrote to hold all of it, and
// releases everything. ErrTablesBehind says that the log is complete and tables
// are not; any engine on the cluster catches them up. When ctx ends, or has ended,
// Close waits for no table any more; the rest is bounded by itself. A second call
// returns what the first did.
func (e *Engine) Close(ctx context.Context) error {
	e.once.Do(func() {
		drained := e.drain(ctx)
		if !e.opts.Observe {
			reportClosing(ctx, e, drained)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		e.end = errors.Join(drained, e.release(ctx))
	})
	return e.end
}

// release undoes open, in reverse, as far as it got.
func (e *Engine) release(ctx context.Context) error {
	errs := []error{e.eachShard(func(s *shardEngine) error { return s.closeWriter(ctx) })}
	e.stop()
	errs = append(errs, e.awaitJobs(ctx))
	for _, s := range e.shards {
		s.view.Close()
	}
	if e.meta != nil {
		e.meta.Close()
	}
	if e.tables != nil {
		errs = append(errs, e.tables.Close())
	}
	if e.warehouse != nil {
		errs = append(errs, e.warehouse.Close())
	}
	if e.objects != nil {
		errs = append(errs, e.objects.Close())
	}
	if e.coordination != nil {
		errs = append(errs, e.coordination.Close(ctx))
	}
	if e.scratch != "" {
		errs = append(errs, os.RemoveAll(e.scratch))
	}
	return errors.Join(errs...)
}

// awaitJobs waits until nothing runs in the background any more. A call of a store
// or of the catalog may hang for longer than ctx lasts; it then ends with the process.
func (e *Engine) awaitJobs(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.jobs.Wait()
		if e.fetcher != nil {
			e.fetcher.Close()
		}
		if e.background != nil {
			e.background.Close()
		}
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for background work to end: %w", ctx.Err())
	}
}
