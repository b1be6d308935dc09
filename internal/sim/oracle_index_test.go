package sim

import (
	"bytes"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/compacted"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/format/walobject"
	"github.com/lakestream-go/lakestream/internal/log"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// check looks at everything that changed since it last looked.
func (o *oracle) check() {
	if o.world.broken != nil {
		return
	}
	if o.state.Revision() != o.checked {
		o.checked = o.state.Revision()
		for _, st := range o.state.Streams() {
			for _, l := range st.Logs {
				o.checkLog(l)
			}
		}
	}
	if o.tablesChanged {
		o.tablesChanged = false
		o.checkTables()
	}
}

// maxEntries is more than any run appends.
const maxEntries = 1 << 20

// checkLog wants each live offset covered by exactly one entry whose object holds
// it, and everything compacted to come before everything raw, for good.
func (o *oracle) checkLog(l *shard.Log) {
	truth := o.log(l.ID())
	if l.Start() != 0 || l.Head() != base.Offset(len(truth.records)) {
		o.fail("invariant 2: log %s is [%d, %d), and %d records were appended", l.ID(), l.Start(), l.Head(), len(truth.records))
		return
	}
	entries := o.state.Entries(l, 0, maxEntries)
	if o.world.mutant.entries != nil {
		entries = o.world.mutant.entries(entries)
	}
	next, raw := base.Offset(0), false
	for n := range entries {
		e := &entries[n]
		if e.Range.Start != next || e.Range.Len() < 1 {
			o.fail("invariant 4: log %s has an entry %s where %d is the next offset", l.ID(), e.Range, next)
			return
		}
		if raw && e.Storage == shard.Compacted {
			o.fail("invariant 5: log %s has a compacted entry %s after raw ones", l.ID(), e.Range)
		}
		next, raw = e.Range.End, raw || e.Storage == shard.Raw
		o.checkEntry(truth, e)
	}
	if next != l.Head() {
		o.fail("invariant 4: the entries of log %s end at %d, its head is %d", l.ID(), next, l.Head())
	}
	if mark := o.state.RawStart(l); mark != truth.compacted || mark > l.Head() {
		o.fail("invariant 5: the compaction mark of log %s is %d, accepted were %d of %d", l.ID(), mark, truth.compacted, l.Head())
	}
	if l.Materialized() != truth.materialized || l.Prepared() != truth.prepared || truth.materialized > truth.prepared || truth.prepared > l.Head() {
		o.fail("invariant 6: log %s has %d materialized and %d prepared of %d, accepted were %d and %d",
			l.ID(), l.Materialized(), l.Prepared(), l.Head(), truth.materialized, truth.prepared)
	}
}

// checkEntry reads the object of an entry when it is new, and compares all that
// the entry says it holds.
func (o *oracle) checkEntry(truth *logTruth, e *shard.Entry) {
	name := fmt.Sprint(e.Key(), e.Pos)
	if truth.verified[name] {
		return
	}
	truth.verified[name] = true
	data, err := o.world.store.ReadRange(o.world.ctx, e.Key(), 0, e.Size, nil)
	if err == nil {
		err = eachOf(data, e, func(p *recordbatch.Positioned) error {
			o.compareRecord("compacting", e.Log, p.Offset, p)
			return nil
		})
	}
	if err != nil {
		o.fail("invariant 4: entry %s of log %s: %v", e.Range, e.Log, err)
	}
}

// eachOf yields the records of an entry from the bytes of its object.
func eachOf(data []byte, e *shard.Entry, yield func(*recordbatch.Positioned) error) error {
	if e.Storage == shard.Compacted {
		meta := compacted.Meta{Cluster: cluster, Shard: e.Shard, Log: e.Log, Range: e.Range}
		object, err := compacted.Open(bytes.NewReader(data), e.Size, meta)
		if err != nil {
			return err
		}
		return count(object, e.Range, yield)
	}
	object, err := walobject.Parse(data)
	if err != nil {
		return err
	}
	if err := object.Expect(walobject.Header{Cluster: cluster, Shard: e.Shard, Writer: e.Writer, Seq: e.Seq}); err != nil {
		return err
	}
	source, err := recordbatch.NewSource([]recordbatch.Entry{{
		Base: e.Range.Start, Records: int(e.Range.Len()), Revision: e.Revision, AppendTime: e.AppendTime,
		Data: data[e.Pos:][:e.Len],
	}})
	if err != nil {
		return err
	}
	return count(source, e.Range, yield)
}

// count yields the records of a source and wants them to be those of a range.
func count(source recordbatch.Source, want base.OffsetRange, yield func(*recordbatch.Positioned) error) error {
	next := want.Start
	err := source.Each(func(p *recordbatch.Positioned) error {
		if p.Offset != next {
			return fmt.Errorf("offset %d where %d should be: %w", p.Offset, next, base.ErrCorrupt)
		}
		next++
		return yield(p)
	})
	if err == nil && next != want.End {
		err = fmt.Errorf("it ends at offset %d: %w", next, base.ErrCorrupt)
	}
	return err
}

// settled reports whether a healed world has nothing left to do.
func (o *oracle) settled() bool { return o.unsettled() == "" }

// unsettled says what is left to do.
func (o *oracle) unsettled() string {
	for _, i := range o.world.instances {
		if !i.appender.idle() {
			return fmt.Sprintf("%s has appends that wait: %s", i.name, i.appender.core)
		}
		if i.delivered < len(o.world.history) {
			return fmt.Sprintf("the view of %s is at %d of %d", i.name, i.delivered, len(o.world.history))
		}
	}
	for _, st := range o.state.Streams() {
		for _, l := range st.Logs {
			if o.state.RawStart(l) < l.Head() || l.Prepared() < l.Head() || l.Materialized() < l.Head() {
				return fmt.Sprintf("log %s ends at %d, is compacted to %d, prepared to %d, materialized to %d",
					l.ID(), l.Head(), o.state.RawStart(l), l.Prepared(), l.Materialized())
			}
		}
	}
	return ""
}

// checkEnd starts one more instance and wants it, and all others, to show the same
// state and to read every log as it was written.
func (o *oracle) checkEnd() {
	w := o.world
	fresh := newInstance(w, len(w.instances))
	defer fresh.close()
	want := o.state.Hash()
	for _, i := range append(w.instances, fresh) {
		i.Inspect(func(s *shard.State) {
			if s.Hash() != want {
				o.fail("invariant 7: the view of %s differs at the end", i.name)
			}
		})
	}
	for _, r := range fresh.readers {
		w.as(fresh, func() { o.readAll(r) })
	}
	o.checkRows()
}

func (o *oracle) readAll(r *reader) {
	next := base.Offset(0)
	for next < base.Offset(len(o.log(r.id).records)) {
		batch, err := r.machine.Read(o.world.ctx, next, log.Limits{})
		if err != nil || len(batch.Records) == 0 {
			o.fail("invariant 1: reading log %s from %d at the end: %d records: %v", r.id, next, len(batch.Records), err)
			return
		}
		for n := range batch.Records {
			o.compareRecord("reading back", r.id, next+base.Offset(n), &batch.Records[n])
		}
		next = batch.Next
	}
}
