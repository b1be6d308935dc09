package sim

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/wal"
)

// oracle knows what must be true. It folds the log to know which entries and marks
// there are, and looks up everything that can be looked up: what objects hold, what
// files hold, what appends brought and were told.
type oracle struct {
	world *world
	state *shard.State
	// sent are the records that appends brought, by their values, which are unique.
	sent map[string]*sentRecord
	logs map[base.LogID]*logTruth
	// open has the next seq of each open writer.
	open   map[base.WriterID]base.Seq
	time   base.Millis
	hashes map[base.Revision]viewHash
	tables map[base.StreamID]*tableTruth
	files  map[string][]row

	// checked is the revision at which the index was checked last.
	checked       base.Revision
	tablesChanged bool
	// looking is set while the oracle itself looks at tables.
	looking bool
	// damaged counts the reads that were given damaged bytes.
	damaged int
}

// sentRecord is a record that an append brought, and where it was found.
type sentRecord struct {
	recordbatch.Record
	log   base.LogID
	found bool
}

// logTruth is what a log holds, taken from the objects that were committed to it.
type logTruth struct {
	records []recordbatch.Positioned
	// verified are the objects of its entries that were compared with records.
	verified map[string]bool
	// compacted and prepared are where the accepted ranges of either end.
	compacted base.Offset
	prepared  base.Offset
	// materialized is what the log says is in the table.
	materialized base.Offset
}

// viewHash is what every view must show at a revision.
type viewHash struct{ chain, state base.Hash }

func newOracle(w *world) *oracle {
	return &oracle{
		world: w, state: shard.NewState(cluster, theShard), sent: make(map[string]*sentRecord),
		logs: make(map[base.LogID]*logTruth), open: make(map[base.WriterID]base.Seq),
		hashes: make(map[base.Revision]viewHash), tables: make(map[base.StreamID]*tableTruth), files: make(map[string][]row),
	}
}

func (o *oracle) fail(format string, args ...any) { o.world.fail(format, args...) }

// newRecord makes a record like no other.
func (o *oracle) newRecord(id base.LogID) recordbatch.Record {
	rng := o.world.rng
	n := len(o.sent)
	shapes := []string{`{"id":%d,"text":"%s"}`, `{"id":%d,"text":"%s"}`, `{"id":%d,"text":"%s"}`, `broken %d %s`, `# %d %s`}
	text := bytes.Repeat([]byte{'x'}, rng.IntN(40))
	r := recordbatch.Record{
		Timestamp: base.MillisOf(o.world.clock.now) - base.Millis(rng.IntN(5000)),
		Value:     fmt.Appendf(nil, shapes[rng.IntN(len(shapes))], n, text),
	}
	if rng.IntN(2) == 0 {
		r.Key = fmt.Appendf(nil, "key%d", rng.IntN(5))
	}
	if rng.IntN(4) == 0 {
		r.Headers = []recordbatch.Header{{Key: "h", Value: fmt.Append(nil, n)}}
	}
	o.sent[string(r.Value)] = &sentRecord{Record: r, log: id}
	return r
}

// verdict is what becomes of a record in its stream's table.
type verdict string

const (
	inTable    verdict = "a row"
	deadLetter verdict = "a dead letter"
	leftOut    verdict = "left out"
)

func (o *oracle) verdictOf(value []byte) verdict {
	switch {
	case value[0] == '{':
		return inTable
	case value[0] == '#' && !o.world.config.realTables:
		return leftOut
	default:
		return deadLetter
	}
}

func (o *oracle) log(id base.LogID) *logTruth {
	l := o.logs[id]
	if l == nil {
		l = &logTruth{verified: make(map[string]bool)}
		o.logs[id] = l
	}
	return l
}

// observe folds an entry and holds its outcome against what can be known.
func (o *oracle) observe(e coord.Entry) {
	if o.world.broken != nil {
		return
	}
	out, err := o.state.Apply(e.Revision, e.Time, e.Data)
	if err != nil {
		o.fail("invariant 9: the shard stops for ever: %v", err)
		return
	}
	o.world.mutant.fold(&out)
	o.world.trace.add("revision %d: %s by writer %d seq %d, rejected %q, chain %s",
		e.Revision, out.Kind, out.Writer, out.Seq, out.Rejected, o.state.ChainHash())
	if out.Time < o.time {
		o.fail("invariant 2: append time %d of revision %d after %d", out.Time, out.Revision, o.time)
	}
	o.time = out.Time
	h := viewHash{chain: o.state.ChainHash()}
	if hashEvery(e.Revision) {
		h.state = o.state.Hash()
	}
	o.hashes[e.Revision] = h
	env, body, err := commitrecord.DecodeEnvelope(e.Data)
	if err != nil {
		if out.Rejected != shard.NotOurs {
			o.fail("invariant 7: foreign bytes at revision %d were folded as %s", e.Revision, out.Kind)
		}
		return
	}
	payload, err := commitrecord.DecodePayload(env.Kind, body)
	if err != nil || out.Rejected == shard.Malformed {
		o.fail("an instance published a malformed %s at revision %d: %v", env.Kind, e.Revision, err)
		return
	}
	o.countRejections(&out)
	o.take(payload, &out)
}

// countRejections tells later what the run met.
func (o *oracle) countRejections(out *shard.Outcome) {
	if !out.OK() {
		o.world.count.reached[fmt.Sprintf("%s: %s", out.Kind, out.Rejected)]++
	}
	for n := range out.Logs {
		if out.Logs[n].Rejected != shard.Accepted {
			o.world.count.reached[fmt.Sprintf("%s of a log: %s", out.Kind, out.Logs[n].Rejected)]++
		}
	}
}

// take checks the rules of each kind of record.
func (o *oracle) take(payload commitrecord.Payload, out *shard.Outcome) {
	switch p := payload.(type) {
	case *commitpb.WriterOpen:
		if out.OK() {
			o.open[out.Writer] = 1
		}
	case *commitpb.WriterFence:
		for _, id := range p.GetWriters() {
			delete(o.open, base.WriterID(id))
		}
	case *commitpb.Append:
		if o.mayPublish(p.GetWriter(), p.GetSeq(), out) {
			o.takeAppend(p, out)
		}
	case *commitpb.Compact:
		if o.mayPublish(p.GetWriter(), p.GetSeq(), out) {
			o.takeCompact(out)
		}
	case *commitpb.Prepared:
		if o.mayPublish(p.GetWriter(), p.GetSeq(), out) {
			o.takePrepared(p, out)
		}
	case *commitpb.Materialized:
		if out.OK() {
			o.takeMaterialized(p, out)
		}
	default:
	}
}

// takeCompact wants each accepted range to be the next one, or to be compacted already
// as a whole: then it is a merge, which leaves fewer entries. What was compacted is
// never replaced by a pass that had read it raw.
func (o *oracle) takeCompact(out *shard.Outcome) {
	for n := range out.Logs {
		l := &out.Logs[n]
		if l.Rejected != shard.Accepted {
			continue
		}
		truth := o.log(l.Log)
		end := l.Base + base.Offset(l.Records)
		switch {
		case l.Base == truth.compacted:
			truth.compacted = end
			o.world.count.compacted++
		case end <= truth.compacted:
			o.world.count.merged++
		default:
			o.fail("invariant 5: range [%d, %d) of log %s was compacted after %d", l.Base, end, l.Log, truth.compacted)
			return
		}
	}
}

// mayPublish keeps the books of writers: closed ones commit nothing, open ones
// everything in order and once.
func (o *oracle) mayPublish(writer, seq uint64, out *shard.Outcome) bool {
	next, ok := o.open[base.WriterID(writer)]
	turn := ok && base.Seq(seq) == next
	if out.OK() != turn {
		o.fail("invariant 3: %s of writer %d seq %d (open %v, next %d) at revision %d was rejected as %q",
			out.Kind, writer, seq, ok, next, out.Revision, out.Rejected)
	}
	if turn {
		o.open[base.WriterID(writer)]++
	}
	return turn
}

// takeAppend reads the object of an accepted append: what it holds is what the
// logs hold from now on.
func (o *oracle) takeAppend(p *commitpb.Append, out *shard.Outcome) {
	key := base.WALKey(theShard, out.Writer, out.Seq)
	data, err := o.world.store.ReadRange(o.world.ctx, key, 0, int64(p.GetSize()), nil) //nolint:gosec // small
	if err != nil {
		o.fail("invariant 4: the object of an append at revision %d: %v", out.Revision, err)
		return
	}
	for n := range out.Logs {
		l := &out.Logs[n]
		truth := o.log(l.Log)
		if want := base.Offset(len(truth.records)); l.Rejected != shard.Accepted || l.Base != want {
			o.fail("invariant 2: an append to log %s at revision %d got offset %d, want %d, rejected %q", l.Log, out.Revision, l.Base, want, l.Rejected)
			return
		}
		o.takeBlock(truth, l, recordbatch.Entry{
			Base: l.Base, Records: l.Records, Revision: out.Revision, AppendTime: out.Time,
			Data: data[p.GetPos()[n]:][:p.GetLen()[n]],
		})
	}
}

func (o *oracle) takeBlock(truth *logTruth, l *shard.LogOutcome, entry recordbatch.Entry) {
	source, err := recordbatch.NewSource([]recordbatch.Entry{entry})
	if err == nil {
		err = source.Each(func(p *recordbatch.Positioned) error {
			sent := o.sent[string(p.Value)]
			switch {
			case sent == nil || sent.log != l.Log || !sameRecord(&sent.Record, &p.Record):
				return fmt.Errorf("%q was never appended to log %s", p.Value, l.Log)
			case sent.found:
				return fmt.Errorf("%q is in log %s two times", p.Value, l.Log)
			}
			sent.found = true
			truth.records = append(truth.records, recordbatch.Positioned{
				Record: sent.Record, Offset: p.Offset, Revision: p.Revision, AppendTime: p.AppendTime,
			})
			return nil
		})
	}
	if err != nil {
		o.fail("invariant 1: revision %d: %v", entry.Revision, err)
	}
}

func sameRecord(a, b *recordbatch.Record) bool {
	return a.Timestamp == b.Timestamp && bytes.Equal(a.Key, b.Key) && (a.Key == nil) == (b.Key == nil) &&
		bytes.Equal(a.Value, b.Value) && slices.EqualFunc(a.Headers, b.Headers, func(x, y recordbatch.Header) bool {
		return x.Key == y.Key && bytes.Equal(x.Value, y.Value)
	})
}

// acknowledged holds what an append was told against what the log holds.
func (o *oracle) acknowledged(brought wal.LogRecords, told wal.LogResult) {
	if told.Err != nil || told.Records != len(brought.Records) {
		o.fail("invariant 1: an append to log %s took %d of %d records: %v", brought.Log, told.Records, len(brought.Records), told.Err)
		return
	}
	o.world.trace.add("acknowledged %d records of log %s at %d", told.Records, brought.Log, told.Base)
	o.world.count.acked += told.Records
	for n := range brought.Records {
		p := recordbatch.Positioned{
			Record: brought.Records[n], Offset: told.Base + base.Offset(n), Revision: told.Revision, AppendTime: told.Time,
		}
		o.compareRecord("acknowledging", brought.Log, p.Offset, &p)
	}
}

// compareRecord wants a record to be the one that the log has at an offset.
func (o *oracle) compareRecord(doing string, id base.LogID, at base.Offset, got *recordbatch.Positioned) {
	truth := o.log(id)
	if at >= base.Offset(len(truth.records)) {
		o.fail("invariant 1: %s offset %d of log %s, which ends at %d", doing, at, id, len(truth.records))
		return
	}
	want := &truth.records[at]
	if got.Offset != at || got.Revision != want.Revision || got.AppendTime != want.AppendTime || !sameRecord(&got.Record, &want.Record) {
		o.fail("invariant 1: %s offset %d of log %s: got %q (offset %d, revision %d, time %d), want %q (revision %d, time %d)",
			doing, at, id, got.Value, got.Offset, got.Revision, got.AppendTime, want.Value, want.Revision, want.AppendTime)
	}
}

// hashEvery says at which revisions whole states are compared, not only chains.
func hashEvery(r base.Revision) bool { return r%16 == 0 }

// compareView wants a view to show what all views show at its revision.
func (o *oracle) compareView(i *instance) {
	i.Inspect(func(s *shard.State) {
		got, want := viewHash{chain: s.ChainHash()}, o.hashes[s.Revision()]
		if hashEvery(s.Revision()) {
			got.state = s.Hash()
		}
		if got != want {
			o.fail("invariant 7: at revision %d the view of %s has hash %v, the others %v", s.Revision(), i.name, got, want)
		}
	})
}

// tablesOf names a stream's tables.
func (o *oracle) tablesOf(id base.StreamID) (main, dead materialization.Ident) {
	st, ok := o.state.Stream(id)
	if !ok {
		o.fail("stream %d is gone", id)
		return main, dead
	}
	return tableIdents(st)
}
