package catalog_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

func TestAPolicyComesFromTheStreamThenItsNamespaceThenTheCluster(t *testing.T) {
	stream := base.StreamName{Namespace: "shop", Name: "orders"}
	defaults := catalog.Table{
		Enabled: true, Namespace: "shop", Name: "orders", CommitInterval: catalog.DefaultCommitInterval,
		SystemColumns: []string{"partition", "offset", "timestamp"},
	}
	with := func(change func(*catalog.Table)) catalog.Table {
		table := defaults
		change(&table)
		return table
	}
	for title, c := range map[string]struct {
		levels []*commitpb.TablePolicy
		want   catalog.Table
	}{
		"nobody says anything": {[]*commitpb.TablePolicy{{}, {}, {}}, defaults},
		"all are nil":          {[]*commitpb.TablePolicy{nil, nil, nil}, defaults},
		"the stream over all": {
			[]*commitpb.TablePolicy{{Enabled: new(true)}, {Enabled: new(false)}, {Enabled: new(false)}}, defaults,
		},
		"the namespace over the cluster": {
			[]*commitpb.TablePolicy{{}, {Enabled: new(false)}, {Enabled: new(true)}},
			with(func(t *catalog.Table) { t.Enabled = false }),
		},
		"the cluster over the defaults": {
			[]*commitpb.TablePolicy{{}, {}, {CommitIntervalMs: new(int64(3000))}},
			with(func(t *catalog.Table) { t.CommitInterval = 3 * time.Second }),
		},
		"each field by itself": {
			[]*commitpb.TablePolicy{
				{Name: new("a")},
				{Namespace: new("n.m"), CommitIntervalMs: new(int64(2000))},
				{Namespace: new("x"), CommitIntervalMs: new(int64(9000)), SystemColumns: []string{"partition", "offset"}},
			},
			catalog.Table{Enabled: true, Namespace: "n_m", Name: "a", CommitInterval: 2 * time.Second, SystemColumns: []string{"partition", "offset"}},
		},
		"lists are replaced, not joined": {
			[]*commitpb.TablePolicy{{SystemColumns: []string{"offset", "partition"}}, {SystemColumns: []string{"partition", "offset", "key"}}, nil},
			with(func(t *catalog.Table) { t.SystemColumns = []string{"offset", "partition"} }),
		},
		"a name is not inherited": {[]*commitpb.TablePolicy{{}, {Name: new("n")}, {Name: new("c")}}, defaults},
	} {
		require.Equal(t, c.want, catalog.Resolve(stream, c.levels...), title)
	}
}

func TestOverIsTheSameInWhicheverOrderItIsBracketed(t *testing.T) {
	policy := rapid.Custom(func(r *rapid.T) catalog.TablePolicy {
		p := catalog.TablePolicy{
			Namespace: rapid.SampledFrom([]string{"", "n"}).Draw(r, "namespace"), Name: rapid.SampledFrom([]string{"", "t"}).Draw(r, "name"),
			CommitInterval: time.Duration(rapid.IntRange(0, 2).Draw(r, "seconds")) * time.Second,
		}
		if rapid.Bool().Draw(r, "says") {
			on := rapid.Bool().Draw(r, "on")
			p.Enabled = &on
		}
		return p
	})
	rapid.Check(t, func(r *rapid.T) {
		a, b, c := policy.Draw(r, "a"), policy.Draw(r, "b"), policy.Draw(r, "c")
		require.Equal(r, a.Over(b.Over(c)), a.Over(b).Over(c))
		require.Equal(r, a, a.Over(a))
		require.Equal(r, a, a.Over(catalog.TablePolicy{}))
	})
}

func TestStreamsFollowWhatTheyInherit(t *testing.T) {
	s := newStreams(t)
	in := s.instance()
	hour, day, off := time.Hour, 24*time.Hour, false
	in.ensure(t, "shop/orders", catalog.StreamConfig{Retention: catalog.Retention{Bytes: new(int64(5))}})
	in.ensure(t, "web/events", catalog.StreamConfig{})
	set := func(namespace string, settings catalog.Settings) {
		t.Helper()
		_, err := in.UpdateNamespace(t.Context(), namespace, func(c *catalog.NamespaceConfig) error {
			c.Settings = settings
			return nil
		})
		require.NoError(t, err)
	}
	set("shop", catalog.Settings{Table: catalog.TablePolicy{CommitInterval: time.Minute}, Retention: catalog.Retention{Time: &hour, Bytes: new(int64(9))}})
	defaults, err := in.UpdateDefaults(t.Context(), func(d *catalog.Settings) error {
		d.Retention.Time, d.Table.Enabled = &day, &off
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, defaults, in.Defaults())

	orders, events := in.load(t, "shop/orders"), in.load(t, "web/events")
	require.Equal(t, catalog.LogRetention{Time: hour, Bytes: 5, WaitForTables: catalog.DefaultWaitForTables}, orders.Kept)
	require.Equal(t, catalog.LogRetention{Time: day, Bytes: catalog.Unlimited, WaitForTables: catalog.DefaultWaitForTables}, events.Kept)
	require.Equal(t, time.Minute, orders.Table.CommitInterval)
	require.Equal(t, catalog.DefaultCommitInterval, events.Table.CommitInterval)
	require.Equal(t, catalog.Settings{}, events.Settings, "what is inherited is not the stream's own")

	reason := func(stream string) string {
		m, err := in.ResolveMaterialization(name(stream))
		require.NoError(t, err)
		return m.Reason
	}
	require.Contains(t, reason("web/events"), "cluster's defaults")
	set("web", catalog.Settings{Table: catalog.TablePolicy{Enabled: &off}})
	require.Contains(t, reason("web/events"), "namespace web")
	on := true
	st := in.ensure(t, "web/events", catalog.StreamConfig{Table: catalog.TablePolicy{Enabled: &on}})
	require.Empty(t, reason("web/events"))
	require.True(t, st.Table.Enabled)
	in.ensure(t, "web/events", catalog.StreamConfig{Table: catalog.TablePolicy{Enabled: &off}})
	require.Contains(t, reason("web/events"), "on the stream")
	_, err = in.Update(t.Context(), st, func(s *catalog.Settings) error {
		s.Table.Enabled = nil
		return nil
	})
	require.NoError(t, err)
	require.Contains(t, reason("web/events"), "namespace web", "what is cleared is inherited again")
	_, err = in.ResolveMaterialization(name("no/such"))
	require.ErrorIs(t, err, catalog.ErrNoSuchStream)
}

func TestWhatIsInheritedNeverChangesAFilledTableOrDoublesOne(t *testing.T) {
	s := newStreams(t)
	in := s.instance()
	st := in.ensure(t, "shop/orders", catalog.StreamConfig{})
	in.bind(t, st)
	in.ensure(t, "lake/orders", catalog.StreamConfig{})
	for says, settings := range map[string]catalog.Settings{
		"stream shop/orders":                  {Table: catalog.TablePolicy{Namespace: "elsewhere"}},
		"filled already":                      {Table: catalog.TablePolicy{SystemColumns: []string{"partition", "offset"}}},
		"streams that inherit it would fill":  {Table: catalog.TablePolicy{Name: "one"}},
		"table commit interval 1ms: want at ": {Table: catalog.TablePolicy{CommitInterval: time.Millisecond}},
	} {
		_, err := in.UpdateNamespace(t.Context(), "shop", func(c *catalog.NamespaceConfig) error {
			c.Settings = settings
			return nil
		})
		require.ErrorIs(t, err, base.ErrInvalid)
		require.ErrorContains(t, err, says)
		_, err = in.UpdateDefaults(t.Context(), func(d *catalog.Settings) error {
			*d = settings
			return nil
		})
		require.ErrorIs(t, err, base.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
	_, err := in.UpdateNamespace(t.Context(), "lake", func(c *catalog.NamespaceConfig) error {
		c.Table.Namespace = "shop"
		return nil
	})
	require.ErrorIs(t, err, base.ErrInvalid)
	require.ErrorContains(t, err, "would be that of streams lake/orders and shop/orders")
	_, err = in.CreateNamespace(t.Context(), "other", catalog.NamespaceConfig{Settings: catalog.Settings{Table: catalog.TablePolicy{Namespace: "shop"}}})
	require.NoError(t, err)
	in.refuse(t, "other/orders", catalog.StreamConfig{}, "is that of stream shop/orders already")
	require.Equal(t, catalog.Settings{}, in.Defaults())
}
