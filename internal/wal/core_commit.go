package wal

import (
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// WriterOpened reports the writer that an OpenWriter action opened.
func (c *Core) WriterOpened(writer base.WriterID) {
	c.opening = false
	if c.failed != nil {
		return
	}
	c.writer, c.nextSeq = writer, 1
	c.startUploads()
}

// WriterClosed reports that the view has applied the fence of a writer: what it
// has not accepted by now, it never will.
func (c *Core) WriterClosed(writer base.WriterID) {
	if writer != c.writer || writer == 0 {
		return
	}
	c.writer = 0
	for _, o := range c.queue {
		o.phase = sealed
	}
	c.startUploads()
}

// Uploaded reports that an object was put as Writer and Seq of the action say.
func (c *Core) Uploaded(o *Object, writer base.WriterID) {
	o.busy = false
	c.uploading--
	if c.failed != nil {
		return
	}
	if writer == c.writer {
		o.phase = uploaded
		c.startCommit()
	}
	c.startUploads()
}

// startCommit puts the record of the first object once that is uploaded. The next
// follows when the view has applied this one, so records cannot overtake another.
func (c *Core) startCommit() {
	if len(c.queue) == 0 {
		return
	}
	if o := c.queue[0]; o.phase == uploaded {
		o.phase, o.busy, o.published = committing, true, true
		c.do(Action{Kind: Commit, Object: o, Writer: o.writer, Seq: o.seq})
	}
}

// CommitPut reports that the driver is done putting an object's record: the log
// has it, or it no longer matters.
func (c *Core) CommitPut(o *Object) {
	o.busy = false
	if o.phase == resolved {
		c.do(Action{Kind: Release, Object: o})
		return
	}
	if c.failed == nil {
		c.startUploads() // it may have moved to another writer meanwhile
	}
}

// Current reports whether an object is still to be put for this writer.
func (c *Core) Current(o *Object, writer base.WriterID) bool {
	return c.failed == nil && o.phase != resolved && writer == c.writer
}

// Outcome brings what the view shows of one of the writer's records. Only the
// first outcome of a seq counts: a copy that was put again changes nothing.
func (c *Core) Outcome(out *shard.Outcome) {
	if out.Writer != c.writer || c.writer == 0 {
		return
	}
	if out.Recalled {
		c.recalled(out)
		return
	}
	if len(c.queue) == 0 {
		return
	}
	o := c.queue[0]
	if o.seq != out.Seq || o.phase != committing {
		return
	}
	if out.Rejected == shard.WriterClosed {
		c.WriterClosed(out.Writer)
		return
	}
	o.settle(out)
	c.queue[0] = nil
	c.queue = c.queue[1:]
	c.finish(o, true)
	c.startCommit()
	c.startUploads()
	c.decide()
}

// settle gives each append its results.
func (o *Object) settle(out *shard.Outcome) {
	for i := range o.blocks {
		b := &o.blocks[i]
		result := LogResult{Revision: out.Revision, Time: out.Time}
		var first base.Offset
		switch {
		case !out.OK():
			result = LogResult{Err: fmt.Errorf("appending to log %s: %s", b.log, out.Rejected)}
		case i >= len(out.Logs) || out.Logs[i].Log != b.log:
			result = LogResult{Err: fmt.Errorf("appending to log %s: the outcome does not name it: %w", b.log, base.ErrUnknown)}
		case out.Logs[i].Rejected != shard.Accepted:
			result = LogResult{Err: rejection(b.log, out.Logs[i].Rejected), again: b.group != nil && ofSequences(out.Logs[i].Rejected)}
		default:
			first = out.Logs[i].Base
		}
		for p := b.head; p != nil; p = p.next {
			result.Invalid = p.owner.results[p.result].Invalid
			if result.Err == nil {
				result.Base, result.Records = first+base.Offset(p.first), p.records
			}
			p.owner.results[p.result] = result
		}
	}
}

// rejection is the error of a log that refused its block.
func rejection(log base.LogID, reason shard.Reason) error {
	err := fmt.Errorf("appending to log %s: %s", log, reason)
	switch reason {
	case shard.NoStream, shard.NoPartition:
		return base.WithClass(base.ErrNotFound, err)
	case shard.LogFenced:
		return base.WithClass(base.ErrFenced, err)
	default:
		return err
	}
}

// ofSequences reports whether a group was refused for what the stream knows of its
// sequences: which of them to leave out, its state tells.
func ofSequences(reason shard.Reason) bool {
	return reason == shard.Duplicate || reason == shard.Overlaps || reason == shard.BelowWindow
}

// finish resolves the appends of an object whose results are final. Appends of an
// object that may still be being built are not reusable.
func (c *Core) finish(o *Object, reusable bool) {
	o.phase = resolved
	c.callers.left(len(o.appends))
	for _, a := range o.appends {
		a.reusable = reusable
		c.do(Action{Kind: Resolve, Append: a})
	}
	if !o.busy {
		c.do(Action{Kind: Release, Object: o})
	}
}

// Fail ends everything: what waits is resolved with err, as unknown where a
// record may have been put, and so is what comes later.
func (c *Core) Fail(err error) {
	if c.failed != nil {
		return
	}
	c.failed = err
	if c.open != nil {
		c.queue = append(c.queue, c.open)
		c.open = nil
	}
	for _, o := range c.queue {
		why := err
		if o.published {
			why = base.WithClass(base.ErrUnknown, err)
		}
		for _, a := range o.appends {
			a.fail(why)
		}
		c.finish(o, false)
	}
	c.queue = nil
}
