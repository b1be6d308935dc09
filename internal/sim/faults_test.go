package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/lakestream-go/lakestream/internal/base"
)

// point is a kind of call that can go wrong.
type point string

const (
	pointPut     point = "put"     // a record on its way to the log
	pointWrite   point = "write"   // an object on its way to the store
	pointRead    point = "read"    // bytes on their way from the store
	pointTable   point = "table"   // a call to the catalog or its files
	pointCommit  point = "commit"  // a commit to a table
	pointDeliver point = "deliver" // an entry on its way to a view
	pointStep    point = "step"    // anything between two steps
)

// kind is what goes wrong.
type kind string

const (
	none        kind = ""
	unavailable kind = "unavailable" // nothing happened, and the caller knows
	lost        kind = "lost"        // nothing happened, and the caller does not know
	noReply     kind = "no-reply"    // it happened, and the caller does not know
	twice       kind = "twice"       // it happened two times
	late        kind = "late"        // it happens later, and the caller does not know
	slow        kind = "slow"        // others take steps before it happens
	slowReply   kind = "slow-reply"  // others take steps after it happened
	partial     kind = "partial"     // a part of the object was stored
	flipped     kind = "flipped"     // a bit of what was read is wrong
	conflict    kind = "conflict"    // someone else changes the table first
	gap         kind = "gap"         // an entry is skipped
	repeated    kind = "repeated"    // entries are delivered again
	crashBefore kind = "crash-before"
	crashAfter  kind = "crash-after"
	crash       kind = "crash"
	pause       kind = "pause" // an instance stands still, and goes on as if nothing had been
	lapse       kind = "lapse" // an instance closes its own writer: its lease may be lost
	fence       kind = "fence" // an instance closes a writer that is alive
	stray       kind = "stray" // someone puts bytes of their own into the log
	skew        kind = "skew"  // the server's clock jumps, also backwards
	leap        kind = "leap"  // hours pass
)

// kindsOf lists what can happen at each point.
var kindsOf = map[point][]kind{
	pointPut:     {unavailable, lost, noReply, noReply, twice, late, slow, slowReply, crashBefore, crashAfter},
	pointWrite:   {unavailable, lost, noReply, noReply, partial, slow, slowReply, crashBefore, crashAfter},
	pointRead:    {unavailable, flipped, slow, crashBefore},
	pointTable:   {unavailable, noReply, slow, crashBefore, crashAfter},
	pointCommit:  {unavailable, lost, noReply, noReply, late, slow, slow, conflict, conflict, crashBefore, crashAfter},
	pointDeliver: {gap, repeated},
	pointStep:    {crash, pause, pause, fence, fence, lapse, stray, skew, leap},
}

// shareOf says how much of a seed's rate of faults each point gets.
var shareOf = map[point]float64{
	pointPut: 1, pointWrite: 1, pointRead: 0.3, pointTable: 1, pointCommit: 5, pointDeliver: 0.4, pointStep: 0.5,
}

// event is the n-th call at a point, counted from 1. It names a fault in a way
// that stays the same when other faults are left out.
type event struct {
	point point
	n     int
}

func (e event) String() string { return fmt.Sprintf("%s#%d", e.point, e.n) }

// noEvents is a plan without faults.
const noEvents = "none"

// parseEvents reads a plan as a failure prints it. The empty text lets every fault
// happen, which is nil.
func parseEvents(text string) (map[event]bool, error) {
	switch text {
	case "":
		return nil, nil
	case noEvents:
		return map[event]bool{}, nil
	}
	events := make(map[event]bool)
	for field := range strings.FieldsSeq(text) {
		name, number, _ := strings.Cut(field, "#")
		n, err := strconv.Atoi(number)
		if kindsOf[point(name)] == nil || err != nil {
			return nil, fmt.Errorf("event %q: want point#number: %w", field, base.ErrInvalid)
		}
		events[event{point(name), n}] = true
	}
	return events, nil
}

// plan is the faults of a run: those that fired, in order.
type plan []event

func (p plan) String() string {
	if len(p) == 0 {
		return noEvents
	}
	text := make([]string, len(p))
	for i, e := range p {
		text[i] = e.String()
	}
	return strings.Join(text, " ")
}

// faults decides which calls go wrong. What happens to a call follows from the
// seed and the event alone, so that a plan can be shortened.
type faults struct {
	seed uint64
	rate float64
	// only, when not nil, are the events that may fire.
	only   map[event]bool
	healed bool

	calls map[point]int
	fired plan
	// injected counts the faults that fired, by point and kind.
	injected map[string]int
	// draw makes the choices of the fault that fired last.
	draw *rand.Rand
}

func newFaults(seed uint64, rate float64, only map[event]bool) *faults {
	return &faults{seed: seed, rate: rate, only: only, calls: make(map[point]int), injected: make(map[string]int)}
}

// next decides the next call at a point.
func (f *faults) next(p point) kind {
	f.calls[p]++
	e := event{p, f.calls[p]}
	h := fnv.New64a()
	_, _ = h.Write([]byte(p))
	draw := rand.New(rand.NewPCG(f.seed^h.Sum64(), uint64(e.n))) //nolint:gosec // counts up
	if f.healed || draw.Float64() >= f.rate*shareOf[p] || f.only != nil && !f.only[e] {
		return none
	}
	what := kindsOf[p][draw.IntN(len(kindsOf[p]))]
	f.fired = append(f.fired, e)
	f.injected[faultName(p, what)]++
	f.draw = draw
	return what
}

func faultName(p point, what kind) string { return string(p) + " " + string(what) }

// The errors that calls return. A crash is an unknown outcome to whoever is left.
var (
	errUnavailable = fmt.Errorf("injected: %w", base.ErrUnavailable)
	errUnknown     = fmt.Errorf("injected: %w", base.ErrUnknown)
	errCrashed     = fmt.Errorf("the instance has crashed: %w", base.ErrUnknown)
)
