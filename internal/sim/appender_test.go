package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/wal"
)

// appender drives a wal.Core as wal.Writer does, one effect a step, in any order.
type appender struct {
	instance *instance
	core     *wal.Core
	form     wal.Form
	todo     []wal.Action
	// token is that of the WriterOpen record which is being published.
	token []byte
	// subscribed is the writer whose outcomes the view delivers, 0 for none.
	subscribed base.WriterID
	// waiting are the unresolved appends and what they brought.
	waiting map[*wal.Append]wal.Batch
}

const (
	// maxWaiting bounds the unresolved appends of an instance, as the buffer does.
	maxWaiting     = 12
	maxRecordBytes = 1 << 16
)

func newAppender(i *instance) *appender {
	return &appender{
		instance: i, core: wal.NewCore(i.world.config.core), waiting: make(map[*wal.Append]wal.Batch),
		form: wal.Form{Cluster: cluster, Shard: theShard, Alignment: 1},
	}
}

// produce brings an append of a few records for one or more logs.
func (a *appender) produce() {
	w := a.instance.world
	if len(a.waiting) >= maxWaiting {
		return
	}
	batch := wal.Batch{Urgent: w.rng.IntN(2) == 0}
	for range 1 + w.rng.IntN(3) {
		id := base.LogID{
			Stream:    w.streams[w.rng.IntN(len(w.streams))],
			Partition: base.Partition(w.rng.Int32N(w.config.partitions)),
		}
		records := make([]recordbatch.Record, 1+w.rng.IntN(4))
		for n := range records {
			records[n] = w.oracle.newRecord(id)
		}
		batch.Logs = append(batch.Logs, wal.LogRecords{Log: id, Records: records})
	}
	added, err := wal.Encode(&batch, maxRecordBytes)
	if err != nil {
		w.fail("encoding an append: %v", err)
		return
	}
	a.waiting[added] = batch
	a.core.Add(added)
	a.take()
}

// take collects what the core wants done.
func (a *appender) take() {
	for _, action := range a.core.Take(nil) {
		switch action.Kind {
		case wal.Resolve:
			a.resolve(action.Append)
		case wal.Release:
		default:
			a.todo = append(a.todo, action)
		}
	}
}

func (a *appender) resolve(done *wal.Append) {
	batch, ok := a.waiting[done]
	if !ok {
		a.instance.world.fail("invariant 1: an append of %s was resolved twice", a.instance.name)
	}
	delete(a.waiting, done)
	for n, result := range done.Results() {
		a.instance.world.oracle.acknowledged(batch.Logs[n], result)
	}
}

// step does any one of the things to do.
func (a *appender) step() {
	if len(a.todo) > 0 {
		a.do(a.instance.world.rng.IntN(len(a.todo)))
	}
}

// do performs one action. What did not succeed is done again later.
func (a *appender) do(n int) {
	action := a.todo[n]
	a.todo = slices.Delete(a.todo, n, n+1)
	var err error
	switch action.Kind {
	case wal.OpenWriter:
		err = a.open()
	case wal.Upload:
		err = a.upload(&action)
	case wal.Commit:
		err = a.commit(&action)
	case wal.Settle:
		a.core.Settled(action.Ordinal)
	case wal.Linger:
		a.core.Lingered(action.Ordinal)
	case wal.Resolve, wal.Release:
	}
	if err != nil {
		a.todo = append(a.todo, action)
	}
	a.take()
}

// finish flushes and does all there is to do once.
func (a *appender) finish() {
	a.core.Flush()
	a.take()
	for range len(a.todo) {
		a.do(0)
	}
}

// open publishes a WriterOpen record. Its token makes all copies open one writer.
func (a *appender) open() error {
	if a.token == nil {
		a.token = make([]byte, 16)
		if _, err := io.ReadFull(a.instance.entropy, a.token); err != nil {
			return err
		}
	}
	out, err := a.instance.Publish(a.instance.world.ctx, &commitpb.WriterOpen{Token: a.token, Instance: a.instance.name})
	if err != nil {
		return err
	}
	a.token = nil
	a.subscribe(out.Writer)
	a.core.WriterOpened(out.Writer)
	return nil
}

func (a *appender) subscribe(writer base.WriterID) {
	if a.subscribed != 0 {
		a.instance.OnWriter(a.subscribed, nil)
	}
	a.subscribed = writer
	a.instance.OnWriter(writer, func(out shard.Outcome) {
		a.instance.world.mutant.fold(&out)
		a.core.Outcome(&out)
		a.take()
	})
}

// upload builds an object and puts it, unless it is no longer wanted.
func (a *appender) upload(action *wal.Action) error {
	w := a.instance.world
	if !a.core.Current(action.Object, action.Writer) {
		a.core.Uploaded(action.Object, action.Writer)
		return nil
	}
	data, err := action.Object.Build(&a.form, action.Writer, action.Seq, nil)
	if err != nil {
		w.fail("building an object: %v", err)
		return err
	}
	err = a.put(base.WALKey(theShard, action.Writer, action.Seq), data)
	if errors.Is(err, errOccupied) {
		w.count.reached["a key occupied by a part of an object"]++
		err = errors.Join(a.fence(), err)
	}
	if err == nil {
		a.core.Uploaded(action.Object, action.Writer)
	}
	return err
}

// errOccupied says that a part of an object stands under its key.
var errOccupied = errors.New("the key holds other bytes")

func (a *appender) put(key string, data []byte) error {
	w := a.instance.world
	err := w.objects.Put(w.ctx, key, data)
	if !errors.Is(err, base.ErrExists) {
		return err
	}
	info, err := w.objects.Stat(w.ctx, key)
	if err != nil {
		return err
	}
	stored, err := w.objects.ReadRange(w.ctx, key, 0, info.Size, nil)
	if err != nil {
		return err
	}
	if !bytes.Equal(stored, data) {
		return errOccupied
	}
	return nil
}

// commit puts an object's record, unless its outcome is known.
func (a *appender) commit(action *wal.Action) error {
	if !a.core.Current(action.Object, action.Writer) {
		a.core.CommitPut(action.Object)
		return nil
	}
	record := action.Object.Record(action.Writer, action.Seq)
	data, err := a.instance.encode(commitrecord.RequestID{}, record)
	if err != nil {
		return fmt.Errorf("encoding an append: %w", err)
	}
	_, err = a.instance.world.put(a.instance, data)
	if err == nil {
		a.core.CommitPut(action.Object)
		return nil
	}
	if lostReply := a.instance.world.mutant.lostReply; lostReply != nil && errors.Is(err, base.ErrUnknown) {
		lostReply(a, record)
	}
	return err
}

// fence closes the appender's own writer, as after a lost lease.
func (a *appender) fence() error {
	writer := a.core.Writer()
	if writer == 0 {
		return nil
	}
	_, err := a.instance.Publish(a.instance.world.ctx, &commitpb.WriterFence{Writers: []uint64{uint64(writer)}})
	if err != nil {
		return err
	}
	a.core.WriterClosed(writer)
	a.take()
	return nil
}

// idle reports whether nothing is under way.
func (a *appender) idle() bool { return len(a.waiting) == 0 && a.core.InFlight() == 0 }
