package kafka

import (
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Names of the metadata that every message has, but for a key that is absent.
const (
	metaTopic         = "kafka_topic"
	metaPartition     = "kafka_partition"
	metaOffset        = "kafka_offset"
	metaKey           = "kafka_key"
	metaTimestampMS   = "kafka_timestamp_ms"
	metaTimestampUnix = "kafka_timestamp_unix"
	metaTombstone     = "kafka_tombstone_message"
	metaLag           = "kafka_lag"
)

// entry is a record and how many of its partition came after it when it was read.
type entry struct {
	record *kgo.Record
	lag    int64
}

// size is what a record counts of a batch's bound.
func (e *entry) size() int64 {
	n := len(e.record.Key) + len(e.record.Value)
	for i := range e.record.Headers {
		n += len(e.record.Headers[i].Key) + len(e.record.Headers[i].Value)
	}
	return int64(n)
}

// message makes the message of a record, whose bytes it shares.
func (e *entry) message() *service.Message {
	r := e.record
	m := service.NewMessage(r.Value)
	for _, h := range r.Headers {
		m.MetaSetMut(h.Key, string(h.Value))
	}
	if r.Key != nil {
		m.MetaSetMut(metaKey, string(r.Key))
	} else {
		m.MetaDelete(metaKey) // a header may have had our name
	}
	m.MetaSetMut(metaTopic, r.Topic)
	m.MetaSetMut(metaPartition, int(r.Partition))
	m.MetaSetMut(metaOffset, r.Offset)
	m.MetaSetMut(metaTimestampMS, r.Timestamp.UnixMilli())
	m.MetaSetMut(metaTimestampUnix, r.Timestamp.Unix())
	m.MetaSetMut(metaTombstone, r.Value == nil)
	m.MetaSetMut(metaLag, e.lag)
	return m
}
