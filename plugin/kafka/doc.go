// Package kafka registers the input kafka with Benthos. Import it for its effect:
//
//	import _ "github.com/lakestream-go/lakestream/plugin/kafka"
//
// It is a source with offsets: what it delivers again after a restart has the
// topic, partition and offset that it had before, by which an output may tell what
// it wrote already. Distributions that have a Kafka input of their own need this one
// not.
//
// One goroutine polls the brokers and queues batches by partition; ReadBatch takes
// them in turn. A partition keeps a checkpoint, the offset before everything that
// was not accepted, and only that is ever committed. Rebalances wait while records
// are on their way from the client to the queues, so that a queue never holds
// records of a partition that moved: what is queued then is dropped, and what is in
// flight may be accepted within a bounded time.
package kafka
