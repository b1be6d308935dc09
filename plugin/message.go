package plugin

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// Names of the metadata that every message of the input has; that of a tombstone
// is beside the output, which reads it.
const (
	metaStream        = "lakestream_stream"
	metaPartition     = "lakestream_partition"
	metaOffset        = "lakestream_offset"
	metaKey           = "lakestream_key"
	metaTimestampMS   = "lakestream_timestamp_ms"
	metaTimestampUnix = "lakestream_timestamp_unix"
	metaLag           = "lakestream_lag"
)

const millisPerSecond = 1000

// builder makes the messages of one partition. What is the same for all of them is
// set once, in a template.
type builder struct{ template *service.Message }

func newBuilder(stream *engine.Stream, number engine.Partition) builder {
	template := service.NewMessage(nil)
	template.MetaSetMut(metaStream, stream.Name())
	template.MetaSetMut(metaPartition, int(number))
	return builder{template: template}
}

// message makes the message of a record, read when the log ended at head. It shares
// the record's value.
func (b builder) message(r *engine.Positioned, head engine.Offset) *service.Message {
	m := b.template.Copy()
	m.SetBytes(r.Value)
	for i := range r.Headers {
		h := &r.Headers[i]
		if h.Value == nil {
			m.MetaSetMut(h.Key, nil)
			continue
		}
		m.MetaSetMut(h.Key, string(h.Value))
	}
	if len(r.Headers) > 0 { // one of them may have had our name
		m.MetaDelete(metaKey)
		m.MetaDelete(metaTombstone)
		name, _ := b.template.MetaGetMut(metaStream)
		m.MetaSetMut(metaStream, name)
		number, _ := b.template.MetaGetMut(metaPartition)
		m.MetaSetMut(metaPartition, number)
	}
	m.MetaSetMut(metaOffset, int64(r.Offset))
	m.MetaSetMut(metaTimestampMS, int64(r.Timestamp))
	m.MetaSetMut(metaTimestampUnix, floorSeconds(r.Timestamp))
	m.MetaSetMut(metaLag, max(0, int64(head-r.Offset-1)))
	if r.Key != nil {
		m.MetaSetMut(metaKey, string(r.Key))
	}
	if r.Value == nil {
		m.MetaSetMut(metaTombstone, true)
	}
	return m
}

// floorSeconds rounds down, before 1970 too.
func floorSeconds(ms engine.Millis) int64 {
	seconds := int64(ms) / millisPerSecond
	if int64(ms)%millisPerSecond < 0 {
		seconds--
	}
	return seconds
}
