package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
)

// republishAfter is how long Publish waits for the outcome of a record whose
// reply was lost before it puts the record again.
const republishAfter = 2 * time.Second

// Put appends one record to the shard's log and returns its revision. It tells
// the view to expect it. Errors are those of coord.CommitLog; a view that has
// stopped appends nothing, because its history may not be that of the others.
func (v *View) Put(ctx context.Context, request commitrecord.RequestID, payload commitrecord.Payload) (base.Revision, error) {
	if err := v.Err(); err != nil {
		return 0, err
	}
	data, err := commitrecord.Encode(v.Envelope(request), payload)
	if err != nil {
		return 0, err
	}
	revision, err := v.opts.Log.Put(ctx, data)
	if err != nil {
		return 0, err
	}
	v.Expect(revision)
	return revision, nil
}

// Publish appends one record and returns its outcome once this view has applied
// it. A record whose reply was lost is put again until an outcome shows: every
// kind is such that a second copy changes nothing. base.ErrUnavailable means that
// it was not appended; base.ErrUnknown, when ctx ends, the view stops, or it went on
// from a checkpoint beyond the record, that it may yet be, or was.
func (v *View) Publish(ctx context.Context, payload commitrecord.Payload) (Outcome, error) {
	var request commitrecord.RequestID
	if _, err := io.ReadFull(v.opts.Entropy, request[:]); err != nil {
		return Outcome{}, fmt.Errorf("drawing request id: %w", err)
	}
	result := make(chan Outcome, 1)
	v.OnRequest(request, func(out Outcome) { result <- out })
	defer v.OnRequest(request, nil)
	put, unknown := false, false
	passed := passage{view: v, since: v.Jumped()}
	for {
		if !put {
			revision, err := v.Put(ctx, request, payload)
			put, passed.revision = err == nil, revision
			unknown = unknown || errors.Is(err, base.ErrUnknown)
			if !put && !unknown {
				return Outcome{}, fmt.Errorf("publishing to %s: %w", v.opts.Shard, err)
			}
		}
		out, ok, err := v.awaitOutcome(ctx, result, &passed)
		switch {
		case ok:
			return out, nil
		case err != nil:
			return Outcome{}, fmt.Errorf("publishing to %s: %w", v.opts.Shard, base.WithClass(base.ErrUnknown, err))
		}
	}
}

// errPassed says that the view went on from a checkpoint beyond a record that this
// process published.
var errPassed = errors.New("the log no longer held the record when this instance came back to it; read again what became of it")

// passage tells whether a jump of the view may have passed a record over.
type passage struct {
	view     *View
	since    base.Revision
	revision base.Revision // of the record, 0 while it is not known
}

func (p *passage) over() bool {
	jumped := p.view.Jumped()
	return jumped > p.since && p.revision <= jumped
}

func (v *View) awaitOutcome(ctx context.Context, result <-chan Outcome, passed *passage) (Outcome, bool, error) {
	again := v.opts.Clock.After(republishAfter)
	for {
		changed, stopped := v.Changed(), v.Err()
		select {
		case out := <-result:
			return out, true, nil
		default:
		}
		switch {
		case stopped != nil:
			return Outcome{}, false, stopped
		case passed.over():
			return Outcome{}, false, errPassed
		}
		select {
		case out := <-result:
			return out, true, nil
		case <-changed:
		case <-again:
			return Outcome{}, false, nil
		case <-ctx.Done():
			return Outcome{}, false, ctx.Err()
		}
	}
}
