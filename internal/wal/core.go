package wal

import (
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
)

const (
	// MaxBlocks is the most logs that an object may hold. Its commit record,
	// at 50 bytes a log at most, then stays below half of a record's limit.
	MaxBlocks = commitrecord.MaxBytes / 2 / blockRecordBytes
	// blockRecordBytes is the most that a block adds to the commit record.
	blockRecordBytes = 50
	// maxGroupBytes bounds in the same way what the groups of producers add: all
	// those of an object have the other half, but for the envelope.
	maxGroupBytes = commitrecord.MaxBytes/2 - 1024
	// MaxAppendBytes bounds one append, and with it an object that holds it alone.
	MaxAppendBytes = 1 << 30
)

// CoreConfig says when a Core flushes.
type CoreConfig struct {
	// MaxObjectBytes seals the open object.
	MaxObjectBytes int
	// EagerBytes seals the open object while an upload slot is free.
	EagerBytes int
	// UploadConcurrency is the number of upload slots, at least 1.
	UploadConcurrency int
	// FlushWhenIdle seals the open object as soon as nothing is in flight and
	// arrivals have stopped. Without it only urgent appends do that.
	FlushWhenIdle bool
}

// ActionKind is something that a Core wants done.
type ActionKind uint8

// What a Core wants done, and the event that reports it. The zero kind is none.
const (
	// OpenWriter: publish a WriterOpen record. Then WriterOpened.
	OpenWriter ActionKind = iota + 1
	// Upload: build the object for Writer and Seq and put it. Then Uploaded.
	Upload
	// Commit: put the object's record, again while it is unknown whether it
	// was put. Then CommitPut. The outcome comes by the view, as Outcome.
	Commit
	// Settle: wait until arrivals stop. Then Settled.
	Settle
	// Linger: wait for the linger time. Then Lingered.
	Linger
	// Resolve: tell the append's caller that its results are final.
	Resolve
	// Release: the object's bytes are no longer needed.
	Release
)

// Action is one thing to do. The driver may do all actions at once.
type Action struct {
	Kind   ActionKind
	Object *Object // of Upload, Commit, Release
	Append *Append // of Resolve
	Writer base.WriterID
	Seq    base.Seq
	// Ordinal tells which open object Settle and Linger are for.
	Ordinal uint64
}

// SealReason is why an object was flushed.
type SealReason uint8

// Why objects are flushed.
const (
	SealedBySize SealReason = iota
	SealedEagerly
	SealedIdle
	SealedByLinger
	SealedByFlush
	sealReasons
)

// Core decides how appends become objects and commits. Each method is an event;
// afterwards Take returns what is to be done. It is not safe for concurrent use.
type Core struct {
	config CoreConfig

	writer  base.WriterID // 0 while none is open
	opening bool
	nextSeq base.Seq

	open      *Object   // nil when nothing waits for a flush
	queue     []*Object // sealed and unresolved, in commit order
	ordinal   uint64    // of the newest object
	uploading int
	callers   crowd
	failed    error

	seals   [sealReasons]uint64
	actions []Action
}

// NewCore returns a core without a writer; it asks for one when it has something
// to write.
func NewCore(config CoreConfig) *Core {
	return &Core{config: config}
}

// Take appends what is to be done to dst and returns it.
func (c *Core) Take(dst []Action) []Action {
	dst = append(dst, c.actions...)
	clear(c.actions)
	c.actions = c.actions[:0]
	return dst
}

// Writer returns the open writer, or 0.
func (c *Core) Writer() base.WriterID { return c.writer }

// InFlight returns how many sealed objects are unresolved.
func (c *Core) InFlight() int { return len(c.queue) }

// Add brings an append.
func (c *Core) Add(a *Append) {
	if c.failed != nil {
		a.fail(c.failed)
		c.do(Action{Kind: Resolve, Append: a})
		return
	}
	if len(a.parts) == 0 {
		a.reusable = true
		c.do(Action{Kind: Resolve, Append: a})
		return
	}
	if c.open != nil && c.open.isFullFor(a, c.config.MaxObjectBytes) {
		c.seal(SealedBySize)
	}
	if c.open == nil {
		c.ordinal++
		c.open = newObject(c.ordinal)
	}
	c.open.add(a)
	c.callers.came()
	c.decide()
}

// Settled reports that arrivals have stopped since the action.
func (c *Core) Settled(ordinal uint64) {
	if c.open == nil || c.open.ordinal != ordinal {
		return
	}
	if len(c.queue) == 0 {
		c.seal(SealedIdle)
		return
	}
	c.open.waiting = 0
	c.decide()
}

// Lingered reports that the linger time has passed since the action.
func (c *Core) Lingered(ordinal uint64) {
	if c.open != nil && c.open.ordinal == ordinal {
		c.open.lingered = true
		c.decide()
	}
}

// Flush seals what is open and returns the ordinal up to which everything is
// sealed: Resolved tells when it is done.
func (c *Core) Flush() uint64 {
	if c.open != nil {
		c.seal(SealedByFlush)
	}
	return c.ordinal
}

// Resolved reports whether every object up to ordinal is resolved.
func (c *Core) Resolved(ordinal uint64) bool {
	if len(c.queue) > 0 {
		return c.queue[0].ordinal > ordinal
	}
	return c.open == nil || c.open.ordinal > ordinal
}

// decide looks whether the open object is to be sealed, or for what it waits.
// While no slot is free it goes on filling: an object in a queue gains nothing.
func (c *Core) decide() {
	o := c.open
	if o == nil {
		return
	}
	free := len(c.queue) < c.config.UploadConcurrency
	idle := len(c.queue) == 0 && (c.config.FlushWhenIdle || o.urgent)
	switch {
	case o.bytes >= c.config.MaxObjectBytes:
		c.seal(SealedBySize)
	case free && o.lingered:
		c.seal(SealedByLinger)
	case free && (o.bytes >= c.config.EagerBytes || c.isHalf()):
		c.seal(SealedEagerly)
	case idle && o.waiting != Settle:
		o.waiting = Settle
		c.do(Action{Kind: Settle, Ordinal: o.ordinal})
	case !idle && o.waiting == 0:
		o.waiting = Linger
		c.do(Action{Kind: Linger, Ordinal: o.ordinal})
	}
}

func (c *Core) seal(reason SealReason) {
	c.open.seal()
	c.queue = append(c.queue, c.open)
	c.open = nil
	c.seals[reason]++
	c.callers.renew()
	c.startUploads()
}

// startUploads gives every object its identity, in order, and starts as many
// uploads as there are slots.
func (c *Core) startUploads() {
	if c.writer == 0 {
		if !c.opening && len(c.queue) > 0 {
			c.opening = true
			c.do(Action{Kind: OpenWriter})
		}
		return
	}
	for _, o := range c.queue {
		if o.writer != c.writer {
			o.writer, o.seq = c.writer, c.nextSeq
			c.nextSeq++
		}
		if o.phase == sealed && !o.busy && c.uploading < c.config.UploadConcurrency {
			o.phase, o.busy = uploading, true
			c.uploading++
			c.do(Action{Kind: Upload, Object: o, Writer: o.writer, Seq: o.seq})
		}
	}
}

func (c *Core) do(a Action) { c.actions = append(c.actions, a) }

// String renders the state in one line, for transcripts.
func (c *Core) String() string {
	open := 0
	if c.open != nil {
		open = len(c.open.appends)
	}
	return fmt.Sprintf("writer %d, %d open, %d in flight, %d uploading", c.writer, open, len(c.queue), c.uploading)
}
