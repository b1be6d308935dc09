package wal_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/wal"
)

// world is one shard whose history several instances append to and follow, each as
// far as chance has it.
type world struct {
	history   []coord.Entry
	objects   map[string][]byte
	stream    base.StreamID
	instances []*instance
	requests  byte
	// acked holds the sequences that a caller was told are there.
	acked map[base.ProducerSeq]bool
}

// instance is a process: it loses everything but its objects and records when it
// crashes.
type instance struct {
	*world
	core  *wal.Core
	view  *shard.Follower
	todo  []wal.Action
	tries map[*wal.Append]*try
	ended []*wal.Append // resolved, and not looked at yet
}

// try is one caller's batch.
type try struct {
	batch    *wal.Batch
	progress *wal.Idempotent
}

const (
	worldSequences  = 60
	worldPartitions = 3
	worldProducer   = "kafka-eu/orders/7"
)

// However batches are cut, shuffled, repeated and raced by several instances that
// crash, lose replies and are fenced: every record is in the stream once, and what
// was acknowledged is there.
func TestEachSequenceLandsOnceUnderAnyInterleaving(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		pick := func(t *rapid.T) *instance {
			return w.instances[rapid.IntRange(0, len(w.instances)-1).Draw(t, "instance")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"deliver": func(t *rapid.T) { pick(t).deliver(t, w.drawBatch(t)) },
			"do":      func(t *rapid.T) { pick(t).do(t, true) },
			"do more": func(t *rapid.T) { pick(t).do(t, true) },
			"follow":  func(t *rapid.T) { pick(t).follow(t, rapid.IntRange(1, 5).Draw(t, "entries")) },
			"fence":   func(t *rapid.T) { pick(t).fence(t) },
			"crash": func(t *rapid.T) {
				w.instances[rapid.IntRange(0, len(w.instances)-1).Draw(t, "instance")] = newInstance(w)
			},
			"": func(t *rapid.T) { w.check(t, false) },
		})
		for range worldSequences { // faults heal; what was not acknowledged comes again
			if w.deliverRest(t) == 0 {
				break
			}
		}
		require.Len(t, w.acked, worldSequences)
		w.check(t, true)
	})
}

func newWorld(t *rapid.T) *world {
	w := &world{objects: map[string][]byte{}, acked: map[base.ProducerSeq]bool{}}
	for range 2 {
		w.instances = append(w.instances, newInstance(w))
	}
	first := w.instances[0]
	first.put(t, commitrecord.RequestID{}, &commitpb.ClusterCreate{Shards: 1, FoldVersion: commitrecord.FoldVersion})
	first.follow(t, 1)
	first.put(t, commitrecord.RequestID{}, &commitpb.StreamCreate{Namespace: "n", Name: "s", Partitions: worldPartitions})
	w.stream = 2
	for _, i := range w.instances { // an engine opens after its view has caught up
		i.follow(t, 2)
	}
	return w
}

func newInstance(w *world) *instance {
	return &instance{
		world: w, view: shard.NewFollower(cluster, testShard), tries: map[*wal.Append]*try{},
		core: wal.NewCore(wal.CoreConfig{MaxObjectBytes: 600, EagerBytes: 300, UploadConcurrency: 2, FlushWhenIdle: true}),
	}
}

// put appends a record to the history.
func (i *instance) put(t *rapid.T, request commitrecord.RequestID, payload commitrecord.Payload) {
	data, err := commitrecord.Encode(i.view.Envelope(request), payload)
	require.NoError(t, err)
	n := len(i.history) + 1
	i.history = append(i.history, coord.Entry{Revision: base.Revision(n), Time: base.Millis(n), Data: data})
}

// follow applies up to n entries and does what follows from them.
func (i *instance) follow(t *rapid.T, n int) {
	for ; n > 0 && !i.hasCaughtUp(); n-- {
		require.NoError(t, i.view.Apply(i.history[i.view.Revision()]))
		i.take(t)
	}
}

func (i *instance) hasCaughtUp() bool { return i.view.Revision() == base.Revision(len(i.history)) }

// drawBatch makes a batch of any sequences; some have two records, which always come
// together. A partition is chosen anew at every delivery.
func (w *world) drawBatch(t *rapid.T) *wal.Batch {
	low := rapid.IntRange(0, worldSequences-1).Draw(t, "low")
	run := make([]base.ProducerSeq, 0, 12)
	for seq := low; seq < min(worldSequences, low+rapid.IntRange(1, 12).Draw(t, "run")); seq++ {
		run = append(run, base.ProducerSeq(seq)) //nolint:gosec // not negative
	}
	return w.batchOf(t, rapid.Permutation(run).Draw(t, "order"))
}

func (w *world) batchOf(t *rapid.T, sequences []base.ProducerSeq) *wal.Batch {
	batch := &wal.Batch{Urgent: true, Logs: make([]wal.LogRecords, worldPartitions)}
	for p := range batch.Logs {
		batch.Logs[p].Log = base.LogID{Stream: w.stream, Partition: base.Partition(p)}
		batch.Logs[p].Producer = worldProducer
	}
	for _, seq := range sequences {
		for _, value := range valuesOf(seq) {
			l := &batch.Logs[rapid.IntRange(0, worldPartitions-1).Draw(t, "partition")]
			l.Records = append(l.Records, recordbatch.Record{Value: []byte(value)})
			l.Sequences = append(l.Sequences, seq)
		}
	}
	return batch
}

// valuesOf returns the records of a sequence.
func valuesOf(seq base.ProducerSeq) []string {
	if seq%5 == 0 {
		return []string{fmt.Sprintf("%d a", seq), fmt.Sprintf("%d b", seq)}
	}
	return []string{fmt.Sprint(seq)}
}

// deliver is what a caller of Append does.
func (i *instance) deliver(t *rapid.T, batch *wal.Batch) {
	if i.view.Revision() < 2 { // it has not opened yet
		return
	}
	progress, err := wal.NewIdempotent(batch, 1000)
	require.NoError(t, err)
	i.goOn(t, &try{batch: batch, progress: progress})
}

// goOn appends what is left of a batch, or takes note of what became of it.
func (i *instance) goOn(t *rapid.T, one *try) {
	var attempt *wal.Batch
	i.view.Inspect(func(s *shard.State) { attempt = one.progress.Attempt(s) })
	if attempt != nil {
		a, err := wal.Encode(attempt, 1000)
		require.NoError(t, err)
		i.tries[a] = one
		i.core.Add(a)
		i.take(t)
		return
	}
	for k, result := range one.progress.Results() {
		require.NoError(t, result.Err)
		require.Empty(t, result.Invalid)
		l := one.batch.Logs[k]
		require.Len(t, l.Records, result.Records+len(result.Duplicates), "each record is new or a duplicate")
		for _, seq := range l.Sequences {
			i.acked[seq] = true
		}
	}
}

func (i *instance) take(t *rapid.T) {
	for _, action := range i.core.Take(nil) {
		if action.Kind == wal.Resolve {
			i.ended = append(i.ended, action.Append)
			continue
		}
		i.todo = append(i.todo, action)
	}
	for len(i.ended) > 0 {
		a := i.ended[0]
		i.ended = i.ended[1:]
		one := i.tries[a]
		delete(i.tries, a)
		one.progress.Settle(a.Results())
		i.goOn(t, one)
	}
}

// do does any one of the things to do; with faults, perhaps half of it.
func (i *instance) do(t *rapid.T, faults bool) {
	if len(i.todo) == 0 {
		return
	}
	at := rapid.IntRange(0, len(i.todo)-1).Draw(t, "which")
	action := i.todo[at]
	i.todo = slices.Delete(i.todo, at, at+1)
	switch action.Kind {
	case wal.OpenWriter:
		i.openWriter(t)
	case wal.Upload:
		data, err := action.Object.Build(&wal.Form{Cluster: cluster, Alignment: 1}, action.Writer, action.Seq, nil)
		require.NoError(t, err)
		i.objects[base.WALKey(testShard, action.Writer, action.Seq)] = slices.Clone(data)
		i.core.Uploaded(action.Object, action.Writer)
	case wal.Commit:
		i.commit(t, action, faults)
	case wal.Settle:
		i.core.Settled(action.Ordinal)
	case wal.Linger:
		i.core.Lingered(action.Ordinal)
	case wal.Resolve, wal.Release:
	}
	i.take(t)
}

func (i *instance) openWriter(t *rapid.T) {
	i.requests++
	request := commitrecord.RequestID{i.requests}
	i.view.OnRequest(request, func(out shard.Outcome) {
		i.view.OnWriter(out.Writer, func(out shard.Outcome) { i.core.Outcome(&out) })
		i.core.WriterOpened(out.Writer)
	})
	i.put(t, request, &commitpb.WriterOpen{Instance: "i", Token: append(make([]byte, 15), i.requests)})
}

// commit puts a record: it may not arrive, arrive twice, or arrive unnoticed.
func (i *instance) commit(t *rapid.T, action wal.Action, faults bool) {
	fate := "put"
	if faults {
		fate = rapid.SampledFrom([]string{"put", "lost", "twice", "no reply"}).Draw(t, "fate")
	}
	for range map[string]int{"put": 1, "twice": 2, "no reply": 1}[fate] {
		i.put(t, commitrecord.RequestID{}, action.Object.Record(action.Writer, action.Seq))
	}
	if (fate == "lost" || fate == "no reply") && i.core.Current(action.Object, action.Writer) {
		i.todo = append(i.todo, action) // the driver puts it again
		return
	}
	i.core.CommitPut(action.Object)
}

// fence closes the writer of an instance, as another one does that thinks it dead.
func (i *instance) fence(t *rapid.T) {
	if writer := i.core.Writer(); writer != 0 {
		i.put(t, commitrecord.RequestID{}, &commitpb.WriterFence{Writers: []uint64{uint64(writer)}})
	}
}

// deliverRest lets the first instance do everything that is left, delivers what was
// not acknowledged, and returns how much that was.
func (w *world) deliverRest(t *rapid.T) int {
	i := w.instances[0]
	var rest []base.ProducerSeq
	for seq := range base.ProducerSeq(worldSequences) {
		if !w.acked[seq] {
			rest = append(rest, seq)
		}
	}
	i.follow(t, len(i.history))
	if len(rest) > 0 {
		i.deliver(t, w.batchOf(t, rest))
	}
	for quiet := false; !quiet; {
		i.core.Flush()
		i.take(t)
		quiet = len(i.todo) == 0 && i.hasCaughtUp()
		for len(i.todo) > 0 {
			i.do(t, false)
		}
		i.follow(t, len(i.history))
	}
	return len(rest)
}

// check reads the whole stream, as the history has it.
func (w *world) check(t *rapid.T, complete bool) {
	view := shard.NewFollower(cluster, testShard)
	for _, e := range w.history {
		require.NoError(t, view.Apply(e))
	}
	found := map[string]int{}
	view.Inspect(func(s *shard.State) {
		for p := range base.Partition(worldPartitions) {
			l, ok := s.Log(base.LogID{Stream: w.stream, Partition: p})
			require.True(t, ok)
			for _, value := range w.read(t, s.Entries(l, 0, 1<<20)) {
				found[value]++
			}
		}
	})
	for value, n := range found {
		require.Equal(t, 1, n, "record %s", value)
	}
	for seq := range w.acked {
		for _, value := range valuesOf(seq) {
			require.Contains(t, found, value, "it was acknowledged")
		}
	}
	for seq := range base.ProducerSeq(worldSequences) {
		values := valuesOf(seq)
		require.Equal(t, found[values[0]], found[values[len(values)-1]], "the records of sequence %d land together", seq)
		require.True(t, !complete || found[values[0]] == 1, "sequence %d", seq)
	}
}

func (w *world) read(t *rapid.T, indexed []shard.Entry) (values []string) {
	if len(indexed) == 0 {
		return nil
	}
	var entries []recordbatch.Entry
	for _, e := range indexed {
		data := w.objects[e.Key()][e.Pos : e.Pos+e.Len]
		entries = append(entries, recordbatch.Entry{
			Base: e.Range.Start, Records: int(e.Range.Len()), Revision: e.Revision, AppendTime: e.AppendTime, Data: data,
		})
	}
	source, err := recordbatch.NewSource(entries)
	require.NoError(t, err)
	require.NoError(t, source.Each(func(p *recordbatch.Positioned) error {
		values = append(values, string(p.Value))
		return nil
	}))
	return values
}
