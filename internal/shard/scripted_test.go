package shard_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

// scripted is a log of a store that breaks its word: each watch delivers what
// the script says, whatever was asked for.
type scripted struct {
	mu sync.Mutex
	// All below are guarded by mu.
	first, last base.Revision
	watches     [][]coord.Entry
	from        []base.Revision
	running     chan coord.Entry
}

func (l *scripted) Put(context.Context, []byte) (base.Revision, error) { return 0, base.ErrUnavailable }

func (l *scripted) Bounds(context.Context) (base.Revision, base.Revision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first, l.last, nil
}

func (l *scripted) Purge(context.Context, base.Revision) error { return base.ErrUnavailable }

func (l *scripted) Watch(_ context.Context, from base.Revision) (coord.Watch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.watches) == 0 {
		return nil, base.ErrUnavailable
	}
	l.running = make(chan coord.Entry, 16)
	for _, e := range l.watches[0] {
		l.running <- e
	}
	l.watches, l.from = l.watches[1:], append(l.from, from)
	return scriptedWatch(l.running), nil
}

// set changes the bounds that the leader tells.
func (l *scripted) set(first, last base.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first, l.last = first, last
}

// cut closes the running watch.
func (l *scripted) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.running)
}

type scriptedWatch chan coord.Entry

func (w scriptedWatch) Entries() <-chan coord.Entry { return w }
func (scriptedWatch) Stop()                         {}

func entry(t *testing.T, revision base.Revision, name string) coord.Entry {
	t.Helper()
	data := shardtest.Encode(t, &commitpb.ClusterCreate{Shards: 4, FoldVersion: commitrecord.FoldVersion})
	if revision > 1 {
		data = shardtest.Encode(t, stream(name))
	}
	return coord.Entry{Revision: revision, Data: data}
}

func TestAWatchThatSkipsRecordsIsMadeAgainFromTheLastAppliedOne(t *testing.T) {
	w := newWorld(t)
	log := &scripted{first: 1, last: 3, watches: [][]coord.Entry{
		{entry(t, 1, ""), entry(t, 3, "b")},
		{entry(t, 1, ""), entry(t, 2, "a"), entry(t, 2, "a"), entry(t, 3, "b"), entry(t, 2, "a")},
	}}
	opened := make(chan *shard.View, 1)
	go func() { opened <- w.openOn(log) }()
	w.until("the view opens", func() bool { return len(opened) == 1 })
	v := <-opened
	require.EqualValues(t, 3, v.Revision())
	require.Equal(t, []base.Revision{1, 1}, log.from)
}

func TestAViewStopsWhenTheStoreContradictsItself(t *testing.T) {
	for name, story := range map[string]struct {
		second []coord.Entry
		act    func(*scripted)
		says   string
	}{
		"another record at an applied revision": {
			[]coord.Entry{entry(t, 2, "another")}, (*scripted).cut, "replaced",
		},
		"records in between that are kept no more": {
			[]coord.Entry{entry(t, 9, "b")}, func(l *scripted) { l.set(9, 9); l.cut() }, "begins at revision 9",
		},
		"a log that ends before what was applied": {
			nil, func(l *scripted) { l.set(1, 1) }, "ends at revision 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			log := &scripted{first: 1, last: 2, watches: [][]coord.Entry{{entry(t, 1, ""), entry(t, 2, "a")}, story.second}}
			v := w.openOn(log)
			_, before, _ := hashes(v)
			story.act(log)
			w.until("the view stops", func() bool { return v.Err() != nil })
			require.ErrorIs(t, v.Err(), base.ErrCorrupt)
			require.ErrorContains(t, v.Err(), story.says)
			_, after, _ := hashes(v)
			require.Equal(t, before, after, "the last state is shown")
			_, err := v.Put(t.Context(), commitrecord.RequestID{}, stream("late"))
			require.ErrorIs(t, err, base.ErrCorrupt, "a view that stopped appends nothing")
		})
	}
}
