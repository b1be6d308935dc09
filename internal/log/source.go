package log

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

// rangeSource is a Source over a range of a log, raw or compacted.
type rangeSource struct {
	ctx     context.Context // recordbatch.Source takes none
	fetcher *Fetcher
	index   Index
	log     base.LogID
	offsets base.OffsetRange
}

// NewSource presents a range of a log. Each finds the records wherever they are
// when it reads them, until ctx ends; it can run several times, also at once. Its
// errors are those of Reader.Read. A range that the log does not retain now is
// base.ErrTrimmed or base.ErrInvalid; what was trimmed softly is retained, and is
// rewritten and proved like the rest.
func NewSource(ctx context.Context, fetcher *Fetcher, index Index, log base.LogID, offsets base.OffsetRange) (recordbatch.Source, error) {
	found, err := index.Lookup(log, offsets.Start, 0)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s of log %s: %w", offsets, log, err)
	case offsets.Start < found.Floor:
		return nil, fmt.Errorf("reading %s of log %s, which begins at %d: %w", offsets, log, found.Floor, base.ErrTrimmed)
	case offsets.End < offsets.Start || offsets.End > found.Live.End:
		return nil, fmt.Errorf("%w: reading %s of log %s %s", base.ErrInvalid, offsets, log, found.Live)
	}
	return &rangeSource{ctx: ctx, fetcher: fetcher, index: index, log: log, offsets: offsets}, nil
}

// Range implements recordbatch.Source.
func (s *rangeSource) Range() base.OffsetRange { return s.offsets }

// Each implements recordbatch.Source.
func (s *rangeSource) Each(yield func(*recordbatch.Positioned) error) error {
	r := NewReader(s.fetcher, s.index, s.log)
	defer r.drop()
	r.trimmed = true
	// The whole range will be read, so the first entry looks ahead already.
	r.next = s.offsets.Start
	for offset := s.offsets.Start; offset < s.offsets.End; offset++ {
		record, err := r.peek(s.ctx, offset)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if err := yield(record); err != nil {
			return err
		}
		r.advance()
	}
	return nil
}
