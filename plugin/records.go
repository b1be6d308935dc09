package plugin

import (
	"sync"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// records is a batch of records by partition, and the message that each came
// from. It is used again, so that a write allocates nothing for each message.
type records struct {
	batch engine.Batch
	// origins has for each of batch.Logs the index of each record's message.
	origins [][]int
	// slots has for each partition one more than its place in batch.Logs, or 0.
	slots   []int32
	headers []engine.Header
	failed  []failure
}

var recordsPool = sync.Pool{New: func() any { return new(records) }}

func takeRecords() *records {
	return recordsPool.Get().(*records) //nolint:forcetypeassert // the pool holds nothing else
}

// giveBack forgets everything, which may hold on to messages, and keeps the memory.
func (r *records) giveBack() {
	for i := range r.batch.Logs {
		log := &r.batch.Logs[i]
		clear(log.Records)
		log.Records = log.Records[:0]
		r.origins[i] = r.origins[i][:0]
	}
	r.batch.Logs = r.batch.Logs[:0]
	clear(r.batch.Results)
	clear(r.headers)
	clear(r.failed)
	r.batch.Results, r.headers, r.failed = r.batch.Results[:0], r.headers[:0], r.failed[:0]
	recordsPool.Put(r)
}

// prepare makes room for a stream of n partitions.
func (r *records) prepare(n int) {
	if cap(r.slots) < n {
		r.slots = make([]int32, n)
	}
	r.slots = r.slots[:n]
	clear(r.slots)
}

// add appends the record of the message at index to a partition. At most limit
// records are added in all.
func (r *records) add(p engine.Partition, record engine.Record, index, limit int) {
	slot := int(r.slots[p]) - 1
	if slot < 0 {
		slot = r.addLog(p, limit)
	}
	log := &r.batch.Logs[slot]
	log.Records = append(log.Records, record)
	r.origins[slot] = append(r.origins[slot], index)
}

// addLog appends a partition, with the memory of one that stood there before.
func (r *records) addLog(p engine.Partition, limit int) int {
	slot := len(r.batch.Logs)
	if slot < cap(r.batch.Logs) {
		r.batch.Logs = r.batch.Logs[:slot+1]
	} else {
		r.batch.Logs = append(r.batch.Logs, engine.LogRecords{})
	}
	log := &r.batch.Logs[slot]
	if slot == len(r.origins) {
		r.origins = append(r.origins, nil)
	}
	if slot == 0 && cap(log.Records) < limit { // often the only one
		log.Records, r.origins[0] = make([]engine.Record, 0, limit), make([]int, 0, limit)
	}
	log.Log.Partition = p
	r.slots[p] = int32(slot) + 1 //nolint:gosec // at most MaxPartitions
	return slot
}

// headersOf returns the metadata of a message that the filter chooses.
func (r *records) headersOf(filter *service.MetadataFilter, m *service.Message) []engine.Header {
	start := len(r.headers)
	_ = filter.WalkMut(m, func(key string, value any) error { // the closure returns no error
		r.headers = append(r.headers, engine.Header{Key: key, Value: headerValue(value)})
		return nil
	})
	return r.headers[start:len(r.headers):len(r.headers)]
}

func headerValue(value any) []byte {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		return []byte(v)
	case []byte:
		return v
	default:
		return []byte(bloblang.ValueToString(v))
	}
}

// addFailures adds what the append refused.
func (r *records) addFailures(failed *failures) {
	for i := range r.batch.Results {
		result := &r.batch.Results[i]
		if result.Err != nil {
			for _, index := range r.origins[i] {
				failed.add(index, result.Err)
			}
			continue
		}
		for _, invalid := range result.Invalid {
			failed.add(r.origins[i][invalid.Index], invalid.Err)
		}
	}
}

// failure is a message that was not written, by its index in the batch.
type failure struct {
	index int
	err   error
}

// failures are the messages of one batch that were not written.
type failures struct{ list []failure }

func (f *failures) add(index int, err error) {
	f.list = append(f.list, failure{index: index, err: err})
}

// of returns the failures as the error of a batch: nil when there are none. Benthos
// then repeats those messages alone.
func (f *failures) of(messages service.MessageBatch) error {
	if len(f.list) == 0 {
		return nil
	}
	if len(messages) == 1 {
		return f.list[0].err
	}
	batch := service.NewBatchError(messages, f.list[0].err)
	for _, one := range f.list {
		_ = batch.Failed(one.index, one.err)
	}
	return batch
}
