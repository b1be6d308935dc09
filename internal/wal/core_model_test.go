package wal_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/wal"
)

// model is a core between a driver that does things in any order and a commit log
// that loses replies, takes copies and is fenced by others.
type model struct {
	core    *wal.Core
	todo    []wal.Action
	appends []*wal.Append
	// resolved counts how often each append was resolved.
	resolved map[*wal.Append]int
	// deliver is what the view has still to show, in order.
	deliver []func()
	open    map[base.WriterID]base.Seq // next seq of each open writer
	heads   map[base.LogID]base.Offset
	rev     base.Revision
}

func TestCoreResolvesEachAppendOnceUnderAnyInterleaving(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			core: wal.NewCore(wal.CoreConfig{
				MaxObjectBytes: 400, EagerBytes: rapid.SampledFrom([]int{150, 1000}).Draw(t, "eager"),
				UploadConcurrency: rapid.IntRange(1, 3).Draw(t, "uploads"), FlushWhenIdle: rapid.Bool().Draw(t, "idle"),
			}),
			resolved: map[*wal.Append]int{}, open: map[base.WriterID]base.Seq{}, heads: map[base.LogID]base.Offset{},
		}
		t.Repeat(map[string]func(*rapid.T){
			"append":  m.append,
			"do":      func(t *rapid.T) { m.do(t, true) },
			"deliver": func(*rapid.T) { m.show() },
			"fence":   func(*rapid.T) { m.fence() },
			"flush":   func(*rapid.T) { m.core.Flush(); m.take() },
			"":        m.check,
		})
		for quiet := false; !quiet; { // faults heal, everything gets done
			m.core.Flush()
			m.take()
			quiet = len(m.todo) == 0 && len(m.deliver) == 0
			for len(m.todo) > 0 {
				m.do(t, false)
			}
			m.show()
		}
		m.checkEnd(t)
	})
}

func (m *model) append(t *rapid.T) {
	batch := wal.Batch{Urgent: rapid.Bool().Draw(t, "urgent")}
	for range rapid.IntRange(1, 3).Draw(t, "logs") {
		batch.Logs = append(batch.Logs, wal.LogRecords{
			Log:     base.LogID{Stream: 1, Partition: base.Partition(rapid.Int32Range(0, 2).Draw(t, "log"))},
			Records: make([]recordbatch.Record, rapid.IntRange(1, 4).Draw(t, "records")),
		})
	}
	a, err := wal.Encode(&batch, 1000)
	require.NoError(t, err)
	m.appends = append(m.appends, a)
	m.core.Add(a)
	m.take()
}

// take collects what the core wants done.
func (m *model) take() {
	for _, action := range m.core.Take(nil) {
		if action.Kind == wal.Resolve {
			m.resolved[action.Append]++
			continue
		}
		m.todo = append(m.todo, action)
	}
}

// do does any one of the things to do; with faults, perhaps half of it.
func (m *model) do(t *rapid.T, faults bool) {
	if len(m.todo) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.todo)-1).Draw(t, "which")
	action := m.todo[i]
	m.todo = slices.Delete(m.todo, i, i+1)
	switch action.Kind {
	case wal.OpenWriter:
		m.rev++
		id := base.WriterID(m.rev)
		m.open[id] = 1
		m.deliver = append(m.deliver, func() { m.core.WriterOpened(id) })
	case wal.Upload:
		_, err := action.Object.Build(&wal.Form{Alignment: 1}, action.Writer, action.Seq, nil)
		require.NoError(t, err)
		m.core.Uploaded(action.Object, action.Writer)
	case wal.Commit:
		m.commit(t, action, faults)
	case wal.Settle:
		m.core.Settled(action.Ordinal)
	case wal.Linger:
		m.core.Lingered(action.Ordinal)
	case wal.Resolve, wal.Release:
	}
	m.take()
}

// commit puts a record: it may not arrive, arrive twice, or arrive unnoticed.
func (m *model) commit(t *rapid.T, action wal.Action, faults bool) {
	fate := "put"
	if faults {
		fate = rapid.SampledFrom([]string{"put", "lost", "twice", "no reply"}).Draw(t, "fate")
	}
	copies := map[string]int{"put": 1, "lost": 0, "twice": 2, "no reply": 1}[fate]
	for range copies {
		m.fold(t, action.Object.Record(action.Writer, action.Seq))
	}
	if (fate == "lost" || fate == "no reply") && m.core.Current(action.Object, action.Writer) {
		m.todo = append(m.todo, action) // the driver puts it again
		return
	}
	m.core.CommitPut(action.Object)
}

// fold is what the shard does with an append record.
func (m *model) fold(t *rapid.T, record *commitpb.Append) {
	m.rev++
	out := shard.Outcome{Revision: m.rev, Writer: base.WriterID(record.GetWriter()), Seq: base.Seq(record.GetSeq())}
	next, ok := m.open[out.Writer]
	require.False(t, ok && out.Seq > next, "seq %d of writer %d left a gap after %d", out.Seq, out.Writer, next)
	switch {
	case !ok:
		out.Rejected = shard.WriterClosed
	case out.Seq < next:
		out.Rejected = shard.AlreadyPublished
	default:
		m.open[out.Writer]++
		for i, n := range record.GetRecords() {
			id := base.LogID{Stream: 1, Partition: base.Partition(record.GetPartition()[i])} //nolint:gosec // small
			out.Logs = append(out.Logs, shard.LogOutcome{Log: id, Base: m.heads[id], Records: int(n)})
			m.heads[id] += base.Offset(n)
		}
	}
	m.deliver = append(m.deliver, func() { m.core.Outcome(&out) })
}

// fence closes all writers, as another instance does.
func (m *model) fence() {
	m.rev++
	for id := range m.open {
		delete(m.open, id)
		m.deliver = append(m.deliver, func() { m.core.WriterClosed(id) })
	}
}

// show delivers what the view has not shown yet.
func (m *model) show() {
	shown := m.deliver
	m.deliver = nil
	for _, fn := range shown {
		fn()
		m.take()
	}
}

func (m *model) check(t *rapid.T) {
	for a, n := range m.resolved {
		require.Equal(t, 1, n, "an append was resolved twice: %v", a.Results())
	}
}

// checkEnd wants every append resolved, at offsets that cover each log exactly.
func (m *model) checkEnd(t *rapid.T) {
	m.check(t)
	require.Len(t, m.resolved, len(m.appends), m.core.String())
	total := 0
	for _, a := range m.appends {
		for _, result := range a.Results() {
			require.NoError(t, result.Err)
			require.Positive(t, result.Records)
			total += result.Records
		}
	}
	for _, head := range m.heads {
		total -= int(head)
	}
	require.Zero(t, total, "%s", fmt.Sprintf("records acknowledged and logged differ by %d", total))
}
