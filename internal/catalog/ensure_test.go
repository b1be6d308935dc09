package catalog_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/coord/coordtest"
	"github.com/lakestream-go/lakestream/internal/coord/mem"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const shards = 3

// streams is a cluster of shards without objects or tables.
type streams struct {
	t      *testing.T
	clock  *coordtest.Clock
	server *mem.Server
}

func newStreams(t *testing.T) streams {
	t.Helper()
	clock := coordtest.NewClock()
	s := streams{t: t, clock: clock, server: mem.NewServer(clock)}
	s.found(commitrecord.FoldVersion)
	return s
}

// oldStreams is a cluster that an instance of an old release holds back.
func oldStreams(t *testing.T) streams {
	t.Helper()
	clock := coordtest.NewClock()
	s := streams{t: t, clock: clock, server: mem.NewServer(clock)}
	s.found(1)
	return s
}

func (s streams) found(version uint32) {
	s.t.Helper()
	for _, sh := range allLogs() {
		s.server.Stray(sh.String(), shardtest.Encode(s.t, &commitpb.ClusterCreate{Shards: shards, FoldVersion: version}))
	}
}

// upgrade lets the cluster's fold go on to version 2.
func (s streams) upgrade() {
	s.t.Helper()
	for _, sh := range allLogs() {
		s.server.Stray(sh.String(), shardtest.Encode(s.t, &commitpb.FoldVersion{Version: 2}))
	}
}

// allLogs are the shards and, as the last, the log meta.
func allLogs() []base.Shard { return []base.Shard{0, 1, 2, base.MetaShard} }

// instance is a catalog with views of its own, and what it logs.
type instance struct {
	*catalog.Catalog
	views []*shard.View
	log   *bytes.Buffer
}

func (s streams) instance() instance {
	s.t.Helper()
	return s.instanceOver(s.server.Open("instance"))
}

// instanceOver is an instance that reaches the cluster through a store.
func (s streams) instanceOver(store coord.Store) instance {
	s.t.Helper()
	in := instance{log: &bytes.Buffer{}}
	var ledgers []catalog.Ledger
	for _, i := range allLogs() {
		log, err := store.Log(s.t.Context(), i.String())
		require.NoError(s.t, err)
		view, err := shard.OpenView(s.t.Context(), shard.ViewOptions{
			Cluster: shardtest.Cluster, Shard: i, Log: log, Reconnects: store.Reconnects, Clock: s.clock,
			Logger: slog.New(slog.DiscardHandler), Entropy: rand.Reader,
		})
		require.NoError(s.t, err)
		s.t.Cleanup(view.Close)
		in.views = append(in.views, view)
		ledgers = append(ledgers, view)
	}
	in.Catalog = catalog.New(ledgers[:shards], ledgers[shards], slog.New(slog.NewTextHandler(in.log, nil)))
	return in
}

func name(text string) base.StreamName {
	n, err := base.ParseStreamName(text)
	if err != nil {
		panic(err)
	}
	return n
}

func (in instance) ensure(t *testing.T, stream string, cfg catalog.StreamConfig) catalog.Stream {
	t.Helper()
	st, err := in.Ensure(t.Context(), name(stream), cfg)
	require.NoError(t, err)
	return st
}

func (in instance) refuse(t *testing.T, stream string, cfg catalog.StreamConfig, says string) {
	t.Helper()
	before := in.List()
	_, err := in.Ensure(t.Context(), name(stream), cfg)
	require.ErrorIs(t, err, base.ErrInvalid)
	require.ErrorContains(t, err, says)
	require.Equal(t, before, in.List(), "a refusal changes nothing")
}

// bind gives a stream its first table files.
func (in instance) bind(t *testing.T, st catalog.Stream) {
	t.Helper()
	view := in.views[st.Shard]
	session, err := shard.OpenSession(t.Context(), view, "machine", rand.Reader)
	require.NoError(t, err)
	w := uint64(session.Writer())
	for _, p := range []commitrecord.Payload{
		&commitpb.Append{
			Writer: w, Seq: 1, Size: 10, Stream: []uint64{uint64(st.ID)}, Partition: []uint32{0}, Records: []uint32{1},
			Pos: []uint32{0}, Len: []uint32{10}, MinTime: []int64{0}, MaxTime: []int64{0},
		},
		&commitpb.Prepared{Writer: w, Seq: 2, Ranges: []*commitpb.PreparedRange{{Stream: uint64(st.ID), End: 1, TableUuid: "table"}}},
	} {
		out, err := session.Publish(t.Context(), p)
		require.NoError(t, err)
		require.Equal(t, shard.Accepted, out.Logs[0].Rejected)
	}
}

func TestAStreamIsCreatedWithTheDefaultsAndFoundByItsName(t *testing.T) {
	in := newStreams(t).instance()
	_, err := in.Load(name("shop/orders"))
	require.ErrorIs(t, err, base.ErrNotFound)
	st := in.ensure(t, "shop/orders", catalog.StreamConfig{})
	require.Equal(t, 1, st.Partitions)
	require.Equal(t, "shop.orders", st.Table.String())
	require.Equal(t, base.ShardOf(name("shop/orders"), shards), st.Shard)
	loaded, err := in.Load(name("shop/orders"))
	require.NoError(t, err)
	require.Equal(t, st, loaded)
}

func TestStreamsAreListedByName(t *testing.T) {
	in := newStreams(t).instance()
	require.Empty(t, in.List())
	for _, stream := range []string{"b/z", "a/y", "b/a", "a-/x", "a/b.c"} {
		in.ensure(t, stream, catalog.StreamConfig{})
	}
	var listed []string
	for _, st := range in.List() {
		listed = append(listed, st.Name.String())
	}
	require.Equal(t, []string{"a/b.c", "a/y", "a-/x", "b/a", "b/z"}, listed)
}

func TestACompatibleCreateAdoptsAndAsksForNothing(t *testing.T) {
	s := newStreams(t)
	in, other := s.instance(), s.instance()
	st := in.ensure(t, "shop/orders", catalog.StreamConfig{Partitions: 4, Table: catalog.TablePolicy{Name: "t"}})
	for _, cfg := range []catalog.StreamConfig{{}, {Partitions: 4}, {Table: catalog.TablePolicy{Name: "t"}}} {
		require.Equal(t, st, other.ensure(t, "shop/orders", cfg), "%+v", cfg)
	}
}

func TestAStreamNeverShrinksAndGrowsOnlyWhenAsked(t *testing.T) {
	in := newStreams(t).instance()
	st := in.ensure(t, "shop/orders", catalog.StreamConfig{Partitions: 4})
	in.refuse(t, "shop/orders", catalog.StreamConfig{Partitions: 3}, "the stream has 4 and never shrinks")
	require.Empty(t, in.log.String())
	require.Equal(t, st, in.ensure(t, "shop/orders", catalog.StreamConfig{Partitions: 5}))
	require.Contains(t, in.log.String(), "keeps its partitions")
}

func TestFieldsThatAreLeftOutKeepWhatTheStreamHas(t *testing.T) {
	in := newStreams(t).instance()
	off := false
	columns := []string{"partition", "offset"}
	in.ensure(t, "shop/orders", catalog.StreamConfig{Table: catalog.TablePolicy{Name: "t", CommitInterval: 2 * time.Second}})
	st := in.ensure(t, "shop/orders", catalog.StreamConfig{Table: catalog.TablePolicy{Namespace: "n", SystemColumns: columns}})
	require.Equal(t, catalog.Table{Enabled: true, Namespace: "n", Name: "t", CommitInterval: 2 * time.Second, SystemColumns: columns}, st.Table)
	require.EqualValues(t, 2, st.Version)
	st = in.ensure(t, "shop/orders", catalog.StreamConfig{Table: catalog.TablePolicy{Enabled: &off}})
	require.Equal(t, catalog.Table{Namespace: "n", Name: "t", CommitInterval: 2 * time.Second, SystemColumns: columns}, st.Table)
}

func TestATableThatIsFilledKeepsItsIdentity(t *testing.T) {
	in := newStreams(t).instance()
	st := in.ensure(t, "shop/orders", catalog.StreamConfig{})
	in.ensure(t, "shop/orders", catalog.StreamConfig{Table: catalog.TablePolicy{Name: "renamed"}})
	in.bind(t, st)
	in.refuse(t, "shop/orders", catalog.StreamConfig{Table: catalog.TablePolicy{Name: "again"}}, "cannot become shop.again")
	in.refuse(t, "shop/orders", catalog.StreamConfig{Table: catalog.TablePolicy{Namespace: "other"}}, "filled already")
	in.refuse(t, "shop/orders", catalog.StreamConfig{Table: catalog.TablePolicy{SystemColumns: []string{"offset", "partition"}}}, "filled already")
	st = in.ensure(t, "shop/orders", catalog.StreamConfig{Table: catalog.TablePolicy{
		Name: "renamed", Namespace: "shop", CommitInterval: time.Minute, SystemColumns: []string{"partition", "offset", "timestamp"},
	}})
	require.Equal(t, time.Minute, st.Table.CommitInterval)
	require.Equal(t, "table", st.TableUUID)
}

func TestTwoStreamsNeverShareATable(t *testing.T) {
	in := newStreams(t).instance()
	off, on := false, true
	in.ensure(t, "a.b/c", catalog.StreamConfig{})
	in.ensure(t, "x/y", catalog.StreamConfig{})
	in.ensure(t, "x/taken_dlt", catalog.StreamConfig{})
	taken := "is that of stream a.b/c already"
	in.refuse(t, "a_b/c", catalog.StreamConfig{}, taken)
	in.refuse(t, "other/s", catalog.StreamConfig{Table: catalog.TablePolicy{Namespace: "a.b", Name: "c"}}, taken)
	in.refuse(t, "x/y", catalog.StreamConfig{Table: catalog.TablePolicy{Namespace: "a_b", Name: "c"}}, taken)
	in.refuse(t, "x/y_dlt", catalog.StreamConfig{}, "stream x/y already")
	in.refuse(t, "x/taken", catalog.StreamConfig{}, "stream x/taken_dlt already")
	in.ensure(t, "a_b/c", catalog.StreamConfig{Table: catalog.TablePolicy{Enabled: &off}})
	in.refuse(t, "a_b/c", catalog.StreamConfig{Table: catalog.TablePolicy{Enabled: &on}}, taken)
	in.ensure(t, "a.b/c", catalog.StreamConfig{Table: catalog.TablePolicy{Enabled: &off}})
	in.ensure(t, "a_b/c", catalog.StreamConfig{Table: catalog.TablePolicy{Enabled: &on}})
}

func TestWhatIsWrongIsSaidBeforeAnythingIsPublished(t *testing.T) {
	in := newStreams(t).instance()
	for _, partitions := range []int{-1, shard.MaxPartitions + 1} {
		in.refuse(t, "shop/orders", catalog.StreamConfig{Partitions: partitions}, "want 1 to 4096")
	}
	in.refuse(t, "shop/orders", catalog.StreamConfig{Table: catalog.TablePolicy{CommitInterval: 1}}, "commit interval")
	for _, bad := range []base.StreamName{{}, {Namespace: "a"}, {Name: "b"}, {Namespace: "a", Name: ".."}, {Namespace: "a/b", Name: "c"}} {
		_, err := in.Ensure(t.Context(), bad, catalog.StreamConfig{})
		require.ErrorIs(t, err, base.ErrInvalid)
		require.ErrorContains(t, err, "A-Z a-z 0-9", "the grammar is named")
	}
	for _, v := range in.views {
		require.EqualValues(t, 1, v.Revision())
	}
}

// Behaviours 22 and 24.
func TestOfInstancesThatCreateAtOnceOneWinsAndTheOthersAdopt(t *testing.T) {
	s := newStreams(t)
	const instances, names = 4, 8
	made := make([][names]catalog.Stream, instances)
	var group sync.WaitGroup
	for i := range instances {
		in := s.instance()
		group.Go(func() {
			for n := range names {
				st, err := in.Ensure(t.Context(), name(fmt.Sprintf("shop/s%d", n)), catalog.StreamConfig{Partitions: 2})
				if err != nil {
					t.Error(err)
				}
				made[i][n] = st
			}
		})
	}
	group.Wait()
	for i := range instances {
		require.Equal(t, made[0], made[i])
	}
	require.Len(t, s.instance().List(), names)
}

func TestChangesOfDifferentFieldsAtOnceAllLand(t *testing.T) {
	s := newStreams(t)
	s.instance().ensure(t, "shop/orders", catalog.StreamConfig{})
	var group sync.WaitGroup
	for _, table := range []catalog.TablePolicy{
		{Name: "t"}, {Namespace: "n"}, {CommitInterval: time.Minute}, {SystemColumns: []string{"partition", "offset"}},
	} {
		in := s.instance()
		group.Go(func() {
			if _, err := in.Ensure(t.Context(), name("shop/orders"), catalog.StreamConfig{Table: table}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	st, err := s.instance().Load(name("shop/orders"))
	require.NoError(t, err)
	require.Equal(t, catalog.Table{
		Enabled: true, Namespace: "n", Name: "t", CommitInterval: time.Minute, SystemColumns: []string{"partition", "offset"},
	}, st.Table)
	require.EqualValues(t, 5, st.Version, "each change landed once")
}

// busy is a ledger on which someone else is always faster.
type busy struct {
	*shard.View
	err error
}

func (b busy) Publish(context.Context, commitrecord.Payload) (shard.Outcome, error) {
	return shard.Outcome{Rejected: shard.VersionChanged}, b.err
}

func TestGivingUpAfterManyChangesByOthersIsAConflict(t *testing.T) {
	in := newStreams(t).instance()
	for want, err := range map[error]error{
		base.ErrConflict:    nil,
		base.ErrUnavailable: base.ErrUnavailable,
		base.ErrUnknown:     base.WithClass(base.ErrUnknown, errors.New("no reply")),
	} {
		ledger := busy{in.views[0], err}
		_, got := catalog.New([]catalog.Ledger{ledger}, in.views[shards], slog.New(slog.DiscardHandler)).Ensure(t.Context(), name("a/b"), catalog.StreamConfig{})
		require.ErrorIs(t, got, want)
	}
}
