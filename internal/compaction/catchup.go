package compaction

import (
	"context"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

// OpenSource opens a range of a log for reading, raw or compacted, until ctx ends.
type OpenSource func(ctx context.Context, log base.LogID, r base.OffsetRange) (recordbatch.Source, error)

// CatchUp decodes for their tables what was compacted without them, a step at a
// time.
type CatchUp struct {
	tables *preparer
}

// NewCatchUp returns the step machine that works off backlogs. A log that cannot
// be opened counts as its stream's failure.
func NewCatchUp(ctx context.Context, env Env, backlogs []Backlog, open OpenSource) *CatchUp {
	p := &preparer{env: env, failed: make(map[base.StreamID]error)}
	for _, b := range backlogs {
		source, err := open(ctx, b.Log, b.Range)
		if err != nil {
			p.failed[b.Log.Stream] = err
			continue
		}
		n := len(p.requests)
		if n == 0 || p.requests[n-1].Stream != b.Log.Stream {
			p.requests = append(p.requests, TableRequest{Stream: b.Log.Stream})
			n++
		}
		p.requests[n-1].Sources = append(p.requests[n-1].Sources, TableSource{Log: b.Log, Source: source})
	}
	kept := p.requests[:0]
	for _, r := range p.requests {
		if env.describeTable(&r) {
			kept = append(kept, r)
		}
	}
	p.requests = kept
	return &CatchUp{tables: p}
}

// Step does the next piece of work and reports whether nothing is left. An error
// ends it; its session must not be used again.
func (c *CatchUp) Step(ctx context.Context) (done bool, err error) { return c.tables.step(ctx) }

// Failed returns the streams whose tables were left out, and why.
func (c *CatchUp) Failed() map[base.StreamID]error { return c.tables.failed }

// Unreadable returns nothing: a log that cannot be read counts as its table's
// failure here.
func (c *CatchUp) Unreadable() []base.LogID { return nil }
