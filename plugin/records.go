package plugin

import (
	"slices"
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
	slots []int32
	// senders has the place in batch.Logs of a producer's records for a
	// partition, before the identity of the newest message.
	senders map[senderSlot]int
	before  claim
	// spoiled are identities of which a message failed, and why.
	spoiled map[claim]error
	headers []engine.Header
	failed  []failure
}

// senderSlot names a producer's records for a partition.
type senderSlot struct {
	partition engine.Partition
	producer  string
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
		log.Producer, log.Sequences = "", log.Sequences[:0]
		r.origins[i] = r.origins[i][:0]
	}
	clear(r.senders)
	clear(r.spoiled)
	r.before = claim{}
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
func (r *records) add(p engine.Partition, id claim, record engine.Record, index, limit int) {
	slot := r.slot(p, id.producer, limit)
	log := &r.batch.Logs[slot]
	log.Records = append(log.Records, record)
	if id.producer != "" {
		log.Sequences = append(log.Sequences, id.sequence)
	}
	r.origins[slot] = append(r.origins[slot], index)
}

// slot returns the place of a partition, or of a producer's records for it.
func (r *records) slot(p engine.Partition, producer string, limit int) int {
	if producer == "" {
		if slot := int(r.slots[p]) - 1; slot >= 0 {
			return slot
		}
		slot := r.addLog(p, limit)
		r.slots[p] = int32(slot) + 1 //nolint:gosec // at most MaxPartitions
		return slot
	}
	key := senderSlot{partition: p, producer: producer}
	slot, ok := r.senders[key]
	if !ok {
		if r.senders == nil {
			r.senders = make(map[senderSlot]int)
		}
		slot = r.addLog(p, limit)
		r.senders[key] = slot
		r.batch.Logs[slot].Producer = producer
	}
	return slot
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
	return slot
}

// spoil notes that a message failed whose identity others may have too.
func (r *records) spoil(id claim, err error) {
	if id.producer == "" {
		return
	}
	if r.spoiled == nil {
		r.spoiled = make(map[claim]error)
	}
	r.spoiled[id] = err
}

// dropSpoiled takes out what has an identity of which a message failed: appended, it
// would pass for all of them.
func (r *records) dropSpoiled() {
	if len(r.spoiled) == 0 {
		return
	}
	for i := range r.batch.Logs {
		log := &r.batch.Logs[i]
		kept := 0
		for j, sequence := range log.Sequences {
			if err, ok := r.spoiled[claim{producer: log.Producer, sequence: sequence}]; ok {
				r.failed = append(r.failed, failure{index: r.origins[i][j], err: err})
				continue
			}
			log.Records[kept], log.Sequences[kept], r.origins[i][kept] = log.Records[j], sequence, r.origins[i][j]
			kept++
		}
		if log.Producer != "" {
			clear(log.Records[kept:])
			log.Records, log.Sequences, r.origins[i] = log.Records[:kept], log.Sequences[:kept], r.origins[i][:kept]
		}
	}
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

// refused reports whether one of the messages was refused by its stream.
func (f *failures) refused() bool {
	return slices.ContainsFunc(f.list, func(one failure) bool { return isRefusal(one.err) })
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
