package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/cursor"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
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
	// LogRecords is a batch's records for one partition, and their sequences when
	// a producer is named.
	LogRecords = wal.LogRecords
	// ProducerSeq numbers what an idempotent producer sends: the same number
	// whenever the same record is sent again.
	ProducerSeq = base.ProducerSeq
	// LogResult is what became of one LogRecords.
	LogResult = wal.LogResult
	// Partition is the index of a log within its stream.
	Partition = base.Partition
	// Offset is the position of a record in a log.
	Offset = base.Offset
	// Millis is a time as milliseconds since the Unix epoch.
	Millis = base.Millis
)

// ProducerWindow is how many sequences, up to the newest one, a stream remembers of
// each producer.
const ProducerWindow = shard.ProducerWindow

// Types that describe streams.
type (
	// StreamConfig is what a caller wants of a stream; the zero value takes
	// the defaults at creation and changes nothing later.
	StreamConfig = catalog.StreamConfig
	// StreamInfo is a stream as one read of its shard showed it.
	StreamInfo = catalog.Stream
	// Settings are what can be changed of a stream, a namespace, or the defaults
	// of a cluster.
	Settings = catalog.Settings
	// TablePolicy says how a stream becomes a table.
	TablePolicy = catalog.TablePolicy
	// Retention says what the logs of a stream keep.
	Retention = catalog.Retention
	// Schema declares what a stream's values are.
	Schema = catalog.Schema
	// Materialization is what becomes of a stream as a table, and why.
	Materialization = catalog.Materialization
)

// Stream is a handle to one incarnation of a stream: when that is deleted, whatever
// is done with the handle fails with ErrStreamPermanentlyDeleted. It is safe for
// concurrent use.
type Stream struct {
	shard *shardEngine
	info  catalog.Stream
}

func (e *Engine) handle(info catalog.Stream) *Stream {
	return &Stream{shard: e.shards[info.Shard], info: info}
}

// EnsureStream returns the stream of this name, creating it and its namespace when
// absent and applying the table and retention fields that cfg sets when it exists.
// Fewer partitions than the stream has, or a change of a table that is filled
// already, is ErrInvalid; a name that was deleted is ErrStreamPermanentlyDeleted.
func (e *Engine) EnsureStream(ctx context.Context, name string, cfg StreamConfig) (*Stream, error) {
	return e.makeStream(ctx, name, cfg, e.catalog.Ensure)
}

// CreateStream creates a stream, and its namespace when that is absent. A stream
// that exists and is what cfg asks for is adopted, another one is ErrAlreadyExists. A
// name that was deleted is ErrStreamPermanentlyDeleted.
func (e *Engine) CreateStream(ctx context.Context, name string, cfg StreamConfig) (*Stream, error) {
	return e.makeStream(ctx, name, cfg, e.catalog.Create)
}

func (e *Engine) makeStream(
	ctx context.Context, name string, cfg StreamConfig, create func(context.Context, base.StreamName, StreamConfig) (StreamInfo, error),
) (*Stream, error) {
	parsed, err := base.ParseStreamName(name)
	if err != nil {
		return nil, err
	}
	info, err := create(ctx, parsed, cfg)
	if err != nil {
		return nil, e.explain(ctx, err)
	}
	return e.handle(info), nil
}

// Stream returns the stream of this name. One that is not there is ErrNoSuchStream,
// one that was deleted ErrStreamPermanentlyDeleted; both match ErrNotFound.
func (e *Engine) Stream(name string) (*Stream, error) {
	parsed, err := base.ParseStreamName(name)
	if err != nil {
		return nil, err
	}
	info, err := e.catalog.Load(parsed)
	if err != nil {
		return nil, err
	}
	return e.handle(info), nil
}

// StreamExists reports whether there is a stream of this name.
func (e *Engine) StreamExists(name string) bool {
	_, err := e.Stream(name)
	return err == nil
}

// Streams returns every stream, by name.
func (e *Engine) Streams() []*Stream {
	all := e.catalog.List()
	streams := make([]*Stream, len(all))
	for i, info := range all {
		streams[i] = e.handle(info)
	}
	return streams
}

// KeptStreams returns what is left of the streams that were dropped without a
// purge, by name: their data, until DropStream is called with purge.
func (e *Engine) KeptStreams() []StreamInfo { return e.catalog.Kept() }

// incarnation returns the stream of a name, or what is kept of it.
func (e *Engine) incarnation(name base.StreamName) (StreamInfo, bool) {
	if info, err := e.catalog.Load(name); err == nil {
		return info, true
	}
	kept := e.catalog.Kept()
	if i := slices.IndexFunc(kept, func(info StreamInfo) bool { return info.Name == name }); i >= 0 {
		return kept[i], true
	}
	return StreamInfo{}, false
}

// DropStream deletes a stream, for ever: its name is never used again. With purge
// its data is given up, else it is kept until DropStream is called with purge. It
// reports false when there was nothing to be deleted. What cursors and groups consumed
// of it is forgotten; the stream's table stays.
func (e *Engine) DropStream(ctx context.Context, name string, purge bool) (dropped bool, err error) {
	parsed, err := base.ParseStreamName(name)
	if err != nil {
		return false, err
	}
	info, found := e.incarnation(parsed)
	if dropped, err = e.catalog.Drop(ctx, parsed, purge); err != nil || !found {
		return dropped, e.explain(ctx, err)
	}
	stream := cursor.Stream{Shard: info.Shard, ID: info.ID, Name: info.Name}
	if err := cursor.ForgetStream(ctx, e.coordination.Documents(), stream); err != nil {
		e.logger.Warn("cursors of a dropped stream stay; drop it with purge to delete them", "stream", name, "error", err)
	}
	return dropped, nil
}

// Name returns the stream's full name: namespace/name.
func (s *Stream) Name() string { return s.info.Name.String() }

// Partitions returns the number of the stream's logs now. It never shrinks.
func (s *Stream) Partitions() int {
	partitions := s.info.Partitions
	s.shard.view.Inspect(func(state *shard.State) {
		if st, ok := state.Stream(s.info.ID); ok {
			partitions = len(st.Logs)
		}
	})
	return partitions
}

// Append makes the batch's records durable and gives them their offsets, which
// batch.Results then holds. Records of one partition get consecutive offsets in
// their order. It waits while too much is buffered. An error means that nothing is
// known beyond the results; each result has an error of its own when its records
// were refused (definite: ErrFenced where the partition is fenced, ErrNotFound where
// the stream was deleted) or may have been appended (ErrUnknown). When ctx ends
// meanwhile, what had entered the buffer may still be appended.
//
// Records that name a producer are appended once, by whichever instance and in
// whatever batches they are sent: those whose sequences the stream has are success
// and listed as duplicates. The stream remembers the ProducerWindow newest sequences
// of each producer, exactly; an older one is ErrInvalid. So a caller must not send
// sequences that far beyond one that is not acknowledged.
func (s *Stream) Append(ctx context.Context, batch *Batch) error {
	partitions := s.Partitions()
	for i := range batch.Logs {
		l := &batch.Logs[i].Log
		if l.Partition < 0 || int(l.Partition) >= partitions {
			return fmt.Errorf("appending to %s: partition %d: the stream has %d: %w", s.Name(), l.Partition, partitions, base.ErrInvalid)
		}
		l.Stream = s.info.ID
	}
	if err := s.shard.awaitIndex(ctx); err != nil {
		return fmt.Errorf("appending to %s: %w", s.Name(), err)
	}
	writer, err := s.shard.openWriter(s.info.ID)
	if err != nil {
		return fmt.Errorf("appending to %s: %w", s.Name(), err)
	}
	if err := writer.Append(ctx, batch); err != nil {
		return fmt.Errorf("appending to %s: %w", s.Name(), err)
	}
	for i := range batch.Results {
		s.explainRefusal(&batch.Results[i], batch.Logs[i].Log.Partition)
	}
	return nil
}

// explainRefusal says in the words of whoever appends why a partition took nothing.
func (s *Stream) explainRefusal(result *LogResult, p Partition) {
	switch {
	case result.Err == nil:
	case errors.Is(result.Err, base.ErrNotFound):
		if _, err := s.shard.engine.catalog.Refresh(s.info); err != nil {
			result.Err = fmt.Errorf("appending: %w", err)
		}
	case errors.Is(result.Err, base.ErrFenced):
		reason := ""
		s.shard.view.Inspect(func(state *shard.State) {
			if l, ok := state.Log(base.LogID{Stream: s.info.ID, Partition: p}); ok {
				reason = l.Fence()
			}
		})
		result.Err = fmt.Errorf("appending to partition %d of %s: %w: %s; stream unfence opens it again",
			p, s.Name(), base.ErrFenced, cmp.Or(reason, "the fence was lifted meanwhile"))
	}
}

// Log returns the log of one partition, or ErrNotFound.
func (s *Stream) Log(p Partition) (*Log, error) {
	if partitions := s.Partitions(); p < 0 || int(p) >= partitions {
		return nil, fmt.Errorf("partition %d of %s, which has %d: %w", p, s.Name(), partitions, base.ErrNotFound)
	}
	return newLog(s, p), nil
}
