package sim

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/log"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// instance is a process: a view of the log that lags, and what works over it.
type instance struct {
	*shard.Follower
	world   *world
	number  int
	name    string
	entropy entropy

	delivered   int // of the world's history
	crashed     bool
	pausedUntil int // the step at which it goes on

	appender   *appender
	compactor  *compactor
	committers []*committer
	readers    []*reader
}

var _ compaction.View = (*instance)(nil)

// newInstance starts an instance, which reads the whole log first.
func newInstance(w *world, number int) *instance {
	i := &instance{
		Follower: shard.NewFollower(cluster, theShard), world: w, number: number,
		name: fmt.Sprintf("%c%d", 'a'+number, w.count.crashes), entropy: entropy{w.rng},
	}
	i.deliver(len(w.history))
	i.appender = newAppender(i)
	i.compactor = &compactor{instance: i, fetcher: i.newFetcher()}
	for _, id := range w.streams {
		i.committers = append(i.committers, newCommitter(i, id))
		for p := range w.config.partitions {
			i.readers = append(i.readers, newReader(i, base.LogID{Stream: id, Partition: base.Partition(p)}))
		}
	}
	return i
}

// newFetcher makes one for each reader: a load that another one under way shares
// would wait for a step that cannot be taken. The smallest cache holds nothing, and
// keeps requests from running ahead on goroutines of their own.
func (i *instance) newFetcher() *log.Fetcher {
	fetcher, err := log.NewFetcher(i.world.objects, 1)
	if err != nil {
		i.world.fail("starting %s: %v", i.name, err)
	}
	return fetcher
}

// close lets go of what an instance holds outside the world.
func (i *instance) close() {
	i.compactor.fetcher.Close()
	for _, r := range i.readers {
		r.fetcher.Close()
	}
}

func (i *instance) committer() *committer { return i.committers[i.world.rng.IntN(len(i.committers))] }
func (i *instance) reader() *reader       { return i.readers[i.world.rng.IntN(len(i.readers))] }

// deliver shows the view at most so many entries, perhaps with others between.
func (i *instance) deliver(most int) {
	w := i.world
	for range most {
		if i.delivered >= len(w.history) || w.broken != nil {
			return
		}
		switch w.faults.next(pointDeliver) {
		case gap:
			if i.delivered+1 < len(w.history) {
				i.show(i.delivered+1, shard.ErrGap)
			}
		case repeated:
			for n := max(0, i.delivered-1-w.faults.draw.IntN(3)); n < i.delivered; n++ {
				i.show(n, nil)
			}
		default:
		}
		i.show(i.delivered, nil)
		i.delivered++
		w.oracle.compareView(i)
	}
}

// show applies one entry. A view may refuse an entry after a gap, and nothing else.
func (i *instance) show(n int, want error) {
	entry := i.world.history[n]
	if i.world.mutant.deliver != nil {
		i.world.mutant.deliver(i, &entry)
	}
	if err := i.Apply(entry); !errors.Is(err, want) {
		i.world.fail("invariant 7: view of %s at revision %d: %v", i.name, entry.Revision, err)
	}
}

// settle does what a healthy instance does between two rounds.
func (i *instance) settle() {
	i.deliver(len(i.world.history))
	i.appender.finish()
	i.compactor.finish()
	for _, c := range i.committers {
		c.step()
	}
	i.deliver(len(i.world.history))
}

// encode makes a record that says what this view has seen.
func (i *instance) encode(request commitrecord.RequestID, payload commitrecord.Payload) ([]byte, error) {
	return commitrecord.Encode(i.Envelope(request), payload)
}

// publishAttempts is how often Publish puts a record whose reply is lost before
// it gives up, as a caller whose context ends does.
const publishAttempts = 3

// Publish implements shard.Publisher over the view of this instance.
func (i *instance) Publish(_ context.Context, payload commitrecord.Payload) (shard.Outcome, error) {
	var request commitrecord.RequestID
	if _, err := io.ReadFull(i.entropy, request[:]); err != nil {
		return shard.Outcome{}, err
	}
	var found *shard.Outcome
	i.OnRequest(request, func(out shard.Outcome) { found = &out })
	defer i.OnRequest(request, nil)
	unknown := false
	for range publishAttempts {
		data, err := i.encode(request, payload)
		if err != nil {
			return shard.Outcome{}, err
		}
		_, err = i.world.put(i, data)
		unknown = unknown || errors.Is(err, base.ErrUnknown)
		switch {
		case i.crashed:
			return shard.Outcome{}, errCrashed
		case err != nil && !unknown:
			return shard.Outcome{}, err
		}
		i.deliver(len(i.world.history))
		if found != nil {
			return *found, nil
		}
	}
	return shard.Outcome{}, errUnknown
}
