package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/shard"
)

func (in instance) namespaces() (names []string) {
	for _, n := range in.Namespaces() {
		names = append(names, n.Name)
	}
	return names
}

func TestANamespaceIsCreatedChangedAndDropped(t *testing.T) {
	s := newStreams(t)
	in, other := s.instance(), s.instance()
	_, err := in.LoadNamespace("shop")
	require.ErrorIs(t, err, catalog.ErrNoSuchNamespace)
	require.ErrorIs(t, err, base.ErrNotFound)
	hour, off := time.Hour, false
	cfg := catalog.NamespaceConfig{
		Settings:   catalog.Settings{Table: catalog.TablePolicy{Namespace: "lake"}, Retention: catalog.Retention{Time: &hour}},
		Properties: map[string]string{"owner": "me", "tier": "gold"},
	}
	made, err := in.CreateNamespace(t.Context(), "shop", cfg)
	require.NoError(t, err)
	require.Equal(t, cfg.Settings, made.Settings)
	require.Equal(t, cfg.Properties, made.Properties)
	_, err = in.CreateNamespace(t.Context(), "shop", catalog.NamespaceConfig{})
	require.ErrorIs(t, err, catalog.ErrAlreadyExists)
	other.follow(t, in)
	require.True(t, other.NamespaceExists("shop"))

	changed, err := other.UpdateNamespace(t.Context(), "shop", func(c *catalog.NamespaceConfig) error {
		c.Properties["tier"] = "iron"
		c.Properties["since"] = "now"
		delete(c.Properties, "owner")
		c.Table.Enabled = &off
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"tier": "iron", "since": "now"}, changed.Properties)
	require.Equal(t, catalog.Settings{Table: catalog.TablePolicy{Namespace: "lake", Enabled: &off}, Retention: cfg.Retention}, changed.Settings)
	same, err := other.UpdateNamespace(t.Context(), "shop", func(*catalog.NamespaceConfig) error { return nil })
	require.NoError(t, err)
	require.Equal(t, changed, same, "nothing was published")
	cleared, err := other.UpdateNamespace(t.Context(), "shop", func(c *catalog.NamespaceConfig) error {
		*c = catalog.NamespaceConfig{}
		return nil
	})
	require.NoError(t, err)
	require.Empty(t, cleared.Properties)
	require.Equal(t, catalog.Settings{}, cleared.Settings)

	require.NoError(t, other.DropNamespace(t.Context(), "shop"))
	require.ErrorIs(t, other.DropNamespace(t.Context(), "shop"), catalog.ErrNoSuchNamespace)
	require.Empty(t, other.Namespaces())
	in.follow(t, other)
	_, err = in.UpdateNamespace(t.Context(), "shop", func(*catalog.NamespaceConfig) error { return nil })
	require.ErrorIs(t, err, catalog.ErrNoSuchNamespace)
	again, err := in.CreateNamespace(t.Context(), "shop", catalog.NamespaceConfig{})
	require.NoError(t, err)
	require.Greater(t, again.ID, made.ID, "an id is never used again")
	in.ensure(t, "shop/orders", catalog.StreamConfig{})
}

func TestWhatIsWrongWithANamespaceIsNamed(t *testing.T) {
	in := newStreams(t).instance()
	for says, cfg := range map[string]catalog.NamespaceConfig{
		"would fill one table": {Settings: catalog.Settings{Table: catalog.TablePolicy{Name: "t"}}},
		"want a key":           {Properties: map[string]string{"": "v"}},
		"commit interval":      {Settings: catalog.Settings{Table: catalog.TablePolicy{CommitInterval: 1}}},
	} {
		_, err := in.CreateNamespace(t.Context(), "shop", cfg)
		require.ErrorIs(t, err, base.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
	_, err := in.CreateNamespace(t.Context(), "a/b", catalog.NamespaceConfig{})
	require.ErrorIs(t, err, base.ErrInvalid)
	unhappy := errors.New("unhappy")
	_, err = in.CreateNamespace(t.Context(), "shop", catalog.NamespaceConfig{})
	require.NoError(t, err)
	_, err = in.UpdateNamespace(t.Context(), "shop", func(*catalog.NamespaceConfig) error { return unhappy })
	require.ErrorIs(t, err, unhappy)
}

func TestAStreamBringsItsNamespaceAlong(t *testing.T) {
	s := newStreams(t)
	in, other := s.instance(), s.instance()
	in.ensure(t, "shop/orders", catalog.StreamConfig{})
	in.ensure(t, "shop/returns", catalog.StreamConfig{})
	other.ensure(t, "web/events", catalog.StreamConfig{})
	in.follow(t, other)
	require.Equal(t, []string{"shop", "web"}, in.namespaces())
	err := in.DropNamespace(t.Context(), "shop")
	require.ErrorIs(t, err, catalog.ErrNamespaceNotEmpty)
	require.ErrorIs(t, err, base.ErrConflict)
	require.ErrorContains(t, err, "shop/")
	in.ensure(t, "shop/more", catalog.StreamConfig{})
	for _, stream := range []string{"shop/orders", "shop/returns", "shop/more"} {
		dropped, err := in.Drop(t.Context(), name(stream), false)
		require.NoError(t, err)
		require.True(t, dropped)
	}
	require.NoError(t, in.DropNamespace(t.Context(), "shop"), "data that is kept is no stream")
	require.Equal(t, []string{"web"}, in.namespaces())
	require.Len(t, in.Kept(), 3)
}

func TestDefiningANamespaceTwiceChangesNothing(t *testing.T) {
	in := newStreams(t).instance()
	hour, day := time.Hour, 24*time.Hour
	cfg := catalog.NamespaceConfig{Settings: catalog.Settings{Retention: catalog.Retention{Time: &hour}}}
	for range 2 {
		require.NoError(t, in.DefineNamespace(t.Context(), "shop", cfg))
	}
	first, err := in.LoadNamespace("shop")
	require.NoError(t, err)
	require.EqualValues(t, 1, first.Version)
	require.NoError(t, in.DefineNamespace(t.Context(), "shop", catalog.NamespaceConfig{
		Settings: catalog.Settings{Table: catalog.TablePolicy{Namespace: "lake"}}, Properties: map[string]string{"a": "b"},
	}))
	second, err := in.LoadNamespace("shop")
	require.NoError(t, err)
	require.Equal(t, &hour, second.Settings.Retention.Time, "what is not set stays")
	require.Equal(t, "lake", second.Settings.Table.Namespace)
	require.NoError(t, in.DefineNamespace(t.Context(), "shop", catalog.NamespaceConfig{Settings: catalog.Settings{Retention: catalog.Retention{Time: &day}}}))
	third, err := in.LoadNamespace("shop")
	require.NoError(t, err)
	require.Equal(t, &day, third.Settings.Retention.Time)
}

// errCrash ends an operation as the end of its process would.
var errCrash = errors.New("crashed")

// crashing is a set of ledgers that die with one of their records: before it, or
// after it landed and before its outcome is known.
type crashing struct {
	left  atomic.Int64
	after bool
}

type crashingLedger struct {
	*shard.View
	crash *crashing
}

func (l crashingLedger) Publish(ctx context.Context, payload commitrecord.Payload) (shard.Outcome, error) {
	left := l.crash.left.Add(-1)
	switch {
	case left < 0, left == 0 && !l.crash.after:
		return shard.Outcome{}, errCrash
	}
	out, err := l.View.Publish(ctx, payload)
	if left == 0 {
		return shard.Outcome{}, errors.Join(errCrash, err)
	}
	return out, err
}

// mortal returns the catalog of the same views that dies with record n, from 1.
func (in instance) mortal(n int64, after bool) *catalog.Catalog {
	crash := &crashing{after: after}
	crash.left.Store(n)
	ledgers := make([]catalog.Ledger, len(in.views))
	for i, v := range in.views {
		ledgers[i] = crashingLedger{v, crash}
	}
	return catalog.New(ledgers[:shards], ledgers[shards], slog.New(slog.DiscardHandler))
}

// Given a drop that ends at any of its records, when it is called again, then the
// namespace is gone; and before that it either takes streams or says that it is
// being dropped.
func TestADropThatWasBrokenOffGoesOn(t *testing.T) {
	for _, after := range []bool{false, true} {
		crashed := 0
		for step := int64(1); ; step++ {
			s := newStreams(t)
			in := s.instance()
			_, err := in.CreateNamespace(t.Context(), "shop", catalog.NamespaceConfig{})
			require.NoError(t, err)
			err = in.mortal(step, after).DropNamespace(t.Context(), "shop")
			if err == nil {
				break
			}
			require.ErrorIs(t, err, errCrash)
			crashed++
			other := s.instance()
			if _, err := other.Create(t.Context(), name("shop/late"), catalog.StreamConfig{}); err == nil {
				if err := other.DropNamespace(t.Context(), "shop"); err != nil {
					require.ErrorIs(t, err, catalog.ErrNamespaceNotEmpty)
					other.unsealed(t, "shop")
				}
				continue
			}
			require.ErrorIs(t, err, errCrash)
			err = other.DropNamespace(t.Context(), "shop")
			if err != nil {
				require.ErrorIs(t, err, catalog.ErrNoSuchNamespace, "after %v, step %d", after, step)
			}
			require.Empty(t, other.Namespaces())
			_, err = other.Create(t.Context(), name("shop/late"), catalog.StreamConfig{})
			require.NoError(t, err, "the name is free again")
		}
		require.Equal(t, 2+2*shards, crashed, "the claim, each shard twice, and the drop")
	}
}

// unsealed checks that every shard takes streams of a namespace.
func (in instance) unsealed(t *testing.T, namespace string) {
	t.Helper()
	for i := range 20 {
		_, err := in.Create(t.Context(), base.StreamName{Namespace: namespace, Name: string(rune('a' + i))}, catalog.StreamConfig{})
		require.NoError(t, err)
	}
}

// Given a drop that a stream refuses, then no shard stays sealed, even when a drop
// before it was broken off.
func TestARefusedDropLeavesNoSeal(t *testing.T) {
	for step := int64(1); step <= shards; step++ {
		s := newStreams(t)
		in := s.instance()
		_, err := in.CreateNamespace(t.Context(), "shop", catalog.NamespaceConfig{})
		require.NoError(t, err)
		require.ErrorIs(t, in.mortal(step, true).DropNamespace(t.Context(), "shop"), errCrash)
		stream := base.StreamName{}
		for i := 0; stream.Name == ""; i++ { // the last shard is not sealed yet
			candidate := base.StreamName{Namespace: "shop", Name: string(rune('a' + i))}
			if base.ShardOf(candidate, shards) == shards-1 {
				stream = candidate
			}
		}
		_, err = in.Create(t.Context(), stream, catalog.StreamConfig{})
		require.NoError(t, err)
		require.ErrorIs(t, in.DropNamespace(t.Context(), "shop"), catalog.ErrNamespaceNotEmpty)
		in.unsealed(t, "shop")
	}
}

// rush is instances that create streams in a namespace beside others that drop it.
type rush struct {
	t                *testing.T
	created, dropped atomic.Int64
}

// rounds bounds what one instance creates.
const rounds = 500

// create makes streams, and deletes them again, until enough drops met them.
func (r *rush) create(in instance, creator, drops int) {
	for n := 0; n < rounds && r.dropped.Load() < int64(drops); n++ {
		stream := name(fmt.Sprintf("shop/s%d-%d", creator, n))
		_, err := in.Ensure(r.t.Context(), stream, catalog.StreamConfig{})
		if errors.Is(err, catalog.ErrNamespaceDropping) {
			continue
		}
		if err != nil {
			r.t.Error(err)
			return
		}
		r.created.Add(1)
		// The log itself is asked: while the stream is there, so is its namespace.
		if _, err := in.CreateNamespace(r.t.Context(), "shop", catalog.NamespaceConfig{}); !errors.Is(err, catalog.ErrAlreadyExists) {
			r.t.Errorf("stream %s is in no namespace: %v", stream, err)
		}
		if _, err := in.Drop(r.t.Context(), stream, true); err != nil {
			r.t.Error(err)
		}
	}
}

// drop drops the namespace over and over.
func (r *rush) drop(in instance, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		switch err := in.DropNamespace(r.t.Context(), "shop"); {
		case err == nil:
			r.dropped.Add(1)
		case !errors.Is(err, base.ErrConflict) && !errors.Is(err, catalog.ErrNoSuchNamespace):
			r.t.Error(err)
		}
	}
}

// Given instances that drop a namespace and others that create streams in it at the
// same moment, over and over, then no stream is ever in a namespace that is not
// there, and no seal is left that keeps streams out for ever.
func TestCreatesAndDropsAtOnceLeaveEachStreamInItsNamespace(t *testing.T) {
	s := newStreams(t)
	r := &rush{t: t}
	var creating, dropping sync.WaitGroup
	done := make(chan struct{})
	for i := range 2 {
		creator, dropper := s.instance(), s.instance()
		creating.Go(func() { r.create(creator, i, 5) })
		dropping.Go(func() { r.drop(dropper, done) })
	}
	creating.Wait()
	close(done)
	dropping.Wait()
	t.Logf("%d creates, %d drops", r.created.Load(), r.dropped.Load())
	in := s.instance()
	in.ensure(t, "shop/last", catalog.StreamConfig{})
	n, err := in.LoadNamespace("shop")
	require.NoError(t, err)
	require.NotZero(t, n.ID)
	require.ErrorIs(t, in.DropNamespace(t.Context(), "shop"), catalog.ErrNamespaceNotEmpty)
	in.unsealed(t, "shop")
}

// Given a create that found the namespace and a drop that lands before its record,
// then the stream is in a namespace of its own time.
func TestACreateThatLostToADropMakesTheNamespaceAgain(t *testing.T) {
	s := newStreams(t)
	in, other := s.instance(), s.instance()
	first, err := in.CreateNamespace(t.Context(), "shop", catalog.NamespaceConfig{})
	require.NoError(t, err)
	other.follow(t, in)
	require.NoError(t, in.DropNamespace(t.Context(), "shop"))
	other.ensure(t, "shop/orders", catalog.StreamConfig{}) // its view of meta may be as it was
	n, err := other.LoadNamespace("shop")
	require.NoError(t, err)
	require.Greater(t, n.ID, first.ID)
}

func TestTableCatalogsAreNamedOnce(t *testing.T) {
	s := newStreams(t)
	in, other := s.instance(), s.instance()
	lake := catalog.TableCatalog{
		Name: "lake", Type: "ICEBERG", Connection: map[string]string{"uri": "https://catalog"}, Properties: map[string]string{"p": "q"},
	}
	require.Empty(t, in.TableCatalogs())
	require.NoError(t, in.RegisterTableCatalog(t.Context(), lake))
	require.NoError(t, in.RegisterTableCatalog(t.Context(), catalog.TableCatalog{Name: "b", Type: "NONE"}))
	other.follow(t, in)
	found, err := other.TableCatalog("lake")
	require.NoError(t, err)
	require.Equal(t, lake, found)
	require.ErrorIs(t, other.RegisterTableCatalog(t.Context(), lake), catalog.ErrAlreadyExists)
	require.Len(t, other.TableCatalogs(), 2)
	require.NoError(t, other.UnregisterTableCatalog(t.Context(), "lake"))
	require.ErrorIs(t, other.UnregisterTableCatalog(t.Context(), "lake"), catalog.ErrNoSuchTableCatalog)
	_, err = other.TableCatalog("lake")
	require.ErrorIs(t, err, catalog.ErrNoSuchTableCatalog)
	for _, wrong := range []catalog.TableCatalog{
		{Name: "a b", Type: "ICEBERG"},
		{Name: "c"},
		{Name: "c", Type: "ICEBERG", Connection: map[string]string{"": "x"}},
	} {
		require.ErrorIs(t, in.RegisterTableCatalog(t.Context(), wrong), base.ErrInvalid)
	}
}
