package plugin

import (
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

// metaTombstone marks a message whose record has no value, on its way in and out.
const metaTombstone = "lakestream_tombstone"

// converter turns messages into records. It is safe for concurrent use.
type converter struct {
	stream, key, partition, timestamp field
	metadata                          *service.MetadataFilter // nil chooses nothing
	identity                          identity
	// sticky counts batches, whose records without a key share a partition.
	sticky *atomic.Uint32
}

func newConverter(conf *config.Output) converter {
	c := converter{
		stream: newField(conf.Stream), key: newField(conf.Key), partition: newField(conf.Partition), timestamp: newField(conf.TimestampMS),
		identity: newIdentity(&conf.Idempotency), sticky: new(atomic.Uint32),
	}
	if !conf.Metadata.IsEmpty() {
		c.metadata = conf.Metadata
	}
	return c
}

// field is an interpolated field, resolved beforehand when it is the same for all
// messages.
type field struct {
	dynamic *service.InterpolatedString // nil when static
	static  []byte
}

func newField(text *service.InterpolatedString) field {
	if text == nil {
		return field{}
	}
	if static, ok := text.Static(); ok {
		return field{static: []byte(static)}
	}
	return field{dynamic: text}
}

// of returns the field's bytes for a message; none means that it is not set.
func (f *field) of(m *service.Message) ([]byte, error) {
	if f.dynamic == nil {
		return f.static, nil
	}
	return f.dynamic.TryBytes(m)
}

// isSet reports whether the field may yield anything.
func (f *field) isSet() bool { return f.dynamic != nil || len(f.static) > 0 }

// records converts messages for a stream of n partitions: those that pick lists,
// or all when it is nil. Those that cannot be converted become failures.
func (c *converter) records(messages service.MessageBatch, pick []int, n int, now engine.Millis, out *records) {
	out.prepare(n)
	sticky := engine.Partition(c.sticky.Add(1) % uint32(n)) //nolint:gosec // at most MaxPartitions
	count := len(messages)
	if pick != nil {
		count = len(pick)
	}
	for j := range count {
		i := j
		if pick != nil {
			i = pick[j]
		}
		record := engine.Record{Timestamp: now}
		id, err := c.identity.of(messages[i], out.before)
		if err != nil {
			out.failed = append(out.failed, failure{index: i, err: err})
			continue
		}
		out.before = id
		partition, err := c.record(messages[i], n, sticky, &record, out)
		if err != nil {
			out.failed = append(out.failed, failure{index: i, err: err})
			out.spoil(id, err)
			continue
		}
		out.add(partition, id, record, i, count)
	}
	out.dropSpoiled()
}

// record fills in a record and returns its partition.
func (c *converter) record(m *service.Message, n int, sticky engine.Partition, r *engine.Record, out *records) (engine.Partition, error) {
	if err := setValue(m, r); err != nil {
		return 0, err
	}
	partition := sticky
	if c.key.isSet() {
		key, err := c.key.of(m)
		if err != nil {
			return 0, fmt.Errorf("resolving key: %w", err)
		}
		if len(key) > 0 {
			r.Key = key
			partition = engine.Partition(engine.KeyPartition(key, n)) //nolint:gosec // below n
		}
	}
	if c.partition.isSet() {
		explicit, ok, err := c.explicitPartition(m, n)
		if err != nil {
			return 0, err
		}
		if ok {
			partition = explicit
		}
	}
	if c.timestamp.isSet() {
		if err := c.setTimestamp(m, r); err != nil {
			return 0, err
		}
	}
	if c.metadata != nil {
		r.Headers = out.headersOf(c.metadata, m)
	}
	return partition, nil
}

// setValue takes a message's content as it is. Nil means a tombstone to a record,
// so that an empty content must not be nil.
func setValue(m *service.Message, r *engine.Record) error {
	if mark, ok := m.MetaGetMut(metaTombstone); ok && bloblang.ValueToString(mark) == "true" {
		return nil
	}
	value, err := m.AsBytes()
	if err != nil {
		return fmt.Errorf("reading content: %w", err)
	}
	if value == nil {
		value = []byte{}
	}
	r.Value = value
	return nil
}

func (c *converter) explicitPartition(m *service.Message, n int) (p engine.Partition, ok bool, err error) {
	text, err := c.partition.of(m)
	if err != nil {
		return 0, false, fmt.Errorf("resolving partition: %w", err)
	}
	if len(text) == 0 {
		return 0, false, nil
	}
	number, err := strconv.ParseUint(string(text), 10, 31)
	if err != nil || number >= uint64(n) { //nolint:gosec // n is positive
		return 0, false, fmt.Errorf("partition %q: want 0 to %d: %w", text, n-1, engine.ErrInvalid)
	}
	return engine.Partition(number), true, nil
}

func (c *converter) setTimestamp(m *service.Message, r *engine.Record) error {
	text, err := c.timestamp.of(m)
	if err != nil {
		return fmt.Errorf("resolving timestamp_ms: %w", err)
	}
	if len(text) == 0 {
		return nil
	}
	ms, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("timestamp_ms %q: want milliseconds since the Unix epoch: %w", text, engine.ErrInvalid)
	}
	r.Timestamp = engine.Millis(ms)
	return nil
}

// group is the messages of one stream, by index.
type group struct {
	name    string
	indexes []int
}

// byStream groups messages by the stream that they name, in the order in which
// the streams first appear.
func (c *converter) byStream(messages service.MessageBatch, failed *failures) []group {
	var groups []group
	places := make(map[string]int)
	for i, m := range messages {
		name, err := c.stream.of(m)
		if err != nil {
			failed.add(i, fmt.Errorf("resolving stream: %w", err))
			continue
		}
		place, ok := places[string(name)]
		if !ok {
			place = len(groups)
			groups = append(groups, group{name: string(name)})
			places[groups[place].name] = place
		}
		groups[place].indexes = append(groups[place].indexes, i)
	}
	return groups
}
