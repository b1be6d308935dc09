package sim

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/materialization/memtables"
	"github.com/lakestream-go/lakestream/internal/wal"
)

const theShard = base.Shard(0)

var cluster = base.ClusterID{1, 2, 3}

// config is what a run is made of. It follows from the seed.
type config struct {
	steps      int
	instances  int
	streams    int
	partitions int32
	rate       float64 // of faults, per call
	passBytes  int64
	merge      compaction.MergeLimits
	core       wal.CoreConfig
	// realTables prepares tables as production does, which costs time.
	realTables bool
}

// realTablesEvery is every how many seeds a run prepares tables as production
// does.
const realTablesEvery = 8

func drawConfig(seed uint64, steps int, draw *rand.Rand) config {
	return config{
		steps: steps, instances: 2 + draw.IntN(2), streams: 1 + draw.IntN(2), partitions: 1 + draw.Int32N(3),
		rate:      []float64{0.03, 0.1, 0.25}[draw.IntN(3)],
		passBytes: []int64{1, 1500, 1 << 20}[draw.IntN(3)],
		merge: compaction.MergeLimits{
			TargetBytes: []int64{1 << 13, 1 << 15, 1 << 20}[seed%3], FanIn: 2 + int(seed%4),
		},
		core: wal.CoreConfig{
			MaxObjectBytes: 300 + draw.IntN(1200), EagerBytes: 100 + draw.IntN(600),
			UploadConcurrency: 1 + draw.IntN(3), FlushWhenIdle: draw.IntN(2) == 0,
		},
		realTables: seed%realTablesEvery == 0,
	}
}

// world is everything that instances share, and the instances.
type world struct {
	ctx    context.Context
	seed   uint64
	rng    *rand.Rand // chooses steps and data
	config config
	mutant mutant
	faults *faults
	trace  *trace
	clock  *clock

	log       coord.CommitLog
	watch     coord.Watch
	server    *mem.Server
	history   []coord.Entry // what watch delivered
	late      [][]byte      // records that are still on their way
	objects   blob.Store    // as instances see it: with faults
	store     blob.Store    // the same without
	tables    *memtables.Tables
	instances []*instance
	streams   []base.StreamID
	oracle    *oracle

	// acting is the instance whose step makes the calls that reach the stores.
	acting *instance
	depth  int // of steps inside the calls of other steps
	count  counts
	broken error // the first invariant that did not hold
}

// counts tell what a run covered.
type counts struct {
	steps, crashes, acked, read, compacted, merged, tableRows, deadRows int
	// reached counts what the fold and the drivers met.
	reached map[string]int
}

// newWorld starts a run. Only these events may go wrong, or all when nil.
func newWorld(ctx context.Context, seed uint64, steps int, only map[event]bool, m mutant) (*world, error) {
	w := &world{
		ctx: ctx, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), mutant: m, trace: newTrace(), clock: newClock(),
		tables: memtables.New(), count: counts{reached: make(map[string]int)},
	}
	w.config = drawConfig(seed, steps, w.rng)
	w.faults = newFaults(seed, w.config.rate, only)
	w.oracle = newOracle(w)
	var err error
	w.server = mem.NewServer(serverClock{w.clock})
	if w.log, err = w.server.Open("sim").Log(ctx, theShard.String()); err != nil {
		return nil, err
	}
	if w.watch, err = w.log.Watch(ctx, 1); err != nil {
		return nil, err
	}
	if w.store, err = blob.Open(ctx, "mem://", blob.Options{}); err != nil {
		return nil, err
	}
	w.objects = blob.NewFaulty(w.store, w.storeFault)
	w.tables.SetHook(w.tableFault)
	if err := w.bootstrap(); err != nil {
		return nil, err
	}
	for i := range w.config.instances {
		w.instances = append(w.instances, newInstance(w, i))
	}
	return w, nil
}

func (w *world) close() {
	w.watch.Stop()
	for _, i := range w.instances {
		i.close()
	}
	_ = w.store.Close() // it is in memory
}

// bootstrap writes the records that every cluster begins with.
func (w *world) bootstrap() error {
	records := []commitrecord.Payload{&commitpb.ClusterCreate{Shards: 1, FoldVersion: commitrecord.FoldVersion}}
	for i := range w.config.streams {
		records = append(records, &commitpb.StreamCreate{
			Namespace: "sim", Name: fmt.Sprintf("stream%d", i), Partitions: uint32(w.config.partitions), //nolint:gosec // 1 to 3
		})
	}
	for _, record := range records {
		data, err := commitrecord.Encode(commitrecord.Envelope{Cluster: cluster}, record)
		if err != nil {
			return err
		}
		w.append(data)
	}
	for _, st := range w.oracle.state.Streams() {
		w.streams = append(w.streams, st.ID)
	}
	return w.broken
}

// append lets a record reach the log, and the oracle.
func (w *world) append(data []byte) base.Revision {
	revision, err := w.log.Put(w.ctx, data)
	if err != nil {
		w.fail("the log in memory failed: %v", err)
		return 0
	}
	w.drain()
	return revision
}

// drain takes over what the log delivers.
func (w *world) drain() {
	for {
		select {
		case entry := <-w.watch.Entries():
			w.history = append(w.history, entry)
			w.oracle.observe(entry)
		default:
			return
		}
	}
}

// fail notes the first invariant that does not hold.
func (w *world) fail(format string, args ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf(format, args...)
		w.trace.add("BROKEN %v", w.broken)
	}
}

// move is one kind of step, and how often it is taken.
type move struct {
	name   string
	weight int
}

var moves = []move{{"append", 12}, {"write", 28}, {"deliver", 20}, {"compact", 16}, {"commit", 14}, {"read", 10}}

func (i *instance) do(m move) {
	switch m.name {
	case "append":
		i.appender.produce()
	case "write":
		i.appender.step()
	case "deliver":
		i.deliver(1 + i.world.rng.IntN(6))
	case "compact":
		i.compactor.step()
	case "commit":
		i.committer().step()
	case "read":
		i.reader().step()
	}
}

// step lets one instance do one thing, and checks every invariant.
func (w *world) step() {
	w.count.steps++
	w.clock.advance(time.Duration(1+w.rng.IntN(80)) * time.Millisecond)
	w.disturb()
	if w.mutant.step != nil {
		w.mutant.step(w)
	}
	m := w.drawMove()
	i := w.instances[w.rng.IntN(len(w.instances))]
	if i.pausedUntil <= w.count.steps {
		w.trace.add("%d: %s %s", w.count.steps, i.name, m.name)
		w.as(i, func() { i.do(m) })
	}
	w.oracle.check()
}

// as makes the calls of do those of an instance.
func (w *world) as(i *instance, do func()) {
	before := w.acting
	w.acting = i
	do()
	w.acting = before
}

func (w *world) drawMove() move {
	total := 0
	for _, m := range moves {
		total += m.weight
	}
	at := w.rng.IntN(total)
	for _, m := range moves {
		if at -= m.weight; at < 0 {
			return m
		}
	}
	return moves[0]
}

// meanwhile lets others take steps inside a call. What makes the call is busy and
// takes none.
func (w *world) meanwhile() {
	const deepest = 3
	if w.depth == deepest {
		return
	}
	w.depth++
	for range 1 + w.rng.IntN(10) {
		if w.broken == nil {
			w.step()
		}
	}
	w.depth--
}

// run takes all steps, heals every fault, and wants everything to get done.
func (w *world) run() error {
	for w.count.steps < w.config.steps && w.broken == nil {
		w.step()
	}
	if w.broken == nil {
		w.heal()
	}
	if w.broken == nil {
		w.oracle.checkEnd()
	}
	return w.broken
}

// maxRounds bounds how long a healed world may take.
const maxRounds = 300

// heal ends all faults and lets every instance work until nothing is left to do.
func (w *world) heal() {
	w.trace.add("heal")
	w.faults.healed = true
	w.clock.skew = 0
	for _, data := range w.late {
		w.append(data)
	}
	w.late = nil
	w.tables.DeliverHeld()
	w.oracle.tablesChanged = true
	for _, i := range w.instances {
		i.appender.produce()
	}
	for range maxRounds {
		if w.broken != nil || w.oracle.settled() {
			return
		}
		w.clock.advance(2 * time.Second)
		for _, i := range w.instances {
			w.as(i, i.settle)
			w.oracle.check()
		}
	}
	w.fail("invariant 9: not everything got done within %d rounds after the faults ended: %s", maxRounds, w.oracle.unsettled())
}

// entropy is a source of bytes that repeats itself from run to run.
type entropy struct{ rng *rand.Rand }

var _ io.Reader = entropy{}

func (e entropy) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e.rng.UintN(256)) //nolint:gosec // below 256
	}
	return len(p), nil
}
