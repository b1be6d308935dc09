package log

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/compacted"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// entriesAhead is how many index entries a reader looks at beyond the one that
// it reads, to join and to prefetch them.
const entriesAhead = 16

// Reader reads one log. Reads that continue where the last one ended are cheap:
// the place is kept. It is not safe for concurrent use; make one per goroutine.
type Reader struct {
	fetcher *Fetcher
	index   Index
	log     base.LogID
	cluster base.ClusterID
	raw     *recordbatch.Reader

	// cursor walks entry and stands at next; it is nil when no place is kept.
	cursor cursor
	entry  shard.Entry
	next   base.Offset
	// trimmed says that what was trimmed softly is read too.
	trimmed bool
	// part is the extent that was read last and data its bytes: the next entries
	// may lie in it too.
	part cacheKey
	data []byte
	// sizeHint is the number of records of the last batch.
	sizeHint int
	// one reads single records; nil until the first is asked for.
	one *Reader
}

// NewReader returns a reader of a log. It makes no request and needs no Close.
func NewReader(fetcher *Fetcher, index Index, log base.LogID) *Reader {
	raw := recordbatch.NewReader(recordbatch.MaxBatchBytes)
	raw.KeepBuffers()
	return &Reader{fetcher: fetcher, index: index, log: log, cluster: index.Cluster(), raw: raw, next: -1}
}

// Read returns records from start on: at least one where the log has one, and no
// more than the limits and one kind of storage allow. At the head it returns an
// empty batch.
//
// An offset before the first live one, or the first retained one where the limits
// include what was trimmed softly, is base.ErrTrimmed, one beyond the head
// base.ErrInvalid, a log that is gone base.ErrNotFound. Bytes that fail their
// checksums, and objects that the index names and that are not there, are
// base.ErrCorrupt; the error says which. What was read before an error is
// returned first, and the error by the next read. Records are not returned in
// part and none is skipped.
func (r *Reader) Read(ctx context.Context, start base.Offset, limits Limits) (Batch, error) {
	limits, err := limits.withDefaults()
	if err != nil {
		return Batch{}, err
	}
	b := batchBuilder{limits: limits, Batch: Batch{Next: start}}
	r.trimmed = limits.IncludeTrimmed
	if err = r.check(start); err == nil {
		err = r.fill(ctx, &b)
	}
	if len(b.Records) == 0 {
		return Batch{Next: start}, err
	}
	r.sizeHint = len(b.Records)
	r.fetcher.returned.Add(b.Bytes)
	return b.Batch, nil
}

// check refuses an offset that cannot be read now, though the place may be kept.
func (r *Reader) check(offset base.Offset) error {
	found, err := r.index.Lookup(r.log, offset, 0)
	if err != nil {
		return fmt.Errorf("looking up offset %d of log %s: %w", offset, r.log, err)
	}
	return r.outside(&found, offset)
}

// outside returns the error of an offset that lies outside of what can be read.
func (r *Reader) outside(found *Lookup, offset base.Offset) error {
	switch readable := found.readable(r.trimmed); {
	case offset < readable.Start:
		return fmt.Errorf("reading offset %d of log %s, which begins at %d: %w", offset, r.log, readable.Start, base.ErrTrimmed)
	case offset > readable.End:
		return fmt.Errorf("%w: reading offset %d of log %s, which ends at %d", base.ErrInvalid, offset, r.log, readable.End)
	}
	return nil
}

// Tail is Read that waits at the head until there is a record or ctx ends. While
// it waits it makes no request.
func (r *Reader) Tail(ctx context.Context, start base.Offset, limits Limits) (Batch, error) {
	for {
		batch, err := r.Read(ctx, start, limits)
		if err != nil || len(batch.Records) > 0 {
			return batch, err
		}
		if err := r.index.WaitHead(ctx, r.log, start); err != nil {
			return batch, fmt.Errorf("waiting for log %s to grow beyond %d: %w", r.log, start, err)
		}
	}
}

func (r *Reader) fill(ctx context.Context, b *batchBuilder) error {
	for len(b.Records) < b.limits.MaxMessages {
		record, err := r.peek(ctx, b.Next)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if len(b.Records) == 0 {
			b.Storage = r.entry.Storage
			b.Records = make([]recordbatch.Positioned, 0, min(b.limits.MaxMessages, max(r.sizeHint, 16)))
		}
		if b.Storage != r.entry.Storage || !b.add(record, r.cursor.ownsHeaders()) {
			return nil
		}
		r.advance()
	}
	return nil
}

// advance goes on to the record after the one that peek returned.
func (r *Reader) advance() {
	r.cursor.advance()
	r.next++
}

// peek returns the record at an offset, valid until advance, or io.EOF at the
// head. When the object that holds it is gone, it looks into the index once more,
// because compaction may have replaced it.
func (r *Reader) peek(ctx context.Context, offset base.Offset) (*recordbatch.Positioned, error) {
	record, err := r.tryPeek(ctx, offset)
	if err == nil {
		return record, nil
	}
	if errors.Is(err, errVanished) {
		record, err = r.tryPeek(ctx, offset)
	}
	return record, lost(err)
}

// lost marks the error of an object that is not where the index says.
func lost(err error) error {
	if errors.Is(err, errVanished) {
		return base.WithClass(base.ErrCorrupt, fmt.Errorf("%w: restore it from a copy of the store, or trim the log past it", err))
	}
	return err
}

// errVanished says that an object which the index named was not in the store.
var errVanished = errors.New("the object does not exist")

func (r *Reader) tryPeek(ctx context.Context, offset base.Offset) (*recordbatch.Positioned, error) {
	for {
		if r.cursor == nil || r.next != offset {
			if err := r.open(ctx, offset); err != nil {
				return nil, err
			}
		}
		record, err := r.cursor.peek(ctx)
		if err == nil {
			return record, nil
		}
		entry := r.entry
		r.drop()
		if !errors.Is(err, io.EOF) {
			return nil, r.explain(&entry, offset, err)
		}
		if offset != entry.Range.End {
			return nil, r.explain(&entry, offset, base.WithClass(base.ErrCorrupt, errors.New("the entry ends early")))
		}
	}
}

// drop forgets the place.
func (r *Reader) drop() {
	if r.cursor != nil {
		r.cursor.close()
		r.cursor = nil
	}
}

// open finds the entry that covers an offset and places a cursor there. At the
// head it returns io.EOF.
func (r *Reader) open(ctx context.Context, offset base.Offset) error {
	// A reader that comes from where the last entry ended wants the next ones too.
	sequential := r.next == offset
	r.drop()
	found, err := r.index.Lookup(r.log, offset, 1+entriesAhead)
	if err != nil {
		return fmt.Errorf("looking up offset %d of log %s: %w", offset, r.log, err)
	}
	if err := r.outside(&found, offset); err != nil {
		return err
	}
	if offset == found.Live.End {
		r.next = offset
		return io.EOF
	}
	if len(found.Entries) == 0 || !found.Entries[0].Range.Contains(offset) {
		return base.WithClass(base.ErrCorrupt, fmt.Errorf("looking up offset %d of log %s %s: no index entry covers it",
			offset, r.log, found.Live))
	}
	entry := &found.Entries[0]
	opened, err := r.openEntry(ctx, found.Entries, offset, sequential)
	if err != nil {
		return r.explain(entry, offset, err)
	}
	r.cursor, r.entry, r.next = opened, *entry, offset
	return nil
}

// openEntry places a cursor in the first of the entries.
func (r *Reader) openEntry(ctx context.Context, entries []shard.Entry, offset base.Offset, sequential bool) (cursor, error) {
	if entries[0].Storage == shard.Compacted {
		return r.openCompacted(ctx, &entries[0], offset, sequential)
	}
	e := &entries[0]
	if !r.holds(e) {
		if err := r.readExtent(ctx, entries, sequential); err != nil {
			return nil, err
		}
	}
	return newRawCursor(r.raw, e, r.data[e.Pos-r.part.pos:][:e.Len], offset)
}

// holds reports whether the extent that was read last has the block of an entry.
func (r *Reader) holds(e *shard.Entry) bool {
	return r.data != nil && e.Pos >= r.part.pos && e.Pos+e.Len <= r.part.pos+r.part.len && e.Key() == r.part.object
}

// readExtent reads what the first of the entries needs, and starts to read what
// the others need when they will be wanted.
func (r *Reader) readExtent(ctx context.Context, entries []shard.Entry, sequential bool) error {
	part, covered := extentOf(entries)
	if sequential {
		r.prefetch(entries[covered:])
	}
	r.data = nil
	data, err := r.fetcher.read(ctx, part)
	if err != nil {
		return err
	}
	r.part, r.data = part, data
	return nil
}

// prefetch starts to read what the raw entries name, up to the first that is
// compacted. The last object may have more blocks than the lookup showed, and
// waits for the next one.
func (r *Reader) prefetch(entries []shard.Entry) {
	for len(entries) > 0 && entries[0].Storage == shard.Raw {
		part, covered := extentOf(entries)
		if covered == len(entries) && covered > 1 {
			return
		}
		r.fetcher.prefetch(part)
		entries = entries[covered:]
	}
}

func (r *Reader) openCompacted(ctx context.Context, e *shard.Entry, offset base.Offset, sequential bool) (cursor, error) {
	object, source, err := r.openObject(ctx, e)
	if err != nil {
		return nil, err
	}
	source.sequential = sequential
	scanner, err := object.ReadFrom(offset)
	if err != nil {
		return nil, err
	}
	return &compactedCursor{source: source, scanner: scanner}, nil
}

func (r *Reader) openObject(ctx context.Context, e *shard.Entry) (*compacted.Reader, *objectSource, error) {
	source := &objectSource{fetcher: r.fetcher, key: e.Key(), size: e.Size, ctx: ctx}
	object, err := r.fetcher.open(ctx, source, compacted.Meta{Cluster: r.cluster, Shard: e.Shard, Log: e.Log, Range: e.Range})
	return object, source, err
}

// explain says where a read failed. Damaged bytes are not kept in the cache: they
// may be right in the store.
func (r *Reader) explain(e *shard.Entry, offset base.Offset, err error) error {
	key := e.Key()
	switch {
	case errors.Is(err, base.ErrNotFound):
		err = fmt.Errorf("%w: %s", errVanished, err.Error())
	case errors.Is(err, base.ErrCorrupt):
		r.fetcher.cache.forget(key)
		r.data = nil
	}
	return fmt.Errorf("reading offset %d of log %s from object %s (entry %s, bytes [%d, %d)): %w",
		offset, r.log, key, e.Range, e.Pos, e.Pos+e.Len, err)
}

// OffsetOfTime returns the first live offset whose append time is at or after t,
// or the head when there is none. Errors are those of Read.
func (r *Reader) OffsetOfTime(ctx context.Context, t base.Millis) (base.Offset, error) {
	offset, err := r.tryOffsetOfTime(ctx, t)
	if errors.Is(err, errVanished) {
		offset, err = r.tryOffsetOfTime(ctx, t)
	}
	return offset, lost(err)
}

func (r *Reader) tryOffsetOfTime(ctx context.Context, t base.Millis) (base.Offset, error) {
	// The range before the entry: a log that grows in between only makes the
	// head that is returned an older one.
	found, err := r.index.Lookup(r.log, 0, 0)
	if err != nil {
		return 0, fmt.Errorf("looking up time %d in log %s: %w", t, r.log, err)
	}
	entry, ok, err := r.index.FindTime(r.log, t)
	switch {
	case err != nil:
		return 0, fmt.Errorf("looking up time %d in log %s: %w", t, r.log, err)
	case !ok:
		return found.Live.End, nil
	case entry.Storage == shard.Raw:
		return max(entry.Range.Start, found.Live.Start), nil
	}
	object, _, err := r.openObject(ctx, &entry)
	if err != nil {
		return 0, r.explain(&entry, entry.Range.Start, err)
	}
	offset, err := object.OffsetOfTime(t)
	if err != nil {
		return 0, r.explain(&entry, entry.Range.Start, err)
	}
	return max(offset, found.Live.Start), nil
}
