package catalog_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

func (in instance) load(t *testing.T, stream string) catalog.Stream {
	t.Helper()
	st, err := in.Load(name(stream))
	require.NoError(t, err)
	return st
}

// follow waits until the instance's views are as far as another's.
func (in instance) follow(t *testing.T, other instance) {
	t.Helper()
	for i, v := range in.views {
		revision := other.views[i].Revision()
		require.NoError(t, v.WaitUntil(t.Context(), func(s *shard.State) bool { return s.Revision() >= revision }))
	}
}

// write appends records to partitions of a stream, one append each.
func (in instance) write(t *testing.T, st catalog.Stream, partitions ...uint32) {
	t.Helper()
	session, err := shard.OpenSession(t.Context(), in.views[st.Shard], "machine", strings.NewReader(strings.Repeat(st.Name.String(), 9)))
	require.NoError(t, err)
	for i, p := range partitions {
		out, err := session.Publish(t.Context(), &commitpb.Append{
			Writer: uint64(session.Writer()), Seq: uint64(i + 1), Size: 10, Stream: []uint64{uint64(st.ID)}, Partition: []uint32{p},
			Records: []uint32{10}, Pos: []uint32{0}, Len: []uint32{10}, MinTime: []int64{0}, MaxTime: []int64{0},
		})
		require.NoError(t, err)
		require.Equal(t, shard.Accepted, out.Logs[0].Rejected)
	}
	require.NoError(t, session.Close(t.Context()))
}

func (in instance) bounds(st catalog.Stream, p base.Partition) (floor, start, head base.Offset) {
	in.views[st.Shard].Inspect(func(s *shard.State) {
		if l, ok := s.Log(base.LogID{Stream: st.ID, Partition: p}); ok {
			floor, start, head = l.Floor(), l.Start(), l.Head()
		}
	})
	return floor, start, head
}

func TestAStreamIsCreatedWithAllThatBelongsToIt(t *testing.T) {
	in := newStreams(t).instance()
	day := 24 * time.Hour
	cfg := catalog.StreamConfig{
		Partitions: 3, Table: catalog.TablePolicy{Name: "t"}, Retention: catalog.Retention{Time: &day},
		Schema:     catalog.Schema{Type: "JSON", Definition: []byte("{}"), Properties: map[string]string{"id": "7"}},
		Properties: map[string]string{"owner": "shop", "tier": "gold"},
	}
	st, err := in.Create(t.Context(), name("shop/orders"), cfg)
	require.NoError(t, err)
	require.Equal(t, st, in.load(t, "shop/orders"))
	require.True(t, in.Exists(name("shop/orders")))
	require.False(t, in.Exists(name("shop/order")))
	require.Equal(t, catalog.Active, st.Lifecycle)
	require.Equal(t, cfg.Schema, st.Schema)
	require.Equal(t, cfg.Properties, st.Properties)
	require.Equal(t, catalog.Settings{Table: cfg.Table, Retention: cfg.Retention}, st.Settings)
	require.Equal(t, catalog.LogRetention{Time: day, Bytes: catalog.Unlimited, WaitForTables: catalog.DefaultWaitForTables}, st.Kept)
}

// Behaviour 24.
func TestACreateAdoptsTheSameStreamAndRefusesAnother(t *testing.T) {
	s := newStreams(t)
	day, week := 24*time.Hour, 168*time.Hour
	cfg := catalog.StreamConfig{
		Partitions: 4, Table: catalog.TablePolicy{Name: "t"}, Retention: catalog.Retention{Time: &day},
		Schema: catalog.Schema{Type: "AVRO", Definition: []byte("a")}, Properties: map[string]string{"k": "v"},
	}
	first, err := s.instance().Create(t.Context(), name("shop/orders"), cfg)
	require.NoError(t, err)
	in := s.instance()
	for title, same := range map[string]catalog.StreamConfig{
		"the same":        cfg,
		"nothing is said": {},
		"some of it":      {Partitions: 4, Retention: catalog.Retention{Time: &day}},
	} {
		st, err := in.Create(t.Context(), name("shop/orders"), same)
		require.NoError(t, err, title)
		require.Equal(t, first, st, title)
	}
	for says, other := range map[string]catalog.StreamConfig{
		"it has 4 partitions":         {Partitions: 3},
		"has 4 partitions":            {Partitions: 5},
		"its table policy is another": {Table: catalog.TablePolicy{Name: "u"}},
		"its retention is another":    {Retention: catalog.Retention{Time: &week}},
		"its schema is another":       {Schema: catalog.Schema{Type: "AVRO", Definition: []byte("b")}},
		"its properties are others":   {Properties: map[string]string{"k": "w"}},
	} {
		_, err := in.Create(t.Context(), name("shop/orders"), other)
		require.ErrorIs(t, err, catalog.ErrAlreadyExists, says)
		require.ErrorIs(t, err, base.ErrExists)
		require.ErrorContains(t, err, says)
		require.Equal(t, first, in.load(t, "shop/orders"), "a refusal changes nothing")
	}
}

// Behaviour 22.
func TestOfDifferentCreatesAtOnceOneWins(t *testing.T) {
	s := newStreams(t)
	const instances = 4
	errs := make([]error, instances)
	var group sync.WaitGroup
	for i := range instances {
		in := s.instance()
		group.Go(func() {
			_, errs[i] = in.Create(t.Context(), name("shop/orders"), catalog.StreamConfig{Partitions: i + 1})
		})
	}
	group.Wait()
	winner := -1
	for i, err := range errs {
		if err == nil {
			require.Equal(t, -1, winner, "one winner")
			winner = i
			continue
		}
		require.ErrorIs(t, err, catalog.ErrAlreadyExists)
	}
	require.Equal(t, winner+1, s.instance().load(t, "shop/orders").Partitions)
}

// Behaviours 20, 23, 28, 30 and 31.
func TestADeletedStreamIsGoneForEverAndItsDataOnlyWithAPurge(t *testing.T) {
	s := newStreams(t)
	in := s.instance()
	dropped, err := in.Drop(t.Context(), name("shop/orders"), true)
	require.NoError(t, err)
	require.False(t, dropped, "it never was")
	st := in.ensure(t, "shop/orders", catalog.StreamConfig{Partitions: 2})
	in.write(t, st, 0, 1)
	dropped, err = in.Drop(t.Context(), name("shop/orders"), false)
	require.NoError(t, err)
	require.True(t, dropped)
	dropped, err = in.Drop(t.Context(), name("shop/orders"), false)
	require.NoError(t, err)
	require.False(t, dropped, "it is not there any more")

	require.Empty(t, in.List(), "tombstones are hidden")
	kept := in.Kept()
	require.Len(t, kept, 1)
	require.Equal(t, catalog.Deleting, kept[0].Lifecycle)
	require.Equal(t, "shop/orders", kept[0].Name.String())
	in.views[st.Shard].Inspect(func(s *shard.State) { require.Empty(t, s.Dead(), "its objects stay") })

	other := s.instance()
	for _, in := range []instance{in, other} {
		_, err = in.Load(name("shop/orders"))
		require.ErrorIs(t, err, catalog.ErrStreamPermanentlyDeleted)
		require.ErrorIs(t, err, base.ErrNotFound)
		for _, create := range []func() error{
			func() error {
				_, err := in.Ensure(t.Context(), name("shop/orders"), catalog.StreamConfig{})
				return err
			},
			func() error {
				_, err := in.Create(t.Context(), name("shop/orders"), catalog.StreamConfig{})
				return err
			},
		} {
			require.ErrorIs(t, create(), catalog.ErrStreamPermanentlyDeleted)
		}
	}
	in.refuseHandle(t, st)

	dropped, err = other.Drop(t.Context(), name("shop/orders"), true)
	require.NoError(t, err)
	require.True(t, dropped, "its data was there")
	require.Empty(t, other.Kept())
	other.views[st.Shard].Inspect(func(s *shard.State) {
		require.Len(t, s.Dead(), 2)
		require.Zero(t, s.Logs())
	})
	dropped, err = other.Drop(t.Context(), name("shop/orders"), true)
	require.NoError(t, err)
	require.False(t, dropped)
	_, err = other.Create(t.Context(), name("shop/orders"), catalog.StreamConfig{})
	require.ErrorIs(t, err, catalog.ErrStreamPermanentlyDeleted)
}

// refuseHandle does everything that can be done with a stream that was deleted.
func (in instance) refuseHandle(t *testing.T, st catalog.Stream) {
	t.Helper()
	for what, do := range map[string]func() error{
		"refresh":    func() error { _, err := in.Refresh(st); return err },
		"grow":       func() error { _, err := in.IncreasePartitions(t.Context(), st, 9); return err },
		"properties": func() error { _, err := in.ReplaceProperties(t.Context(), st, nil, 9); return err },
		"update": func() error {
			_, err := in.Update(t.Context(), st, func(*catalog.Settings) error { return nil })
			return err
		},
		"trim":    func() error { _, err := in.Trim(t.Context(), st, 0, 1, true); return err },
		"fence":   func() error { return in.Fence(t.Context(), st, "over") },
		"unfence": func() error { return in.Unfence(t.Context(), st, 0) },
	} {
		require.ErrorIs(t, do(), catalog.ErrStreamPermanentlyDeleted, what)
	}
}

// Behaviour 26: growth is one record, seen whole or not at all.
func TestAStreamGrowsAtOnceAndNeverShrinks(t *testing.T) {
	s := newStreams(t)
	in, watcher := s.instance(), s.instance()
	st := in.ensure(t, "shop/orders", catalog.StreamConfig{Partitions: 2})
	watcher.follow(t, in)
	seen := make(chan int, 1)
	go func() {
		defer close(seen)
		_ = watcher.views[st.Shard].WaitUntil(t.Context(), func(state *shard.State) bool {
			grown, _ := state.Stream(st.ID)
			if n := len(grown.Logs); n != 2 {
				seen <- n
				return true
			}
			return false
		})
	}()
	grown, err := in.IncreasePartitions(t.Context(), st, 7)
	require.NoError(t, err)
	require.Equal(t, 7, grown.Partitions)
	require.Equal(t, 7, <-seen)
	revision := in.views[st.Shard].Revision()
	for range 2 {
		again, err := in.IncreasePartitions(t.Context(), st, 7)
		require.NoError(t, err)
		require.Equal(t, grown, again)
	}
	require.Equal(t, revision, in.views[st.Shard].Revision(), "nothing is published for what is so already")
	for partitions, says := range map[int]string{6: "it has 7 and never shrinks", 0: "want 1 to", shard.MaxPartitions + 1: "want 1 to"} {
		_, err := in.IncreasePartitions(t.Context(), st, partitions)
		require.ErrorIs(t, err, base.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
}

// Behaviours 27 and 29.
func TestPropertiesAreReplacedWholeAndOnlyByANewerSource(t *testing.T) {
	s := newStreams(t)
	in := s.instance()
	st := in.ensure(t, "shop/orders", catalog.StreamConfig{Properties: map[string]string{"a": "0"}})
	replaced, err := in.ReplaceProperties(t.Context(), st, map[string]string{"a": "5", "b": "5"}, 5)
	require.NoError(t, err)
	require.True(t, replaced)
	for _, stale := range []uint64{5, 4, 0} {
		replaced, err = in.ReplaceProperties(t.Context(), st, map[string]string{"a": "stale"}, stale)
		require.NoError(t, err)
		require.False(t, replaced, "revision %d", stale)
	}
	require.Equal(t, map[string]string{"a": "5", "b": "5"}, in.load(t, "shop/orders").Properties)

	// While they change, a load shows those of one revision.
	var group sync.WaitGroup
	group.Go(func() {
		for source := uint64(6); source < 60; source++ {
			value := fmt.Sprint(source)
			if _, err := in.ReplaceProperties(t.Context(), st, map[string]string{"a": value, "b": value}, source); err != nil {
				t.Error(err)
			}
		}
	})
	for range 200 {
		now := in.load(t, "shop/orders")
		require.Equal(t, now.Properties["a"], now.Properties["b"])
		require.Equal(t, fmt.Sprint(now.PropertiesSource), now.Properties["a"])
	}
	group.Wait()
	for _, bad := range []map[string]string{{"": "v"}, {"k": strings.Repeat("v", shard.MaxPropertyBytes)}} {
		_, err := in.ReplaceProperties(t.Context(), st, bad, 99)
		require.ErrorIs(t, err, base.ErrInvalid)
	}
}

// Behaviours 18, 19 and 20.
func TestATrimHidesOrGivesUpAndNeverMovesBack(t *testing.T) {
	in := newStreams(t).instance()
	st := in.ensure(t, "shop/orders", catalog.StreamConfig{Partitions: 2})
	in.write(t, st, 0, 0, 0)
	trim := func(to base.Offset, hard bool) base.Offset {
		t.Helper()
		start, err := in.Trim(t.Context(), st, 0, to, hard)
		require.NoError(t, err)
		return start
	}
	expect := func(wantFloor, wantStart base.Offset) {
		t.Helper()
		floor, start, head := in.bounds(st, 0)
		require.Equal(t, []base.Offset{wantFloor, wantStart, 30}, []base.Offset{floor, start, head})
	}
	require.EqualValues(t, 15, trim(15, false))
	expect(0, 15)
	require.EqualValues(t, 15, trim(10, false), "less changes nothing")
	require.EqualValues(t, 15, trim(10, true), "what is hidden can be given up")
	expect(10, 15)
	for range 2 {
		require.EqualValues(t, 20, trim(20, true))
		expect(20, 20)
	}
	require.EqualValues(t, 20, trim(5, true))
	expect(20, 20)
	_, err := in.Trim(t.Context(), st, 0, 31, false)
	require.ErrorIs(t, err, base.ErrInvalid)
	require.ErrorContains(t, err, "it ends at 30")
	_, err = in.Trim(t.Context(), st, 0, -1, false)
	require.ErrorIs(t, err, base.ErrInvalid)
	_, err = in.Trim(t.Context(), st, 2, 0, false)
	require.ErrorIs(t, err, base.ErrNotFound)

	// Whoever trims at the same time, the furthest mark holds.
	in.write(t, st, 1, 1, 1)
	var group sync.WaitGroup
	for to := range base.Offset(30) {
		group.Go(func() {
			if _, err := in.Trim(t.Context(), st, 1, to, false); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	_, start, _ := in.bounds(st, 1)
	require.EqualValues(t, 29, start)
}

func TestAFenceIsDurableAndLifted(t *testing.T) {
	s := newStreams(t)
	in := s.instance()
	st := in.ensure(t, "shop/orders", catalog.StreamConfig{Partitions: 3})
	fences := func() (all []string) {
		in.views[st.Shard].Inspect(func(state *shard.State) {
			stream, _ := state.Stream(st.ID)
			for _, l := range stream.Logs {
				all = append(all, l.Fence())
			}
		})
		return all
	}
	require.NoError(t, in.Fence(t.Context(), st, "moved", 1))
	require.Equal(t, []string{"", "moved", ""}, fences())
	require.Equal(t, catalog.Active, in.load(t, "shop/orders").Lifecycle)
	require.NoError(t, in.Fence(t.Context(), st, "closed"), "what is fenced already is no error")
	require.Equal(t, []string{"closed", "moved", "closed"}, fences())
	require.Equal(t, catalog.Sealed, s.instance().load(t, "shop/orders").Lifecycle, "every instance sees it")
	require.NoError(t, in.Unfence(t.Context(), st, 0, 2))
	require.NoError(t, in.Unfence(t.Context(), st))
	require.Equal(t, []string{"", "", ""}, fences())
	require.ErrorIs(t, in.Fence(t.Context(), st, ""), base.ErrInvalid)
	require.ErrorIs(t, in.Fence(t.Context(), st, strings.Repeat("x", 2000)), base.ErrInvalid)
	require.ErrorIs(t, in.Fence(t.Context(), st, "r", 3), base.ErrNotFound)
	require.ErrorIs(t, in.Unfence(t.Context(), st, -1), base.ErrNotFound)
}

func TestAFenceHoldsOnlyUntilADeletion(t *testing.T) {
	in := newStreams(t).instance()
	st := in.ensure(t, "shop/orders", catalog.StreamConfig{})
	require.NoError(t, in.Fence(t.Context(), st, "closing"))
	dropped, err := in.Drop(t.Context(), name("shop/orders"), true)
	require.NoError(t, err)
	require.True(t, dropped, "a fenced stream can be deleted")
}

func TestWhatAConfigurationCannotMeanIsRefused(t *testing.T) {
	in := newStreams(t).instance()
	negative := -time.Second
	for says, cfg := range map[string]catalog.StreamConfig{
		"schema type":     {Schema: catalog.Schema{Type: "XML", Definition: []byte("x")}},
		"schema of":       {Schema: catalog.Schema{Type: "JSON", Definition: make([]byte, shard.MaxSchemaBytes+1)}},
		"want a key":      {Properties: map[string]string{"": "x"}},
		"wait_for_tables": {Retention: catalog.Retention{WaitForTables: &negative}},
	} {
		in.refuse(t, "shop/orders", cfg, says)
	}
}

func TestAnOldInstanceHoldsBackWhatItCannotFold(t *testing.T) {
	s := oldStreams(t)
	in := s.instance()
	day := 24 * time.Hour
	st := in.ensure(t, "shop/orders", catalog.StreamConfig{Partitions: 2, Table: catalog.TablePolicy{Name: "t"}})
	in.ensure(t, "shop/orders", catalog.StreamConfig{Table: catalog.TablePolicy{CommitInterval: time.Minute}})
	for what, do := range map[string]func() error{
		"create with retention": func() error {
			_, err := in.Create(t.Context(), name("shop/more"), catalog.StreamConfig{Retention: catalog.Retention{Time: &day}})
			return err
		},
		"ensure with retention": func() error {
			_, err := in.Ensure(t.Context(), name("shop/orders"), catalog.StreamConfig{Retention: catalog.Retention{Time: &day}})
			return err
		},
		"grow":       func() error { _, err := in.IncreasePartitions(t.Context(), st, 9); return err },
		"properties": func() error { _, err := in.ReplaceProperties(t.Context(), st, nil, 9); return err },
		"trim":       func() error { _, err := in.Trim(t.Context(), st, 0, 0, true); return err },
		"fence":      func() error { return in.Fence(t.Context(), st, "over") },
		"unfence":    func() error { return in.Unfence(t.Context(), st) },
		"drop":       func() error { _, err := in.Drop(t.Context(), st.Name, false); return err },
		"namespace":  func() error { _, err := in.CreateNamespace(t.Context(), "n", catalog.NamespaceConfig{}); return err },
		"drop namespace": func() error {
			return in.DropNamespace(t.Context(), "shop")
		},
		"defaults": func() error {
			_, err := in.UpdateDefaults(t.Context(), func(*catalog.Settings) error { return nil })
			return err
		},
		"table catalog": func() error {
			return in.RegisterTableCatalog(t.Context(), catalog.TableCatalog{Name: "c", Type: "ICEBERG"})
		},
	} {
		err := do()
		require.ErrorIs(t, err, catalog.ErrNotYetAllowed, what)
		require.ErrorIs(t, err, base.ErrUnavailable, what)
		require.ErrorContains(t, err, "fold version 1", what)
	}
	require.Equal(t, []catalog.Namespace{{Name: "shop"}}, in.Namespaces(), "a namespace that only its stream tells of")

	s.upgrade()
	for _, v := range in.views {
		require.NoError(t, v.WaitUntil(t.Context(), func(s *shard.State) bool { return s.FoldVersion() == 2 }))
	}
	_, err := in.IncreasePartitions(t.Context(), st, 3)
	require.NoError(t, err)
	n, err := in.CreateNamespace(t.Context(), "shop", catalog.NamespaceConfig{})
	require.NoError(t, err, "it is created around its streams")
	require.NotZero(t, n.ID)
}
