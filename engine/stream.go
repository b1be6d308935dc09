package engine

import (
	"context"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/wal"
)

// Types of the append path.
type (
	// Record is what a producer appends: key, value, headers and time.
	Record = recordbatch.Record
	// Header is one name and value attached to a record.
	Header = recordbatch.Header
	// Batch is the records of one append, by partition. Logs[i].Log.Partition
	// chooses the partition; the stream fills in the rest. Using a Batch again
	// saves its allocations.
	Batch = wal.Batch
	// LogRecords is a batch's records for one partition.
	LogRecords = wal.LogRecords
	// LogResult is what became of one LogRecords.
	LogResult = wal.LogResult
	// Partition is the index of a log within its stream.
	Partition = base.Partition
	// Offset is the position of a record in a log.
	Offset = base.Offset
	// Millis is a time as milliseconds since the Unix epoch.
	Millis = base.Millis
)

// Types that describe streams.
type (
	// StreamConfig is what a caller wants of a stream; the zero value takes
	// the defaults at creation and changes nothing later.
	StreamConfig = catalog.StreamConfig
	// TablePolicy says how a stream becomes a table.
	TablePolicy = catalog.TablePolicy
)

// Stream is a handle to one stream. It is safe for concurrent use.
type Stream struct {
	shard *shardEngine
	info  catalog.Stream
}

// EnsureStream returns the stream of this name, creating it when absent and
// applying what cfg sets when it exists. Fewer partitions than the stream has, or
// a change of a table that is filled already, is ErrInvalid.
func (e *Engine) EnsureStream(ctx context.Context, name string, cfg StreamConfig) (*Stream, error) {
	parsed, err := base.ParseStreamName(name)
	if err != nil {
		return nil, err
	}
	info, err := e.catalog.Ensure(ctx, parsed, cfg)
	if err != nil {
		return nil, err
	}
	return &Stream{shard: e.shards[info.Shard], info: info}, nil
}

// Stream returns the stream of this name, or ErrNotFound.
func (e *Engine) Stream(name string) (*Stream, error) {
	parsed, err := base.ParseStreamName(name)
	if err != nil {
		return nil, err
	}
	info, err := e.catalog.Load(parsed)
	if err != nil {
		return nil, err
	}
	return &Stream{shard: e.shards[info.Shard], info: info}, nil
}

// Streams returns every stream, by name.
func (e *Engine) Streams() []*Stream {
	all := e.catalog.List()
	streams := make([]*Stream, len(all))
	for i, info := range all {
		streams[i] = &Stream{shard: e.shards[info.Shard], info: info}
	}
	return streams
}

// Name returns the stream's full name: namespace/name.
func (s *Stream) Name() string { return s.info.Name.String() }

// Partitions returns the number of the stream's logs.
func (s *Stream) Partitions() int { return s.info.Partitions }

// Append makes the batch's records durable and gives them their offsets, which
// batch.Results then holds. Records of one partition get consecutive offsets in
// their order. It waits while too much is buffered. An error means that nothing is
// known beyond the results; each result has an error of its own when its records
// were refused (definite) or may have been appended (ErrUnknown). When ctx ends
// meanwhile, what had entered the buffer may still be appended.
func (s *Stream) Append(ctx context.Context, batch *Batch) error {
	for i := range batch.Logs {
		l := &batch.Logs[i].Log
		if l.Partition < 0 || int(l.Partition) >= s.info.Partitions {
			return fmt.Errorf("appending to %s: partition %d: the stream has %d: %w", s.Name(), l.Partition, s.info.Partitions, base.ErrInvalid)
		}
		l.Stream = s.info.ID
	}
	writer, err := s.shard.openWriter(s.info.ID)
	if err != nil {
		return fmt.Errorf("appending to %s: %w", s.Name(), err)
	}
	if err := writer.Append(ctx, batch); err != nil {
		return fmt.Errorf("appending to %s: %w", s.Name(), err)
	}
	return nil
}

// Log returns the log of one partition, or ErrNotFound.
func (s *Stream) Log(p Partition) (*Log, error) {
	if p < 0 || int(p) >= s.info.Partitions {
		return nil, fmt.Errorf("partition %d of %s, which has %d: %w", p, s.Name(), s.info.Partitions, base.ErrNotFound)
	}
	return newLog(s, p), nil
}
