package wal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/format/walobject"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// CommitLog is a shard's commit log and this process's view of it, as a Writer
// needs them; shard.View is one.
type CommitLog interface {
	// Put appends one record. After base.ErrUnknown it may have been appended.
	Put(ctx context.Context, request commitrecord.RequestID, payload commitrecord.Payload) (base.Revision, error)
	// Publish appends one record and returns its outcome once the view has
	// applied it.
	Publish(ctx context.Context, payload commitrecord.Payload) (shard.Outcome, error)
	// OnWriter subscribes to the outcomes of a writer's records, in order.
	OnWriter(writer base.WriterID, fn func(shard.Outcome))
	// Inspect calls fn with the state that the view has come to, which does not
	// change until fn returns.
	Inspect(fn func(*shard.State))
	// Err returns why the view stopped for good, or nil.
	Err() error
}

// Crash points: where a test kills the process to see what a restart makes of it.
const (
	CrashBeforePut    = "before-put"
	CrashAfterPut     = "after-put"
	CrashBeforeCommit = "before-commit"
	CrashAfterCommit  = "after-commit"
)

// Options are what a Writer needs. Fields without a stated default are required.
type Options struct {
	Cluster base.ClusterID
	Shard   base.Shard
	// Instance names the lease of this process, in its WriterOpen records.
	Instance string
	Store    blob.Store
	Log      CommitLog
	Clock    base.Clock
	Logger   *slog.Logger
	// Entropy is the source of writer tokens.
	Entropy io.Reader
	// Jitter returns numbers in [0, 1) that spread retries.
	Jitter func() float64

	// MaxObjectBytes flushes an object, EagerBytes does while an upload slot
	// is free. Both count encoded records before compression.
	MaxObjectBytes, EagerBytes int
	// MaxBufferedBytes bounds what unresolved appends hold; more wait, in
	// the order of arrival. An append larger than this is written alone.
	MaxBufferedBytes int
	// Room, when set, is what this writer's appends and those of others take
	// their MaxBufferedBytes from, together.
	Room *semaphore.Weighted
	// MaxRecordBytes bounds key, value and headers of a record together.
	MaxRecordBytes int
	// Linger is the longest that an append waits for company.
	Linger time.Duration
	// FlushWhenIdle flushes as soon as nothing is in flight and arrivals have
	// stopped: for stores where an object costs nothing but its latency.
	FlushWhenIdle bool
	// UploadConcurrency is how many objects are put in parallel.
	UploadConcurrency int
	Compression       recordbatch.Compression
	// Alignment is what an object's length is a multiple of: blob.BlockSize
	// where the store writes such objects directly. 0 means 1.
	Alignment int
	// CrashPoint is called at each crash point, with its name. Nil does nothing.
	CrashPoint func(name string)
}

// check reports what is missing or out of range, as base.ErrInvalid.
func (o *Options) check() error {
	var errs []error
	reject := func(bad bool, what string) {
		if bad {
			errs = append(errs, errors.New(what))
		}
	}
	reject(o.Store == nil || o.Log == nil || o.Clock == nil || o.Logger == nil || o.Entropy == nil || o.Jitter == nil,
		"store, log, clock, logger, entropy and jitter are required")
	reject(o.MaxObjectBytes < 1 || o.MaxObjectBytes > MaxAppendBytes, "max object bytes: want 1 to 1 GiB")
	reject(o.EagerBytes < 1, "eager bytes: want at least 1")
	reject(o.MaxBufferedBytes < 1, "max buffered bytes: want at least 1")
	reject(o.MaxRecordBytes < 1 || o.MaxRecordBytes > maxRecordBytes, "max record bytes: want 1 byte to 128 MiB")
	reject(o.Linger <= 0, "linger: want a positive duration")
	reject(o.UploadConcurrency < 1, "upload concurrency: want at least 1")
	reject(o.Alignment < 0 || o.Alignment > walobject.MaxAlignment, "alignment: want at most 1 MiB")
	if len(errs) > 0 {
		return fmt.Errorf("opening writer of %s: %w: %w", o.Shard, base.ErrInvalid, errors.Join(errs...))
	}
	return nil
}

// maxRecordBytes keeps a record with its headers' overhead within a batch.
const maxRecordBytes = recordbatch.MaxBatchBytes / 2
