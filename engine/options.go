package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord/natskv"
	"github.com/lakestream-go/lakestream/internal/gc"
)

// DefaultDataDir is where an engine keeps its state unless told otherwise.
const DefaultDataDir = "./lakestream-data"

// Options say where an engine keeps its data and what it may use. The zero value
// is complete: one directory with everything in it.
type Options struct {
	// DataDir is the directory for whatever has no other place.
	DataDir string
	// Shards is the number of commit shards of a cluster that is created; 4
	// by default. An existing cluster keeps its own.
	Shards int
	// InstanceID labels this process for people.
	InstanceID string

	NATS       NATSOptions
	Storage    StorageOptions
	Catalog    CatalogOptions
	WAL        WALOptions
	Compaction CompactionOptions
	Reclaim    ReclaimOptions

	// MaxIndexEntries makes the appends of a shard wait while the indexes of its
	// logs have more entries together, until compaction makes them shorter; 4
	// million by default, about 200 MiB of memory in every instance.
	MaxIndexEntries int
	// CacheBytes bounds the cache of fetched WAL blocks; 128 MiB by default.
	CacheBytes int64
	// LeaseTTL is how long others wait for an instance that is gone before
	// they take over its background work; 15 s by default, at least 5 s.
	LeaseTTL time.Duration
	// DrainTimeout is how long Close waits for tables; 15 s by default.
	DrainTimeout time.Duration

	// Namespaces are settings and properties that namespaces shall have, by name:
	// they are created when absent, and what is left unset stays.
	Namespaces map[string]NamespaceConfig

	// Observe opens an existing cluster only to look at it or to act on
	// demand: nothing is created and nothing runs in the background.
	Observe bool
	// Logger receives what happens in the background; by default slog.Default.
	Logger *slog.Logger
	// CrashPoint, when set, is called at named moments, so that a test can end
	// the process there.
	CrashPoint func(name string)

	hooks hooks
}

// CatalogOptions say which catalog the tables are in.
type CatalogOptions struct {
	// Type of the catalog: sql, which is the default.
	Type string
	// URI of the catalog; by default a SQLite file in the data directory.
	URI string
	// Warehouse is the location of the tables: file://, mem://, s3://, gs:// or
	// abfss://; by default below Storage.URL, or in the data directory.
	Warehouse string
	// Properties are further Iceberg catalog properties.
	Properties map[string]string
}

// WALOptions bound the write path. Zero fields take defaults that fit the store:
// files answer in milliseconds, buckets in tens of them.
type WALOptions struct {
	// Linger is the longest that a record waits for company; 10 ms on files,
	// 250 ms on buckets.
	Linger time.Duration
	// MaxObjectBytes flushes an object at this size; 8 MiB.
	MaxObjectBytes int64
	// MaxBufferedBytes makes writers wait; 64 MiB on files, 128 MiB else.
	MaxBufferedBytes int64
	// MaxRecordBytes refuses larger records; 16 MiB.
	MaxRecordBytes int64
	// UploadConcurrency is the number of parallel uploads; 4 on files, 16 else.
	UploadConcurrency int
	// Compression of records: zstd or none; none on files, zstd else.
	Compression string
}

// CompactionOptions bound the passes that this process runs.
type CompactionOptions struct {
	// Disabled leaves compaction and tables to other instances.
	Disabled bool
	// Interval is the greatest age of raw records of a log without a table;
	// 60 s.
	Interval time.Duration
	// TargetBytes of raw records make a pass due at once; 256 MiB.
	TargetBytes int64
	// MaxMemoryBytes bounds what one pass holds; 256 MiB.
	MaxMemoryBytes int64
}

// ReclaimOptions say how old records and unused objects are given up.
type ReclaimOptions struct {
	// Interval is how often retention is looked at; 30 s.
	Interval time.Duration
	// Grace is how long an object that nothing refers to is kept for readers that
	// found it before; 10 min, at least 1 s.
	Grace time.Duration
	// SweepEvery is how often the store is listed for uploads that no record names;
	// an hour.
	SweepEvery time.Duration
	// CheckpointEvery is how much of a shard's history a checkpoint covers at the
	// most, by time; 10 min. What died goes when two checkpoints know it dead.
	CheckpointEvery time.Duration
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// WithDefaults returns the options with every unset field filled in.
func (o Options) WithDefaults() Options {
	setDefault(&o.DataDir, DefaultDataDir)
	setDefault(&o.NATS.Bucket, "lakestream")
	setDefault(&o.Catalog.Type, "sql")
	setDefault(&o.Shards, 4)
	setDefault(&o.CacheBytes, 128*mib)
	setDefault(&o.LeaseTTL, 15*time.Second)
	setDefault(&o.DrainTimeout, 15*time.Second)
	setDefault(&o.Compaction.Interval, time.Minute)
	setDefault(&o.Compaction.TargetBytes, 256*mib)
	setDefault(&o.Compaction.MaxMemoryBytes, 256*mib)
	setDefault(&o.Reclaim.Interval, 30*time.Second)
	setDefault(&o.Reclaim.Grace, gc.Grace)
	setDefault(&o.Reclaim.SweepEvery, time.Hour)
	setDefault(&o.Reclaim.CheckpointEvery, 10*time.Minute)
	setDefault(&o.MaxIndexEntries, 4_000_000)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.WAL = o.WAL.withDefaults(o.onFiles())
	return o
}

func (w WALOptions) withDefaults(files bool) WALOptions {
	setDefault(&w.MaxObjectBytes, 8*mib)
	setDefault(&w.MaxRecordBytes, 16*mib)
	if files {
		setDefault(&w.Linger, 10*time.Millisecond)
		setDefault(&w.MaxBufferedBytes, 64*mib)
		setDefault(&w.UploadConcurrency, 4)
		setDefault(&w.Compression, "none")
		return w
	}
	setDefault(&w.Linger, 250*time.Millisecond)
	setDefault(&w.MaxBufferedBytes, 128*mib)
	setDefault(&w.UploadConcurrency, 16)
	setDefault(&w.Compression, "zstd")
	return w
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// inMemory reports whether objects are gone when the engine closes.
func (o *Options) inMemory() bool { return strings.HasPrefix(o.Storage.URL, "mem:") }

// onFiles reports whether objects are files of this machine.
func (o *Options) onFiles() bool {
	return o.Storage.URL == "" || strings.HasPrefix(o.Storage.URL, "file:") || !strings.Contains(o.Storage.URL, "://")
}

// Validate checks every field and names each that is wrong as the configuration
// does.
func (o Options) Validate() error {
	errs := []error{
		between("shards", int64(o.Shards), 1, base.MaxShards),
		between("cache_bytes", o.CacheBytes, mib, 1<<40),
		between("wal.max_object_bytes", o.WAL.MaxObjectBytes, 64*kib, 256*mib),
		between("wal.max_buffered_bytes", o.WAL.MaxBufferedBytes, mib, 1<<40),
		between("wal.max_record_bytes", o.WAL.MaxRecordBytes, kib, 64*mib),
		between("wal.upload_concurrency", int64(o.WAL.UploadConcurrency), 1, 256),
		between("compaction.target_bytes", o.Compaction.TargetBytes, mib, 1<<40),
		between("compaction.max_memory_bytes", o.Compaction.MaxMemoryBytes, 16*mib, 1<<40),
		atLeast("wal.linger", o.WAL.Linger, time.Millisecond),
		atLeast("lease_ttl", o.LeaseTTL, 5*time.Second),
		atLeast("compaction.interval", o.Compaction.Interval, time.Second),
		atLeast("drain_timeout", o.DrainTimeout, time.Second),
		atLeast("reclaim interval", o.Reclaim.Interval, 100*time.Millisecond),
		atLeast("reclaim grace", o.Reclaim.Grace, time.Second),
		atLeast("reclaim sweep every", o.Reclaim.SweepEvery, time.Second),
		atLeast("reclaim checkpoint every", o.Reclaim.CheckpointEvery, time.Second),
		between("max index entries", int64(o.MaxIndexEntries), 1000, 1<<31),
	}
	if o.WAL.Compression != "zstd" && o.WAL.Compression != "none" {
		errs = append(errs, fmt.Errorf("wal.compression %q: want zstd or none: %w", o.WAL.Compression, base.ErrInvalid))
	}
	if o.Catalog.Type != "sql" {
		errs = append(errs, fmt.Errorf("catalog.type %q: want sql: %w", o.Catalog.Type, base.ErrInvalid))
	}
	errs = append(errs,
		o.NATS.check(),
		schemeOf("catalog.uri", o.Catalog.URI, "sqlite"),
		o.checkStorage(),
	)
	if o.inMemory() && (o.Observe || len(o.NATS.URLs) > 0) {
		errs = append(errs, fmt.Errorf("storage.url %s: memory belongs to one process and cannot be shared: %w", o.Storage.URL, base.ErrInvalid))
	}
	if len(o.NATS.URLs) > 0 && o.Storage.URL == "" {
		errs = append(errs, fmt.Errorf("storage.url: name a store that every instance reaches when nats.urls are set: %w", base.ErrInvalid))
	}
	return errors.Join(errs...)
}

// Check is Validate, and looks whether the data directory can ever serve. It
// creates nothing. What it refuses is ErrInvalid and needs a person; that it finds
// nothing promises nothing.
func (o Options) Check() error {
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return err
	}
	if len(o.NATS.URLs) > 0 {
		return nil
	}
	if err := natskv.CheckDir(o.DataDir); err != nil {
		return fmt.Errorf("data_dir: %w", err)
	}
	return nil
}

// schemeOf checks that an address is a path or has one of the schemes.
func schemeOf(field, address string, schemes ...string) error {
	scheme, _, found := strings.Cut(address, "://")
	if !found || slices.Contains(schemes, scheme) {
		return nil
	}
	return fmt.Errorf("%s %s://…: want a path or %s://: %w", field, scheme, strings.Join(schemes, ":// or "), base.ErrInvalid)
}

func between(field string, value, low, high int64) error {
	if value < low || value > high {
		return fmt.Errorf("%s %d: want %d to %d: %w", field, value, low, high, base.ErrInvalid)
	}
	return nil
}

func atLeast(field string, value, low time.Duration) error {
	if value < low {
		return fmt.Errorf("%s %s: want at least %s: %w", field, value, low, base.ErrInvalid)
	}
	return nil
}

// catalogURI returns where the catalog is.
func (o *Options) catalogURI() string {
	if o.Catalog.URI != "" {
		return o.Catalog.URI
	}
	return filepath.Join(o.DataDir, "catalog.db")
}

func fileURL(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// identity is what makes two options mean one engine.
func (o *Options) identity() string {
	if len(o.NATS.URLs) > 0 {
		return strings.Join(o.NATS.URLs, ",") + "/" + o.NATS.Bucket
	}
	abs, err := filepath.Abs(o.DataDir)
	if err != nil {
		abs = o.DataDir
	}
	return abs + "/" + o.NATS.Bucket
}
