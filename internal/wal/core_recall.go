package wal

import (
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// recalled takes what the view still tells of the writer after it went on from a
// checkpoint. Commits go out one by one, so only the first object can have been
// passed over: it is, when its seq was taken, or when the writer was closed and
// nobody remembers. It is never put again, because a copy could be a second one.
func (c *Core) recalled(out *shard.Outcome) {
	if len(c.queue) > 0 {
		o := c.queue[0]
		closed := out.Rejected == shard.WriterClosed
		if o.phase == committing && (out.Seq >= o.seq || closed) {
			o.settleRecalled(out)
			c.queue[0] = nil
			c.queue = c.queue[1:]
			c.finish(o, true)
		}
	}
	if out.Rejected == shard.WriterClosed {
		c.WriterClosed(out.Writer)
	}
	c.startCommit()
	c.startUploads()
	c.decide()
}

// settleRecalled gives each append its offsets where the log still shows them, and
// an unknown outcome where it does not, or shows one of several blocks of the log.
// What became of a producer's sequences the state tells, so that they are tried again.
func (o *Object) settleRecalled(out *shard.Outcome) {
	found := make(map[base.LogID]shard.LogOutcome, len(out.Logs))
	if out.Seq == o.seq {
		for _, l := range out.Logs {
			found[l.Log] = l
		}
	}
	for i := range o.blocks {
		b := &o.blocks[i]
		l, ok := found[b.log]
		ok = ok && !o.sharesLog(i)
		for p := b.head; p != nil; p = p.next {
			result := LogResult{Revision: out.Revision, Time: out.Time, Invalid: p.owner.results[p.result].Invalid}
			if ok {
				result.Base, result.Records = l.Base+base.Offset(p.first), p.records
			} else {
				result.again = b.group != nil
				result.Err = fmt.Errorf("appending to log %s: the commit log no longer held the record when this instance came back to it: %w",
					b.log, base.ErrUnknown)
			}
			p.owner.results[p.result] = result
		}
	}
}

// sharesLog reports whether a block is one of several of its log.
func (o *Object) sharesLog(i int) bool {
	log := o.blocks[i].log
	return i > 0 && o.blocks[i-1].log == log || i+1 < len(o.blocks) && o.blocks[i+1].log == log
}
