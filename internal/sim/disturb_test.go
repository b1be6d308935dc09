package sim

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/materialization/memtables"
)

// disturb is what happens between steps, to anybody.
func (w *world) disturb() {
	if len(w.late) > 0 && w.rng.IntN(20) == 0 {
		data := w.late[0]
		w.late = w.late[1:]
		w.trace.add("a late record arrives")
		w.append(data)
	}
	if w.rng.IntN(50) == 0 && w.tables.DeliverHeld() > 0 {
		w.trace.add("a late commit lands")
		w.oracle.tablesChanged = true
	}
	what := w.faults.next(pointStep)
	if what == none {
		return
	}
	i := w.instances[w.faults.draw.IntN(len(w.instances))]
	amount := w.faults.draw.IntN(60)
	w.trace.add("%s of %s", what, i.name)
	switch what {
	case crash:
		w.crash(i)
	case pause:
		i.pausedUntil = w.count.steps + amount
	case fence:
		w.as(i, func() { w.fenceSomeone(i) })
	case lapse:
		w.as(i, func() { w.trace.add("%s fences itself: %v", i.name, i.appender.fence()) })
	case stray:
		w.server.Stray(theShard.String(), []byte("not a record")[:w.faults.draw.IntN(12)])
		w.drain()
	case skew:
		w.clock.skew = time.Duration(amount-30) * time.Second
	case leap:
		w.clock.advance(time.Duration(amount) * 4 * time.Minute)
	default:
	}
}

// crash loses all that an instance has in memory. Another one takes its place.
func (w *world) crash(i *instance) {
	if i.crashed {
		return
	}
	w.trace.add("%s crashes", i.name)
	w.count.crashes++
	i.crashed = true
	i.close()
	w.instances[i.number] = newInstance(w, i.number)
}

// fenceSomeone lets an instance close any open writer, its own or another's.
func (w *world) fenceSomeone(i *instance) {
	open := slices.Sorted(maps.Keys(w.oracle.open))
	if len(open) == 0 {
		return
	}
	victim := open[w.faults.draw.IntN(len(open))]
	_, err := i.Publish(w.ctx, &commitpb.WriterFence{Writers: []uint64{uint64(victim)}})
	w.trace.add("%s fences writer %d: %v", i.name, victim, err)
}

// put carries a record of an instance to the log.
func (w *world) put(i *instance, data []byte) (base.Revision, error) {
	if i.crashed {
		return 0, errCrashed
	}
	what := w.faults.next(pointPut)
	if what != none {
		w.trace.add("put of %s: %s", i.name, what)
	}
	switch what {
	case unavailable:
		return 0, errUnavailable
	case lost:
		return 0, errUnknown
	case late:
		w.late = append(w.late, data)
		return 0, errUnknown
	case crashBefore:
		w.crash(i)
		return 0, errCrashed
	case slow:
		w.meanwhile() // it is on its way, whatever happens to its sender
	default:
	}
	revision := w.append(data)
	switch what {
	case twice:
		w.append(data)
	case noReply:
		return 0, errUnknown
	case slowReply:
		w.meanwhile()
	case crashAfter:
		w.crash(i)
	default:
	}
	if i.crashed {
		return 0, errCrashed
	}
	return revision, nil
}

// storeFault decides about a call to the object store.
func (w *world) storeFault(c blob.Call) blob.Fault {
	if w.acting.crashed {
		return blob.Fault{Before: errCrashed}
	}
	var what kind
	switch c.Op {
	case blob.OpPut, blob.OpCommit:
		what = w.faults.next(pointWrite)
	case blob.OpReadRange:
		what = w.faults.next(pointRead)
	case blob.OpStat, blob.OpCreate:
		return blob.Fault{}
	default:
		return blob.Fault{}
	}
	if what == none {
		return blob.Fault{}
	}
	w.trace.add("%s of %s: %s", c.Op, c.Key, what)
	return w.blobFault(w.acting, c.Op, what)
}

func (w *world) blobFault(i *instance, op blob.Op, what kind) blob.Fault {
	meanwhile := func(context.Context) error { w.meanwhile(); return nil }
	switch what {
	case unavailable:
		return blob.Fault{Before: errUnavailable}
	case lost:
		return blob.Fault{Before: errUnknown}
	case noReply:
		return blob.Fault{After: errUnknown}
	case partial:
		if op != blob.OpPut { // only Put may leave a part
			return blob.Fault{Before: errUnknown}
		}
		return blob.Fault{Damage: blob.Truncate(w.faults.draw.IntN(200)), After: errUnknown}
	case flipped:
		w.oracle.damaged++
		return blob.Fault{Damage: blob.FlipBit(w.faults.draw.IntN(1 << 16))}
	case slow:
		return blob.Fault{Wait: meanwhile}
	case slowReply:
		return blob.Fault{Wait: meanwhile, After: errUnknown}
	case crashBefore:
		return blob.Fault{Wait: func(context.Context) error { w.crash(i); return errCrashed }}
	default: // crashAfter
		return blob.Fault{Wait: func(context.Context) error { w.crash(i); return nil }, After: errCrashed}
	}
}

// tableFault decides about a call to the catalog or to the files under it.
func (w *world) tableFault(op memtables.Op) memtables.Fault {
	if w.oracle.looking {
		return memtables.Fault{}
	}
	if w.acting.crashed {
		return memtables.Fault{Before: errCrashed}
	}
	at := pointTable
	if op.Kind == memtables.OpCommit {
		at = pointCommit
		w.oracle.tablesChanged = true
	}
	what := w.faults.next(at)
	if what == none {
		return memtables.Fault{}
	}
	i := w.acting
	w.trace.add("%s of %s%s: %s", op.Kind, op.Ident, op.Path, what)
	switch what {
	case unavailable:
		return memtables.Fault{Before: errUnavailable}
	case lost:
		return memtables.Fault{Before: errUnknown}
	case noReply:
		return memtables.Fault{After: errUnknown}
	case late:
		return memtables.Fault{Hold: true}
	case slow:
		return memtables.Fault{Meanwhile: w.meanwhile}
	case conflict:
		return memtables.Fault{Meanwhile: func() { _ = w.tables.Append(op.Ident) }}
	case crashBefore:
		w.crash(i)
		return memtables.Fault{Before: errCrashed}
	default: // crashAfter
		return memtables.Fault{Meanwhile: func() { w.crash(i) }, After: errCrashed}
	}
}
