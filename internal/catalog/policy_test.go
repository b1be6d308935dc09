package catalog_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

func TestAPolicyResolvesToTheStreamsNameAndTheDefaults(t *testing.T) {
	name := base.StreamName{Namespace: "git.hub", Name: "web.hooks"}
	defaults := catalog.Table{
		Enabled: true, Namespace: "git_hub", Name: "web_hooks", CommitInterval: 10 * time.Second,
		SystemColumns: []string{"partition", "offset", "timestamp"},
	}
	with := func(change func(*catalog.Table)) catalog.Table {
		table := defaults
		change(&table)
		return table
	}
	for title, c := range map[string]struct {
		policy *commitpb.TablePolicy
		want   catalog.Table
	}{
		"no policy":    {nil, defaults},
		"empty policy": {&commitpb.TablePolicy{}, defaults},
		"empty texts":  {&commitpb.TablePolicy{Namespace: new(""), Name: new("")}, defaults},
		"enabled":      {&commitpb.TablePolicy{Enabled: new(true)}, defaults},
		"disabled": {
			&commitpb.TablePolicy{Enabled: new(false)},
			with(func(t *catalog.Table) { t.Enabled = false }),
		},
		"names, with dots": {
			&commitpb.TablePolicy{Namespace: new("a.b"), Name: new("c.d")},
			with(func(t *catalog.Table) { t.Namespace, t.Name = "a_b", "c_d" }),
		},
		"interval": {
			&commitpb.TablePolicy{CommitIntervalMs: new(int64(1500))},
			with(func(t *catalog.Table) { t.CommitInterval = 1500 * time.Millisecond }),
		},
		"no interval": {&commitpb.TablePolicy{CommitIntervalMs: new(int64(0))}, defaults},
		"columns": {
			&commitpb.TablePolicy{SystemColumns: []string{"partition", "offset", "key"}},
			with(func(t *catalog.Table) { t.SystemColumns = []string{"partition", "offset", "key"} }),
		},
	} {
		require.Equal(t, c.want, catalog.Resolve(name, c.policy), title)
	}
	require.Equal(t, "git_hub.web_hooks", defaults.String())
	require.Equal(t, "web_hooks_dlt", defaults.DeadLetterName())
}

func TestAWrongPolicyIsNamedByItsField(t *testing.T) {
	for _, c := range []struct {
		policy catalog.TablePolicy
		says   string
	}{
		{catalog.TablePolicy{CommitInterval: time.Millisecond}, "commit interval 1ms"},
		{catalog.TablePolicy{CommitInterval: -time.Second}, "commit interval -1s"},
		{catalog.TablePolicy{SystemColumns: []string{"partition", "offset", "color"}}, `"color"`},
		{catalog.TablePolicy{SystemColumns: []string{"partition", "timestamp"}}, "partition and offset are needed"},
		{catalog.TablePolicy{SystemColumns: []string{"offset"}}, "partition and offset are needed"},
		{catalog.TablePolicy{SystemColumns: []string{"partition", "offset", "offset"}}, "named twice"},
		{catalog.TablePolicy{Name: "a b"}, "table name"},
		{catalog.TablePolicy{Namespace: "a/b"}, "table name"},
	} {
		err := c.policy.Validate()
		require.ErrorIs(t, err, base.ErrInvalid, "%+v", c.policy)
		require.ErrorContains(t, err, c.says)
	}
	require.NoError(t, catalog.TablePolicy{}.Validate())
	require.NoError(t, catalog.TablePolicy{
		Namespace: "a.b", Name: "c", CommitInterval: time.Second,
		SystemColumns: []string{"headers", "key", "timestamp", "offset", "partition"},
	}.Validate())
}
