package cluster_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/cluster"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/shard"
)

const (
	shards   = 2
	document = "identity"
	object   = "cluster.json"
	walKey   = "wal/s00/3/00000000000000000001.wal"
)

// stores are the two stores of a cluster, and the clock of their instances.
type stores struct {
	t      *testing.T
	clock  *coordtest.Clock
	server *mem.Server
	coord  coord.Store
	blob   blob.Store
}

func newStores(t *testing.T) stores {
	t.Helper()
	clock := coordtest.NewClock()
	server := mem.NewServer(clock)
	objects, err := blob.Open(t.Context(), "mem://", blob.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, objects.Close()) })
	return stores{t: t, clock: clock, server: server, coord: server.Open("a"), blob: objects}
}

func (s stores) bootstrap() cluster.Bootstrap {
	return cluster.Bootstrap{
		Coordination: s.coord, Objects: s.blob, Shards: shards,
		Clock: s.clock, Entropy: rand.Reader, Logger: slog.New(slog.DiscardHandler),
	}
}

func (s stores) run() (cluster.Identity, error) { return s.bootstrap().Run(s.t.Context()) }

func (s stores) document() string {
	s.t.Helper()
	doc, err := s.coord.Documents().Get(s.t.Context(), document)
	if err != nil {
		require.ErrorIs(s.t, err, base.ErrNotFound)
	}
	return string(doc.Value)
}

func (s stores) object() string {
	s.t.Helper()
	info, err := s.blob.Stat(s.t.Context(), object)
	if err != nil {
		require.ErrorIs(s.t, err, base.ErrNotFound)
		return ""
	}
	data, err := s.blob.ReadRange(s.t.Context(), object, 0, info.Size, nil)
	require.NoError(s.t, err)
	return string(data)
}

func (s stores) last(name string) base.Revision {
	s.t.Helper()
	log, err := s.coord.Log(s.t.Context(), name)
	require.NoError(s.t, err)
	_, last, err := log.Bounds(s.t.Context())
	require.NoError(s.t, err)
	return last
}

// fold folds a log from its first record on.
func (s stores) fold(id cluster.Identity, sh base.Shard) *shard.State {
	s.t.Helper()
	log, err := s.coord.Log(s.t.Context(), sh.String())
	require.NoError(s.t, err)
	watch, err := log.Watch(s.t.Context(), 1)
	require.NoError(s.t, err)
	defer watch.Stop()
	state := shard.NewState(id.Cluster, sh)
	for last := s.last(sh.String()); state.Revision() < last; {
		e := <-watch.Entries()
		_, err := state.Apply(e.Revision, e.Time, e.Data)
		require.NoError(s.t, err)
	}
	return state
}

// requireWhole checks that the cluster stands in both stores and in every log.
func (s stores) requireWhole(id cluster.Identity) {
	s.t.Helper()
	require.NotEmpty(s.t, s.document())
	require.Equal(s.t, s.document(), s.object())
	require.Contains(s.t, s.document(), id.Cluster.String())
	for _, sh := range id.Logs() {
		state := s.fold(id, sh)
		require.True(s.t, state.Created(), "the log of %s", sh)
		require.Equal(s.t, id.Shards, state.Shards())
		require.EqualValues(s.t, commitrecord.FoldVersion, state.FoldVersion())
	}
}

func TestAClusterIsCreatedOnceAndFoundAgain(t *testing.T) {
	s := newStores(t)
	id, err := s.run()
	require.NoError(t, err)
	require.False(t, id.Cluster.IsZero())
	require.Equal(t, shards, id.Shards)
	require.Equal(t, []base.Shard{base.MetaShard, 0, 1}, id.Logs())
	s.requireWhole(id)
	for range 2 {
		again, err := s.run()
		require.NoError(t, err)
		require.Equal(t, id, again)
	}
	require.EqualValues(t, 1, s.last("s00"), "finding writes nothing")
}

func TestTheShardCountIsFixedAtCreation(t *testing.T) {
	s := newStores(t)
	_, err := s.run()
	require.NoError(t, err)
	for _, configured := range []int{0, 1, 64} {
		b := s.bootstrap()
		b.Shards = configured
		id, err := b.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, shards, id.Shards)
	}
}

func TestACountThatCannotBeCreatesNothing(t *testing.T) {
	for _, count := range []int{-1, 0, base.MaxShards + 1} {
		s := newStores(t)
		b := s.bootstrap()
		b.Shards = count
		_, err := b.Run(t.Context())
		require.ErrorIs(t, err, base.ErrInvalid, "%d shards", count)
		require.Empty(t, s.document())
		require.Empty(t, s.object())
	}
}

// world is which of the four parts of a cluster a store still holds.
type world struct {
	document, object, logs, data bool
}

func (w world) String() string {
	return fmt.Sprintf("document %v, object %v, logs %v, data %v", w.document, w.object, w.logs, w.data)
}

// want says what an opener must make of it: nil to find or create a cluster.
func (w world) want() error {
	switch {
	case w.document != w.object && (w.object || w.logs):
		return base.ErrForeign // an identity in one store without the other
	case w.data && !w.logs:
		return base.ErrForeign // objects beside an empty log
	case w.logs && !w.document:
		return base.ErrForeign // logs of nobody
	default:
		return nil
	}
}

func TestEveryRemainderOfAClusterIsFinishedOrRefused(t *testing.T) {
	for bits := range 16 {
		w := world{bits&1 > 0, bits&2 > 0, bits&4 > 0, bits&8 > 0}
		t.Run(w.String(), func(t *testing.T) {
			whole := newStores(t)
			id, err := whole.run()
			require.NoError(t, err)
			s := newStores(t)
			s.rebuild(w, whole.document(), whole)
			got, err := s.run()
			if want := w.want(); want != nil {
				require.ErrorIs(t, err, want)
				s.requireUntouched(w)
				return
			}
			require.NoError(t, err)
			if w.document {
				require.Equal(t, id, got)
			}
			s.requireWhole(got)
		})
	}
}

// rebuild puts the parts of a whole cluster into empty stores.
func (s stores) rebuild(w world, identity string, whole stores) {
	s.t.Helper()
	if w.document {
		_, err := s.coord.Documents().Create(s.t.Context(), document, []byte(identity), 0)
		require.NoError(s.t, err)
	}
	if w.object {
		require.NoError(s.t, s.blob.Put(s.t.Context(), object, []byte(identity)))
	}
	if w.data {
		require.NoError(s.t, s.blob.Put(s.t.Context(), walKey, []byte("records")))
	}
	for _, name := range []string{"meta", "s00", "s01"} {
		if !w.logs {
			continue
		}
		log, err := whole.coord.Log(s.t.Context(), name)
		require.NoError(s.t, err)
		watch, err := log.Watch(s.t.Context(), 1)
		require.NoError(s.t, err)
		s.server.Stray(name, (<-watch.Entries()).Data)
		watch.Stop()
	}
}

func (s stores) requireUntouched(w world) {
	s.t.Helper()
	require.Equal(s.t, w.document, s.document() != "", "the document")
	require.Equal(s.t, w.object, s.object() != "", "the object")
	require.Equal(s.t, w.logs, s.last("s00") > 0, "the log")
}

// A deleted key leaves a marker: it is not the cluster's first record.
func TestStraysDoNotPassForTheBeginningOfALog(t *testing.T) {
	whole := newStores(t)
	_, err := whole.run()
	require.NoError(t, err)
	s := newStores(t)
	s.rebuild(world{document: true, object: true}, whole.document(), whole)
	s.server.Stray("s00", nil)
	s.server.Stray("s00", []byte("hello"))
	id, err := s.run()
	require.NoError(t, err)
	s.requireWhole(id)
	require.EqualValues(t, 3, s.last("s00"))
	_, err = s.run()
	require.NoError(t, err)
	require.EqualValues(t, 3, s.last("s00"), "the record behind the strays is found")
}

func TestWhoOnlyLooksCreatesNothing(t *testing.T) {
	look := func(s stores) error {
		b := s.bootstrap()
		b.MustExist = true
		_, err := b.Run(t.Context())
		return err
	}
	empty := newStores(t)
	require.ErrorIs(t, look(empty), base.ErrNotFound)
	empty.requireUntouched(world{})

	whole := newStores(t)
	_, err := whole.run()
	require.NoError(t, err)
	require.NoError(t, look(whole))
	for _, w := range []world{{document: true}, {document: true, object: true}} {
		s := newStores(t)
		s.rebuild(w, whole.document(), whole)
		require.ErrorIs(t, look(s), base.ErrNotFound, w)
		s.requireUntouched(w)
	}
}

func TestStoresOfDifferentClustersAreRefused(t *testing.T) {
	a, b := newStores(t), newStores(t)
	for _, s := range []stores{a, b} {
		_, err := s.run()
		require.NoError(t, err)
	}
	a.blob = b.blob
	_, err := a.run()
	require.ErrorIs(t, err, base.ErrForeign)
	require.ErrorContains(t, err, "different clusters")
}

func TestAnIdentityThatCannotBeReadIsRefusedAndKept(t *testing.T) {
	const cluster = "0123456789abcdef0123456789abcdef"
	for text, want := range map[string]error{
		`{"format":"lakestream-cluster","version":2,"cluster":"` + cluster + `","shards":4}`:  base.ErrNewerFormat,
		`{"format":"lakestream-cluster","version":0,"cluster":"` + cluster + `","shards":4}`:  base.ErrCorrupt,
		`{"format":"lakestream-cluster","version":1,"cluster":"` + cluster + `","shards":0}`:  base.ErrCorrupt,
		`{"format":"lakestream-cluster","version":1,"cluster":"` + cluster + `","shards":65}`: base.ErrCorrupt,
		`{"format":"lakestream-cluster","version":1,"cluster":"short","shards":4}`:            base.ErrCorrupt,
		`{"format":"something else"}`: base.ErrForeign,
		`not JSON`:                    base.ErrForeign,
	} {
		for _, w := range []world{{document: true}, {document: true, object: true}} {
			s := newStores(t)
			s.rebuild(w, text, s)
			_, err := s.run()
			require.ErrorIs(t, err, want, text)
			s.requireUntouched(w)
		}
	}
}

func TestAnObjectTooLargeForAnIdentityIsForeign(t *testing.T) {
	s := newStores(t)
	require.NoError(t, s.blob.Put(t.Context(), object, make([]byte, 1<<20)))
	_, err := s.run()
	require.ErrorIs(t, err, base.ErrForeign)
}

func TestInstancesThatStartAtOnceAgree(t *testing.T) {
	for range 20 {
		s := newStores(t)
		const instances = 4
		ids, errs := make([]cluster.Identity, instances), make([]error, instances)
		var group sync.WaitGroup
		for i := range instances {
			own := s
			own.coord = s.server.Open(fmt.Sprint(i))
			group.Go(func() { ids[i], errs[i] = own.run() })
		}
		group.Wait()
		for i := range instances {
			require.NoError(t, errs[i])
			require.Equal(t, ids[0], ids[i])
		}
		s.requireWhole(ids[0])
	}
}

// crash is a process that ends at its nth call of a store: before the call took
// effect, or after.
type crash struct {
	mu    sync.Mutex
	at    int // guarded by mu
	after bool
	dead  bool // guarded by mu
}

var errCrash = base.WithClass(base.ErrUnknown, errors.New("the process is gone"))

// next returns the errors to give instead of, and after, the effect.
func (c *crash) next() (before, after error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at--
	switch {
	case c.dead:
		return errCrash, nil
	case c.at > 0:
		return nil, nil
	case c.after:
		c.dead = true
		return nil, errCrash
	default:
		c.dead = true
		return errCrash, nil
	}
}

func TestACreationThatCrashesAnywhereIsFinishedByTheNext(t *testing.T) {
	for _, after := range []bool{false, true} {
		crashed := 0
		for n := 1; ; n++ {
			s := newStores(t)
			c := &crash{at: n, after: after}
			broken := s.bootstrap()
			broken.Coordination = coord.NewFaulty(s.coord, func(coord.Call) coord.Fault {
				before, after := c.next()
				return coord.Fault{Before: before, After: after}
			})
			broken.Objects = blob.NewFaulty(s.blob, func(blob.Call) blob.Fault {
				before, after := c.next()
				return blob.Fault{Before: before, After: after}
			})
			_, err := broken.Run(t.Context())
			if err == nil && !c.dead {
				break
			}
			crashed++
			id, err := s.run()
			require.NoError(t, err, "crash at call %d, after its effect: %v", n, after)
			s.requireWhole(id)
		}
		require.Greater(t, crashed, 15, "every call of both stores was crashed at")
	}
}

// A reply that is lost once is no reason to give up where reading again tells.
func TestALostReplyIsResolvedByReading(t *testing.T) {
	s := newStores(t)
	b := s.bootstrap()
	b.Coordination = coord.NewFaulty(s.coord, func(c coord.Call) coord.Fault {
		if c.Op == coord.OpCreate {
			return coord.Fault{After: errCrash}
		}
		return coord.Fault{}
	})
	b.Objects = blob.NewFaulty(s.blob, func(c blob.Call) blob.Fault {
		if c.Op == blob.OpCommit {
			return blob.Fault{After: errCrash}
		}
		return blob.Fault{}
	})
	id, err := b.Run(t.Context())
	require.NoError(t, err)
	s.requireWhole(id)
}

func TestADocumentThatWasLostIsUnknownAndNotForeign(t *testing.T) {
	s := newStores(t)
	b := s.bootstrap()
	b.Coordination = coord.NewFaulty(s.coord, func(c coord.Call) coord.Fault {
		if c.Op == coord.OpCreate {
			return coord.Fault{Before: errCrash}
		}
		return coord.Fault{}
	})
	_, err := b.Run(t.Context())
	require.ErrorIs(t, err, base.ErrUnknown)
	require.NotErrorIs(t, err, base.ErrForeign)
}

func TestOpeningEndsWithItsContext(t *testing.T) {
	s := newStores(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.bootstrap().Run(ctx)
	require.Error(t, err)
	s.requireUntouched(world{})
}
