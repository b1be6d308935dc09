package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/segment"
)

const (
	// segmentBytes closes a segment; one record may lie beyond it.
	segmentBytes = 8 << 20
	// finalTimeout bounds the last segment of an archiver that is told to end.
	finalTimeout = 3 * time.Second
)

// ArchiverOptions are what an Archiver works with. All fields are required.
type ArchiverOptions struct {
	Cluster base.ClusterID
	Shard   base.Shard
	Log     coord.CommitLog
	Objects blob.Store
	// View tells up to where records were folded: no others are archived.
	View View
	// Interval is how often what came is written.
	Interval time.Duration
	Clock    base.Clock
	Logger   *slog.Logger
}

// Archiver copies the records of one shard's log to segments. One goroutine runs it
// at a time; several processes may, though a lease avoids the double work.
type Archiver struct {
	opts    ArchiverOptions
	trouble trouble
}

// NewArchiver returns an archiver that has seen nothing yet.
func NewArchiver(opts ArchiverOptions) *Archiver { return &Archiver{opts: opts} }

// Run archives until ctx ends, and then once more what the view has by then, or
// until the view stops. What fails is begun again from what the archive holds.
func (a *Archiver) Run(ctx context.Context) {
	for ctx.Err() == nil && a.opts.View.Err() == nil {
		err := a.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		a.report(ctx, err)
		select {
		case <-a.opts.Clock.After(a.opts.Interval):
		case <-ctx.Done():
			return
		}
	}
}

// report tells of trouble once, and when it is over.
func (a *Archiver) report(ctx context.Context, err error) {
	before := a.trouble.swap(err)
	logger := a.opts.Logger.With("shard", a.opts.Shard.String())
	switch {
	case errors.Is(err, errInterrupted):
		logger.Debug("archiving is begun again", "reason", err.Error())
	case isNews(before, err):
		level := slog.LevelWarn
		if errors.Is(err, base.ErrCorrupt) {
			level = slog.LevelError
		}
		logger.Log(ctx, level, "the commit log is not archived; what comes now could not be recovered", "reason", err.Error())
	case err == nil && before != nil && !errors.Is(before, errInterrupted):
		logger.Info("the commit log is archived again")
	}
}

// Trouble returns why archiving last failed, or nil.
func (a *Archiver) Trouble() error {
	err := a.trouble.get()
	if errors.Is(err, errInterrupted) {
		return nil
	}
	return err
}

// errInterrupted marks a watch that is to be made again.
var errInterrupted = errors.New("the watch was interrupted")

// batch is what is not archived yet, and where it goes on from.
type batch struct {
	to      base.Revision // the newest archived revision
	hash    base.Hash
	entries []segment.Entry
	bytes   int
}

func (b *batch) last() base.Revision { return b.to + base.Revision(len(b.entries)) }

func (b *batch) add(e coord.Entry) {
	b.entries = append(b.entries, segment.Entry(e))
	b.bytes += len(e.Data) + segment.EntryBytes
}

// follow archives from what the archive holds on, until there is a reason to begin
// again.
func (a *Archiver) follow(ctx context.Context) error {
	b, watch, err := a.begin(ctx)
	if err != nil {
		return err
	}
	defer watch.Stop()
	timer := a.opts.Clock.After(a.opts.Interval)
	for {
		select {
		case e, ok := <-watch.Entries():
			if err := a.take(ctx, b, e, ok); err != nil {
				return err
			}
		case <-timer:
			if err := a.tick(ctx, b); err != nil {
				return err
			}
			timer = a.opts.Clock.After(a.opts.Interval)
		case <-ctx.Done():
			return a.finish(ctx, b, watch)
		}
	}
}

// take puts a delivered entry into the batch.
func (a *Archiver) take(ctx context.Context, b *batch, e coord.Entry, ok bool) error {
	switch {
	case !ok:
		return errInterrupted
	case e.Revision <= b.last():
		return nil
	case e.Revision > b.last()+1:
		return fmt.Errorf("%w: revision %d after %d", errInterrupted, e.Revision, b.last())
	}
	b.add(e)
	if b.bytes < segmentBytes {
		return nil
	}
	return a.write(ctx, b)
}

// tick writes what came, and doubts a watch that lags behind the view.
func (a *Archiver) tick(ctx context.Context, b *batch) error {
	behind := len(b.entries) == 0 && a.opts.View.Revision() > b.last()
	if err := a.write(ctx, b); err != nil {
		return err
	}
	if err := a.opts.View.Err(); err != nil {
		return err
	}
	if behind {
		return fmt.Errorf("%w: silent at revision %d", errInterrupted, b.last())
	}
	a.report(ctx, nil)
	return nil
}

// finish archives what the view has folded when the archiver is told to end.
func (a *Archiver) finish(ctx context.Context, b *batch, watch coord.Watch) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalTimeout)
	defer cancel()
	for want := a.opts.View.Revision(); b.last() < want; {
		select {
		case e, ok := <-watch.Entries():
			if err := a.take(ctx, b, e, ok); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return a.write(ctx, b)
}

// write stores what the view has folded of the batch as one segment.
func (a *Archiver) write(ctx context.Context, b *batch) error {
	n := len(b.entries)
	if folded := a.opts.View.Revision(); folded < b.last() {
		n = int(folded) - int(b.to) //nolint:gosec // at most the batch
	}
	if n <= 0 {
		return nil
	}
	data, h, err := segment.Encode(a.opts.Cluster, a.opts.Shard, b.hash, b.entries[:n])
	if err != nil {
		return err
	}
	key := base.SegmentKey(a.opts.Shard, h.From, h.To)
	err = createObject(ctx, a.opts.Objects, key, data)
	if errors.Is(err, base.ErrExists) {
		return fmt.Errorf("%w: another instance archives too", errInterrupted)
	}
	if err != nil {
		return fmt.Errorf("archiving %s: %w", key, err)
	}
	b.to, b.hash = h.To, h.End
	b.entries = append(b.entries[:0:0], b.entries[n:]...)
	b.bytes = 0
	for _, e := range b.entries {
		b.bytes += len(e.Data) + segment.EntryBytes
	}
	return nil
}

// begin finds where the archive ends and watches the log from there. Where the log
// no longer holds what follows, the archive begins anew: a checkpoint reaches it.
func (a *Archiver) begin(ctx context.Context) (*batch, coord.Watch, error) {
	newest, err := a.newest(ctx)
	if err != nil {
		return nil, nil, err
	}
	first, last, err := a.opts.Log.Bounds(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("archiving: %w", err)
	}
	b := &batch{to: max(first, 1) - 1}
	from := b.to + 1
	if newest != nil {
		if newest.To > last {
			return nil, nil, fmt.Errorf("the log of %s ends at revision %d, the archive at %d: coordination lost records; "+
				"stop every instance and run lakestream recover: %w", a.opts.Shard, last, newest.To, base.ErrCorrupt)
		}
		if newest.To >= first {
			from = newest.To // and compare it
		}
		if newest.To+1 >= first {
			b.to, b.hash = newest.To, newest.End
		}
	}
	watch, err := a.opts.Log.Watch(ctx, from)
	if err != nil {
		return nil, nil, fmt.Errorf("archiving: %w", err)
	}
	if from <= b.to {
		if err := a.compare(ctx, watch, &newest.Entries[len(newest.Entries)-1]); err != nil {
			watch.Stop()
			return nil, nil, err
		}
	}
	return b, watch, nil
}

// compare checks that the log still holds the newest archived record.
func (a *Archiver) compare(ctx context.Context, watch coord.Watch, want *segment.Entry) error {
	select {
	case e, ok := <-watch.Entries():
		if !ok || e.Revision != want.Revision {
			return fmt.Errorf("%w: before the newest archived record", errInterrupted)
		}
		if got := segment.Entry(e); got.Extend(base.Hash{}) != want.Extend(base.Hash{}) {
			return fmt.Errorf("revision %d of %s is not the archived record: coordination was set back, or another cluster's is configured; "+
				"nothing more is archived: %w", want.Revision, a.opts.Shard, base.ErrCorrupt)
		}
		return nil
	case <-a.opts.Clock.After(silence):
		return fmt.Errorf("%w: silent from its start", errInterrupted)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// newest returns the newest segment that is whole, nil for none. A damaged one is
// told of and left out: the archive goes on from the one before it, with records
// that the log still holds.
func (a *Archiver) newest(ctx context.Context) (*segment.Segment, error) {
	segments, err := listSegments(ctx, a.opts.Objects, a.opts.Shard)
	if err != nil {
		return nil, err
	}
	for len(segments) > 0 {
		last := segments[len(segments)-1]
		s, err := readSegment(ctx, a.opts.Objects, last, a.opts.Cluster, a.opts.Shard)
		if err == nil || !damaged(err) {
			return s, err
		}
		a.opts.Logger.Error("an archived segment cannot be read", "shard", a.opts.Shard.String(), "segment", last.Key, "reason", err.Error())
		segments = segments[:len(segments)-1]
	}
	return nil, nil //nolint:nilnil // there is none
}

// maxSegmentObject bounds what is read as a segment.
const maxSegmentObject = 2 * segment.MaxRawBytes

// readSegment reads a segment and checks that it is what its key says.
func readSegment(ctx context.Context, objects blob.Store, stored StoredSegment, cluster base.ClusterID, shard base.Shard) (*segment.Segment, error) {
	data, err := readObject(ctx, objects, stored.Key, maxSegmentObject)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", stored.Key, err)
	}
	s, err := segment.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", stored.Key, err)
	}
	switch {
	case s.Cluster != cluster:
		return nil, fmt.Errorf("reading %s: it is of cluster %s, want %s: %w", stored.Key, s.Cluster, cluster, base.ErrForeign)
	case s.Shard != shard, s.From != stored.From, s.To != stored.To:
		return nil, fmt.Errorf("reading %s: it holds %d to %d of %s: %w", stored.Key, s.From, s.To, s.Shard, base.ErrCorrupt)
	}
	return s, nil
}
