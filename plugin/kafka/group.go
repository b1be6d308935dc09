package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// revoked gives partitions up: what is queued is dropped, what is in flight has a
// while to be accepted, and what was accepted is committed. The client calls it, and
// keeps the membership alive meanwhile.
func (c *consumer) revoked(ctx context.Context, client *kgo.Client, moving map[string][]int32) {
	parts := c.release(moving, leaving)
	if len(parts) > 0 {
		settled := c.await(ctx, c.clock.After(c.conf.RebalanceTimeout/2), func() bool {
			return !slices.ContainsFunc(parts, func(p *partition) bool { return p.inFlight > 0 })
		})
		if !settled && c.ctx.Err() == nil {
			c.logger.Warnf("partitions move before everything was accepted: %v is delivered again elsewhere", moving)
		}
	}
	if err := c.commit(ctx, client); err != nil {
		c.logger.Warnf("committing before partitions move: %v", err)
	}
	c.release(moving, gone)
}

// lost forgets partitions that are someone else's already.
func (c *consumer) lost(_ context.Context, _ *kgo.Client, gonePartitions map[string][]int32) {
	c.release(gonePartitions, gone)
}

// release drops the queues of partitions and changes their state. Partitions that
// are gone are forgotten.
func (c *consumer) release(moving map[string][]int32, to state) []*partition {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.signalLocked()
	var parts []*partition
	for topic, numbers := range moving {
		for _, number := range numbers {
			p := c.partitions[place{topic: topic, partition: number}]
			if p == nil {
				continue
			}
			parts = append(parts, p)
			c.dropQueueLocked(p)
			if p.state = to; to == gone {
				delete(c.partitions, p.place)
			}
		}
	}
	return parts
}

func (c *consumer) dropQueueLocked(p *partition) {
	for _, b := range p.queue {
		c.queuedBytes -= b.bytes
	}
	p.queue, p.queued = nil, 0
	if i := slices.Index(c.waiting, p); i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
	}
	if p.paused { // the client remembers it beyond a rebalance
		p.paused = false
		c.client.ResumeFetchPartitions(p.byTopic())
	}
}

// commit commits what was accepted, and waits for it, within finalCommit.
func (c *consumer) commit(ctx context.Context, client *kgo.Client) error {
	if c.conf.ConsumerGroup == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, finalCommit)
	defer cancel()
	if err := client.CommitMarkedOffsets(ctx); err != nil {
		return fmt.Errorf("committing offsets of the group %s: %w", c.conf.ConsumerGroup, err)
	}
	return nil
}

// commitEarlyLocked commits before the period ends, when half of the window has been
// accepted since the last commit: at the whole of it the partition would stand still.
func (c *consumer) commitEarlyLocked(p *partition) {
	if c.conf.ConsumerGroup == "" || c.committing || p.accepted-p.committed < c.window/2 || c.ctx.Err() != nil {
		return
	}
	c.committing = true
	c.tasks.Go(func() {
		err := c.commit(c.ctx, c.client)
		if err != nil && c.ctx.Err() == nil {
			c.logger.Warnf("committing early: %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.committing = false
		c.noteCommitsLocked(c.client)
	})
}

// noteCommitsLocked takes note of what the group has committed by now.
func (c *consumer) noteCommitsLocked(client *kgo.Client) {
	for topic, numbers := range client.CommittedOffsets() {
		for number, offset := range numbers {
			if p := c.partitions[place{topic: topic, partition: number}]; p != nil {
				p.committed = max(p.committed, offset.Offset)
			}
		}
	}
	c.signalLocked()
}

// committed takes note of commits, and logs those that failed, which the next one
// repeats.
func (c *consumer) committed(client *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
	if response != nil {
		for _, topic := range response.Topics {
			for _, p := range topic.Partitions {
				err = errors.Join(err, kerr.ErrorForCode(p.ErrorCode))
			}
		}
	}
	if err != nil && c.ctx.Err() == nil {
		c.logger.Warnf("committing offsets of the group %s: %v", c.conf.ConsumerGroup, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteCommitsLocked(client)
}

// note looks at what a poll reports beside records: trouble that the client gets
// over by itself is logged, once while it stays the same; after anything else the
// client would leave a partition alone for ever, so that the connection ends.
func (c *consumer) note(errs []kgo.FetchError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(errs) == 0 {
		c.told = ""
		return
	}
	for _, e := range errs {
		var loss *kgo.ErrDataLoss
		var session *kgo.ErrGroupSession
		switch {
		case c.ctx.Err() != nil:
			return
		case errors.As(e.Err, &loss), errors.As(e.Err, &session), kerr.IsRetriable(e.Err), kgo.IsRetryableBrokerErr(e.Err):
			if text := fmt.Sprintf("reading %s: %v", e.Topic, e.Err); text != c.told {
				c.told = text
				c.logger.Warn(text)
			}
		default:
			c.failed = fmt.Errorf("reading partition %d of %s: %w", e.Partition, e.Topic, e.Err)
			c.signalLocked()
		}
	}
}
