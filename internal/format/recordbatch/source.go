package recordbatch

import (
	"errors"
	"fmt"
	"io"

	"github.com/lakestream-go/lakestream/internal/base"
)

// entrySource is a Source over blocks in memory.
type entrySource struct {
	entries []Entry
	offsets base.OffsetRange
}

// NewSource presents entries of one log, whose offsets must follow on each
// other, as one range. Anything else, and no entry at all, is base.ErrInvalid.
// The blocks are checked as they are read. The source keeps entries and may be
// read by several goroutines at once.
func NewSource(entries []Entry) (Source, error) {
	if len(entries) == 0 {
		return nil, fmt.Errorf("reading entries: none given: %w", base.ErrInvalid)
	}
	offsets := base.OffsetRange{Start: entries[0].Base, End: entries[0].Base}
	for i := range entries {
		r := entries[i].Range()
		if r.Start != offsets.End || r.Len() < 1 {
			return nil, fmt.Errorf("reading entries: %s follows on %s: %w", r, offsets, base.ErrInvalid)
		}
		offsets.End = r.End
	}
	return &entrySource{entries: entries, offsets: offsets}, nil
}

func (s *entrySource) Range() base.OffsetRange { return s.offsets }

func (s *entrySource) Each(yield func(*Positioned) error) error {
	reader := NewReader(MaxBatchBytes)
	for i := range s.entries {
		reader.Reset(s.entries[i])
		if err := eachRecord(reader, yield); err != nil {
			return err
		}
	}
	return nil
}

func eachRecord(reader *Reader, yield func(*Positioned) error) error {
	for {
		record, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := yield(record); err != nil {
			return err
		}
	}
}
