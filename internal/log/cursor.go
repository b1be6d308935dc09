package log

import (
	"context"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/compacted"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// cursor walks the records of one index entry.
type cursor interface {
	// peek returns the record that the cursor stands at, or io.EOF behind the
	// last one of the entry. It is valid until advance.
	peek(ctx context.Context) (*recordbatch.Positioned, error)
	advance()
	// ownsHeaders says whether the headers of a record outlive advance.
	ownsHeaders() bool
	close()
}

// rawCursor walks a block in the log's own format.
type rawCursor struct {
	reader *recordbatch.Reader
	record *recordbatch.Positioned
}

// newRawCursor takes over a reader and places it at an offset of the entry.
func newRawCursor(reader *recordbatch.Reader, e *shard.Entry, block []byte, offset base.Offset) (*rawCursor, error) {
	reader.Reset(recordbatch.Entry{
		Base: e.Range.Start, Records: int(e.Range.Len()),
		Revision: e.Revision, AppendTime: e.AppendTime, Data: block,
	})
	if offset > e.Range.Start {
		if err := reader.SkipTo(offset); err != nil {
			return nil, err
		}
	}
	return &rawCursor{reader: reader}, nil
}

func (c *rawCursor) peek(context.Context) (*recordbatch.Positioned, error) {
	if c.record != nil {
		return c.record, nil
	}
	record, err := c.reader.Next()
	if err != nil {
		return nil, err
	}
	c.record = record
	return record, nil
}

func (c *rawCursor) advance()          { c.record = nil }
func (c *rawCursor) ownsHeaders() bool { return false }
func (c *rawCursor) close()            {}

// compactedCursor walks a compacted object.
type compactedCursor struct {
	source  *objectSource
	scanner *compacted.Scanner
	batch   []recordbatch.Positioned
	at      int
}

// scanRows is how many rows a compacted cursor decodes at once.
const scanRows = 1024

func (c *compactedCursor) peek(ctx context.Context) (*recordbatch.Positioned, error) {
	if c.at < len(c.batch) {
		return &c.batch[c.at], nil
	}
	c.source.ctx = ctx
	batch, err := c.scanner.Next(c.batch[:0], scanRows)
	if err != nil {
		return nil, err
	}
	c.batch, c.at = batch, 0
	return &c.batch[0], nil
}

func (c *compactedCursor) advance()          { c.at++ }
func (c *compactedCursor) ownsHeaders() bool { return true }
func (c *compactedCursor) close()            { c.scanner.Close() }
