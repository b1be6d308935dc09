package log

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Bounds returns the live range: from the first live offset to the head.
func (r *Reader) Bounds() (base.OffsetRange, error) {
	found, err := r.lookup(0, 0)
	return found.Live, err
}

// First returns the first live offset, or the first retained one with what was
// trimmed softly. A log that holds nothing of that has none: false.
func (r *Reader) First(includeTrimmed bool) (first base.Offset, ok bool, err error) {
	found, err := r.lookup(0, 0)
	readable := found.readable(includeTrimmed)
	return readable.Start, err == nil && readable.Len() > 0, err
}

// Last returns the last live offset. A log that holds nothing live has none: false.
func (r *Reader) Last() (last base.Offset, ok bool, err error) {
	found, err := r.lookup(0, 0)
	return found.Live.End - 1, err == nil && found.Live.Len() > 0, err
}

// Count returns how many live records a range of offsets holds. The range may reach
// beyond the log on either side; one that ends before it starts is base.ErrInvalid.
func (r *Reader) Count(offsets base.OffsetRange) (int64, error) {
	if offsets.End < offsets.Start {
		return 0, fmt.Errorf("%w: counting the records of %s", base.ErrInvalid, offsets)
	}
	found, err := r.lookup(0, 0)
	if err != nil {
		return 0, err
	}
	return max(0, int64(min(offsets.End, found.Live.End)-max(offsets.Start, found.Live.Start))), nil
}

// Size returns how many bytes were appended to the log in all its life, as stored:
// compressed, before compaction, and whatever was trimmed since.
func (r *Reader) Size() (int64, error) {
	found, err := r.lookup(0, 0)
	return found.Bytes, err
}

// Entry returns the index entry that covers a retained offset: the object that holds
// it, and which other offsets that holds. An offset before the first retained one is
// base.ErrTrimmed, the head and what is beyond base.ErrNotFound.
func (r *Reader) Entry(offset base.Offset) (shard.Entry, error) {
	found, err := r.lookup(offset, 1)
	switch {
	case err != nil:
		return shard.Entry{}, err
	case offset < found.Floor:
		return shard.Entry{}, fmt.Errorf("looking up offset %d of log %s, which begins at %d: %w", offset, r.log, found.Floor, base.ErrTrimmed)
	case len(found.Entries) == 0:
		return shard.Entry{}, fmt.Errorf("looking up offset %d of log %s, which ends at %d: %w", offset, r.log, found.Live.End, base.ErrNotFound)
	}
	return found.Entries[0], nil
}

// Entries returns the index entries that hold retained offsets of a range, in order,
// at most limit. Go on from the end of the last one. As compaction goes on, entries
// are replaced by such that hold more.
func (r *Reader) Entries(offsets base.OffsetRange, limit int) ([]shard.Entry, error) {
	if limit < 1 {
		return nil, fmt.Errorf("%w: looking up at most %d entries", base.ErrInvalid, limit)
	}
	found, err := r.lookup(offsets.Start, limit)
	if err != nil {
		return nil, err
	}
	n := 0
	for n < len(found.Entries) && found.Entries[n].Range.Start < offsets.End {
		n++
	}
	return found.Entries[:n], nil
}

func (r *Reader) lookup(offset base.Offset, limit int) (Lookup, error) {
	found, err := r.index.Lookup(r.log, offset, limit)
	if err != nil {
		return Lookup{}, fmt.Errorf("looking up log %s: %w", r.log, err)
	}
	return found, nil
}

// ReadOne returns the record at a live offset. The head, and what is beyond, is
// base.ErrNotFound; other errors are those of Read. It does not disturb the place
// that Read keeps.
func (r *Reader) ReadOne(ctx context.Context, offset base.Offset) (recordbatch.Positioned, error) {
	if r.one == nil {
		r.one = NewReader(r.fetcher, r.index, r.log)
	}
	batch, err := r.one.Read(ctx, offset, Limits{MaxMessages: 1})
	r.one.next = -1 // one that is read next is no sequel
	switch {
	case errors.Is(err, base.ErrInvalid), err == nil && len(batch.Records) == 0:
		return recordbatch.Positioned{}, fmt.Errorf("reading offset %d of log %s, which does not go that far: %w", offset, r.log, base.ErrNotFound)
	case err != nil:
		return recordbatch.Positioned{}, err
	}
	return batch.Records[0], nil
}

// Search returns the first live offset whose record reached holds for, or the head
// when there is none. It reads a number of records that grows with the logarithm of
// the log. reached must hold for every record after one that it holds for; else the
// offset is one where it begins to hold, not always the first. Errors are those of
// Read.
func (r *Reader) Search(ctx context.Context, reached func(*recordbatch.Positioned) bool) (base.Offset, error) {
	found, err := r.lookup(0, 0)
	if err != nil {
		return 0, err
	}
	low, high := found.Live.Start, found.Live.End
	for low < high {
		middle := low + (high-low)/2
		record, err := r.ReadOne(ctx, middle)
		switch {
		case errors.Is(err, base.ErrTrimmed): // while the search went on
			low = middle + 1
		case err != nil:
			return 0, err
		case reached(&record):
			high = middle
		default:
			low = middle + 1
		}
	}
	return low, nil
}

// OffsetOfTimestamp returns the first live offset whose own time is at or after t, or
// the head when there is none. Producers set these times: where they go back, it is
// an offset at which they pass t. OffsetOfTime goes by append times, which never go
// back. Errors are those of Read.
func (r *Reader) OffsetOfTimestamp(ctx context.Context, t base.Millis) (base.Offset, error) {
	return r.Search(ctx, func(p *recordbatch.Positioned) bool { return p.Timestamp >= t })
}
