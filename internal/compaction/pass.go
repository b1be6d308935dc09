package compaction

import (
	"context"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/format/compacted"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/format/walobject"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Names of the moments at which the crash harness kills the process.
const (
	AfterCompacted = "after-compacted-object"
	BeforeCompact  = "before-compact"
	AfterCompact   = "after-compact"
	BeforePrepared = "before-prepared"
	AfterPrepared  = "after-prepared"
)

// maxLogsPerCompact bounds a Compact record well below the record limit.
const maxLogsPerCompact = 4096

// Env is what a pass works on. Session must be used by nothing else meanwhile.
type Env struct {
	Ledger  Ledger
	Session *shard.Session
	Objects blob.Store
	Tables  Materializer
	// Inherited is what streams take from their namespace and the cluster.
	Inherited catalog.Inherited
	// CrashPoint, when set, is called at the named moments.
	CrashPoint func(name string)
}

// Ledger is what compaction needs of a shard's view.
type Ledger interface {
	shard.Publisher
	Inspect(fn func(*shard.State))
}

func (e *Env) crash(name string) {
	if e.CrashPoint != nil {
		e.CrashPoint(name)
	}
}

// Pass carries out one plan, a step at a time. Dropping it at any step loses
// nothing: what was not published is an orphan of its writer.
type Pass struct {
	env  Env
	plan Plan
	// blocks are the fetched blocks of each log of the plan.
	blocks  [][]recordbatch.Entry
	read    int
	sizes   []int64
	compact int
	// won tells which logs' compacted objects the fold accepted.
	won    []bool
	tables *preparer
}

// NewPass returns the pass that carries out a plan.
func NewPass(env Env, plan Plan) *Pass {
	return &Pass{
		env: env, plan: plan,
		blocks: make([][]recordbatch.Entry, len(plan.Logs)),
		won:    make([]bool, len(plan.Logs)),
	}
}

// Step does the next piece of work and reports whether the pass is complete. An
// error ends the pass; its session must not be used again.
func (p *Pass) Step(ctx context.Context) (done bool, err error) {
	switch {
	case p.read < len(p.plan.Objects):
		return false, p.readObject(ctx)
	case len(p.sizes) < len(p.plan.Logs):
		return false, p.writeLog(ctx)
	case p.compact < len(p.plan.Logs):
		return false, p.publishCompact(ctx)
	case p.tables == nil:
		p.tables = &preparer{env: p.env, requests: p.tableRequests(), failed: make(map[base.StreamID]error)}
		return false, nil
	default:
		return p.tables.step(ctx)
	}
}

// Failed returns the streams whose tables were left out, and why.
func (p *Pass) Failed() map[base.StreamID]error {
	if p.tables == nil {
		return nil
	}
	return p.tables.failed
}

// readObject fetches the next WAL object and takes out the blocks of the plan.
func (p *Pass) readObject(ctx context.Context) error {
	o := p.plan.Objects[p.read]
	data, err := p.env.Objects.ReadRange(ctx, o.Key, 0, o.Size, nil)
	if err != nil {
		return fmt.Errorf("reading WAL object %s: %w", o.Key, err)
	}
	if err := verifyObject(data, p.plan, o); err != nil {
		return fmt.Errorf("reading WAL object %s: %w", o.Key, err)
	}
	for i, w := range p.plan.Logs {
		for next := len(p.blocks[i]); next < len(w.Entries) && w.Entries[next].Revision == o.Revision; next++ {
			e := w.Entries[next]
			if e.Pos+e.Len > int64(len(data)) {
				return fmt.Errorf("reading WAL object %s: block of log %s at %d of %d bytes: %w", o.Key, e.Log, e.Pos, e.Len, base.ErrCorrupt)
			}
			p.blocks[i] = append(p.blocks[i], recordbatch.Entry{
				Base: e.Range.Start, Records: int(e.Range.Len()), Revision: e.Revision,
				AppendTime: e.AppendTime, Data: data[e.Pos : e.Pos+e.Len],
			})
		}
	}
	p.read++
	return nil
}

// verifyObject checks every byte of a WAL object, and that it is the one meant.
func verifyObject(data []byte, plan Plan, want Object) error {
	o, err := walobject.Parse(data)
	if err != nil {
		return err
	}
	return o.Expect(walobject.Header{Cluster: plan.Cluster, Shard: plan.Shard, Writer: want.Writer, Seq: want.Seq})
}

// Unreadable returns the logs of the object at which the pass stopped reading.
func (p *Pass) Unreadable() []base.LogID {
	if p.read == len(p.plan.Objects) {
		return nil
	}
	var logs []base.LogID
	for i, w := range p.plan.Logs {
		if next := len(p.blocks[i]); next < len(w.Entries) && w.Entries[next].Revision == p.plan.Objects[p.read].Revision {
			logs = append(logs, w.Log)
		}
	}
	return logs
}

// seqOf returns the seq of the Compact record that the i-th log goes into, while
// none is published yet.
func (p *Pass) seqOf(i int) base.Seq {
	return p.env.Session.Next() + base.Seq(i/maxLogsPerCompact) //nolint:gosec // never negative
}

// writeLog writes the compacted object of the next log.
func (p *Pass) writeLog(ctx context.Context) error {
	i := len(p.sizes)
	w := p.plan.Logs[i]
	key := base.CompactedKey(p.plan.Shard, p.env.Session.Writer(), w.Log, w.Range, p.seqOf(i))
	source, err := recordbatch.NewSource(p.blocks[i])
	if err != nil {
		return fmt.Errorf("compacting log %s %s: %w", w.Log, w.Range, err)
	}
	meta := compacted.Meta{Cluster: p.plan.Cluster, Shard: p.plan.Shard, Log: w.Log, Range: w.Range}
	size, err := writeCompacted(ctx, p.env.Objects, key, meta, source)
	if err != nil {
		return fmt.Errorf("compacting log %s %s: %w", w.Log, w.Range, err)
	}
	p.sizes = append(p.sizes, size)
	p.env.crash(AfterCompacted)
	return nil
}

func writeCompacted(ctx context.Context, objects blob.Store, key string, meta compacted.Meta, source recordbatch.Source) (int64, error) {
	out, err := objects.Create(ctx, key)
	if err != nil {
		return 0, err
	}
	defer out.Abort()
	writer, err := compacted.NewWriter(out, meta, compacted.Options{})
	if err != nil {
		return 0, err
	}
	if err := source.Each(writer.Write); err != nil {
		return 0, err
	}
	stats, err := writer.Close()
	if err != nil {
		return 0, err
	}
	return stats.Bytes, out.Commit()
}

// publishCompact publishes the next group of logs in one record.
func (p *Pass) publishCompact(ctx context.Context) error {
	from, to := p.compact, min(p.compact+maxLogsPerCompact, len(p.plan.Logs))
	record := newCompact(p.env.Session, p.plan.Read)
	for i := from; i < to; i++ {
		addCompacted(record, p.plan.Logs[i].Log, p.plan.Logs[i].Range, p.sizes[i])
	}
	p.env.crash(BeforeCompact)
	out, err := p.env.Session.Publish(ctx, record)
	if err != nil {
		return fmt.Errorf("publishing compaction: %w", err)
	}
	p.env.crash(AfterCompact)
	for i, l := range out.Logs {
		p.won[from+i] = l.Rejected == shard.Accepted
	}
	p.compact = to
	return nil
}

func newCompact(session *shard.Session, read base.Revision) *commitpb.Compact {
	return &commitpb.Compact{Writer: uint64(session.Writer()), Seq: uint64(session.Next()), ReadRevision: uint64(read)}
}

func addCompacted(record *commitpb.Compact, log base.LogID, r base.OffsetRange, size int64) {
	record.Stream = append(record.Stream, uint64(log.Stream))
	record.Partition = append(record.Partition, uint32(log.Partition)) //nolint:gosec // never negative
	record.Start = append(record.Start, uint64(r.Start))               //nolint:gosec // never negative
	record.End = append(record.End, uint64(r.End))                     //nolint:gosec // never negative
	record.Size = append(record.Size, uint64(size))                    //nolint:gosec // never negative
}

// tableRequests asks, for each stream, for the ranges that its table needs. A log
// that another pass compacted first is left to that pass.
func (p *Pass) tableRequests() []TableRequest {
	byStream := make(map[base.StreamID]*TableRequest)
	var order []base.StreamID
	for i, w := range p.plan.Logs {
		if !p.won[i] || w.Decode.Len() == 0 {
			continue
		}
		source, err := recordbatch.NewSource(p.blocks[i])
		if err != nil {
			continue // writeLog has read the same blocks
		}
		r := byStream[w.Log.Stream]
		if r == nil {
			r = &TableRequest{Stream: w.Log.Stream}
			byStream[w.Log.Stream] = r
			order = append(order, w.Log.Stream)
		}
		r.Sources = append(r.Sources, TableSource{Log: w.Log, Source: clipped{source, w.Decode}})
	}
	var requests []TableRequest
	for _, id := range order {
		if p.env.describeTable(byStream[id]) {
			requests = append(requests, *byStream[id])
		}
	}
	return requests
}

// describeTable fills in what the state knows of a request's stream, or reports
// that the stream is gone.
func (e *Env) describeTable(r *TableRequest) (ok bool) {
	e.Ledger.Inspect(func(s *shard.State) {
		var st *shard.Stream
		if st, ok = s.Stream(r.Stream); !ok {
			return
		}
		r.Cluster, r.Shard = s.Cluster(), s.Shard()
		r.Name, r.Table = st.Name, e.Inherited.Table(st)
	})
	return ok
}
