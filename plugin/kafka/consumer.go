package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

const (
	// maxPollRecords bounds what one poll queues.
	maxPollRecords = 4096
	// maxQueuedBytes bounds what all queues hold before the next poll.
	maxQueuedBytes = 16 << 20
	// minPause and maxPause bound the pauses before a batch is delivered again.
	minPause = 10 * time.Millisecond
	maxPause = 5 * time.Second
	// finalCommit bounds a commit that something waits for.
	finalCommit = 5 * time.Second
)

// consumer reads topics from a connection's begin to its end. It is safe for
// concurrent use.
type consumer struct {
	conf   *config.KafkaInput
	clock  engine.Clock
	logger *service.Logger
	client *kgo.Client
	// window is how far what is handed out may be beyond what is committed.
	window int64

	ctx    context.Context //nolint:containedctx // the lifetime of the goroutines
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu sync.Mutex
	// All below are guarded by mu.
	partitions map[place]*partition
	// waiting are the partitions with a queue, those first whose turn is next.
	waiting []*partition
	// queuedBytes is what all queues hold.
	queuedBytes int64
	// changed is closed, and replaced, when any of this has changed.
	changed chan struct{}
	// committing is set while a commit is under way that did not wait for its
	// period.
	committing bool
	// failed ends the connection.
	failed error
	// told is the newest trouble that was logged.
	told string
}

// newConsumer returns a consumer that is to connect.
func newConsumer(conf *config.KafkaInput, logger *service.Logger, clock engine.Clock, window int64) *consumer {
	return &consumer{
		conf: conf, clock: clock, logger: logger, window: window,
		partitions: make(map[place]*partition), changed: make(chan struct{}),
	}
}

// options are those of the consumer's client.
func (c *consumer) options() []kgo.Opt {
	opts := clientOptions(c.conf, c.logger)
	if c.conf.ConsumerGroup != "" {
		opts = append(opts, groupOptions(c.conf, c)...)
	}
	return opts
}

// connect connects and begins to read. The error is that of the brokers; nothing is
// left to close then.
func (c *consumer) connect(ctx context.Context) error {
	c.ctx, c.cancel = context.WithCancel(context.Background()) // before the client may call back
	client, err := kgo.NewClient(c.options()...)
	if err != nil {
		c.cancel()
		return fmt.Errorf("configuring the client: %w", err)
	}
	c.client = client
	if err := c.check(ctx); err != nil {
		return errors.Join(err, c.close(ctx))
	}
	c.tasks.Go(c.poll)
	return nil
}

// check asks the brokers for the topics, so that an address or a password that is
// wrong is told at once.
func (c *consumer) check(ctx context.Context) error {
	if err := c.client.Ping(ctx); err != nil {
		return fmt.Errorf("connecting to the brokers %v: %w", c.conf.SeedBrokers, err)
	}
	if c.conf.Regexp {
		return nil
	}
	missing, err := missingTopics(ctx, c.client, c.conf.Topics)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		c.logger.Warnf("waiting for topics that do not exist: %v", missing)
	}
	return nil
}

// poll moves records from the client to the queues until the consumer closes.
func (c *consumer) poll() {
	for c.awaitRoom() {
		fetches := c.client.PollRecords(c.ctx, maxPollRecords)
		c.note(fetches.Errors())
		fetches.EachPartition(c.add)
		c.client.AllowRebalance()
	}
}

// awaitRoom waits until the queues hold little, and reports whether to go on.
func (c *consumer) awaitRoom() bool {
	return c.await(c.ctx, nil, func() bool { return c.queuedBytes < maxQueuedBytes })
}

// await waits until a condition, which it asks under the lock, holds. It returns
// false when the context or the consumer ends, or when timeout delivers.
func (c *consumer) await(ctx context.Context, timeout <-chan time.Time, condition func() bool) bool {
	for {
		c.mu.Lock()
		holds, changed := condition(), c.changed
		c.mu.Unlock()
		if c.ctx.Err() != nil {
			return false
		}
		if holds {
			return true
		}
		select {
		case <-changed:
		case <-timeout:
			return false
		case <-ctx.Done():
			return false
		case <-c.ctx.Done():
			return false
		}
	}
}

// signalLocked wakes everyone who waits.
func (c *consumer) signalLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// add queues what was read of one partition.
func (c *consumer) add(fetched kgo.FetchTopicPartition) {
	if len(fetched.Records) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := place{topic: fetched.Topic, partition: fetched.Partition}
	p := c.partitions[at]
	if p == nil {
		first := fetched.Records[0].Offset
		p = &partition{place: at, accepted: first, committed: first}
		c.partitions[at] = p
	}
	if len(p.queue) == 0 {
		c.waiting = append(c.waiting, p)
	}
	most := limits{messages: c.conf.MaxBatchMessages, bytes: c.conf.MaxBatchBytes, span: c.window}
	for _, b := range split(p, fetched.Records, fetched.HighWatermark, most) {
		b.extent = p.checkpoint.add(b.next())
		c.pushLocked(b, len(p.queue))
	}
	if p.queued >= c.conf.CheckpointLimit {
		p.paused = true
		c.client.PauseFetchPartitions(p.byTopic())
	}
	c.signalLocked()
}

// pushLocked puts a batch into its partition's queue.
func (c *consumer) pushLocked(b *batch, at int) {
	p := b.partition
	p.queue = slices.Insert(p.queue, at, b)
	p.queued += len(b.entries)
	c.queuedBytes += b.bytes
}

// next returns the next batch of any partition that may have one more in flight.
// It returns service.ErrNotConnected when the connection failed.
func (c *consumer) next(ctx context.Context) (*batch, error) {
	var b *batch
	var failed error
	c.await(ctx, nil, func() bool {
		if failed = c.failed; failed == nil {
			b = c.popLocked()
		}
		return b != nil || failed != nil
	})
	switch {
	case b != nil:
		return b, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case failed != nil:
		c.logger.Errorf("reading fails, connecting again: %v", failed)
	}
	return nil, service.ErrNotConnected
}

// popLocked takes the first batch of the first partition that may deliver, whose
// next turn is then the last.
func (c *consumer) popLocked() *batch {
	window := c.window
	if c.conf.ConsumerGroup == "" {
		window = 0
	}
	i := slices.IndexFunc(c.waiting, func(p *partition) bool { return p.deliverable(c.conf.CheckpointLimit, window) })
	if i < 0 {
		return nil
	}
	p := c.waiting[i]
	c.waiting = slices.Delete(c.waiting, i, i+1)
	b := p.queue[0]
	p.queue[0] = nil
	if p.queue = p.queue[1:]; len(p.queue) > 0 {
		c.waiting = append(c.waiting, p)
	}
	p.queued -= len(b.entries)
	p.inFlight += len(b.entries)
	c.queuedBytes -= b.bytes
	if p.paused && p.queued < c.conf.CheckpointLimit {
		p.paused = false
		c.client.ResumeFetchPartitions(p.byTopic())
	}
	c.signalLocked()
	return b
}

// accept notes that a batch, or the last rest of it, was accepted.
func (c *consumer) accept(b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := b.partition
	p.inFlight -= len(b.entries)
	if next, moved := p.checkpoint.finish(b.extent); moved && p.state != gone {
		p.accepted = next.Offset
		c.client.MarkCommitOffsets(map[string]map[int32]kgo.EpochOffset{p.topic: {p.partition: next}})
		c.commitEarlyLocked(p)
	}
	c.signalLocked()
}

// reject delivers those entries of a batch that were rejected again, after a
// pause. Those of a partition that moves or moved are its new owner's to deliver.
func (c *consumer) reject(b *batch, rejected []entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.signalLocked()
	p := b.partition
	p.inFlight -= len(b.entries)
	if p.state != owned || c.ctx.Err() != nil {
		return
	}
	again := &batch{partition: p, entries: rejected, extent: b.extent, attempt: b.attempt + 1}
	for i := range rejected {
		again.bytes += rejected[i].size()
	}
	p.inFlight += len(rejected) // while it pauses, so that its order is that of before
	c.tasks.Go(func() { c.requeue(again) })
}

// requeue puts a rejected batch before its partition's others, after a pause.
func (c *consumer) requeue(b *batch) {
	select {
	case <-c.clock.After(pause(b.attempt)):
	case <-c.ctx.Done():
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := b.partition
	p.inFlight -= len(b.entries)
	if p.state == owned {
		if len(p.queue) == 0 {
			c.waiting = append(c.waiting, p)
		}
		c.pushLocked(b, 0)
	}
	c.signalLocked()
}

// pause is how long to wait before a batch's delivery n, from 1, is repeated.
func pause(n int) time.Duration {
	return min(maxPause, minPause<<min(n-1, 10))
}

// close stops reading and leaves the group. What was accepted is committed, as far
// as ctx and finalCommit allow. Batches that are out stay unaccepted.
func (c *consumer) close(ctx context.Context) error {
	c.mu.Lock()
	c.cancel() // under the lock, so that no batch starts a task from here on
	c.mu.Unlock()
	c.tasks.Wait()
	err := c.commit(ctx, c.client)
	leaving, cancel := context.WithTimeout(ctx, finalCommit)
	defer cancel()
	if leave := c.client.LeaveGroupContext(leaving); leave != nil && err == nil {
		err = fmt.Errorf("leaving the group %s: %w", c.conf.ConsumerGroup, leave)
	}
	c.client.CloseAllowingRebalance()
	return err
}
