package catalog

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

func TestRetentionComesFromTheStreamThenItsNamespaceThenTheCluster(t *testing.T) {
	hour := time.Hour.Milliseconds()
	defaults := LogRetention{Time: Unlimited, Bytes: Unlimited, WaitForTables: DefaultWaitForTables}
	for name, c := range map[string]struct {
		stream, namespace, cluster *commitpb.Retention
		want                       LogRetention
	}{
		"nobody says anything": {nil, nil, nil, defaults},
		"all are empty":        {&commitpb.Retention{}, &commitpb.Retention{}, &commitpb.Retention{}, defaults},
		"the stream says all": {
			&commitpb.Retention{TimeMs: &hour, Bytes: new(int64(5)), WaitForTablesMs: new(int64(0)), WaitForGroups: new(true)},
			&commitpb.Retention{TimeMs: new(int64(1)), Bytes: new(int64(1)), WaitForTablesMs: &hour, WaitForGroups: new(false)}, nil,
			LogRetention{Time: time.Hour, Bytes: 5, WaitForGroups: true},
		},
		"each field by itself": {
			&commitpb.Retention{Bytes: new(int64(5))}, &commitpb.Retention{TimeMs: &hour},
			&commitpb.Retention{Bytes: new(int64(9)), TimeMs: new(int64(9)), WaitForTablesMs: &hour, WaitForGroups: new(true)},
			LogRetention{Time: time.Hour, Bytes: 5, WaitForTables: time.Hour, WaitForGroups: true},
		},
		"a stream is unlimited in a limited namespace": {
			&commitpb.Retention{TimeMs: new(int64(-1)), Bytes: new(int64(-7)), WaitForGroups: new(false)},
			&commitpb.Retention{TimeMs: &hour, Bytes: new(int64(5)), WaitForGroups: new(true)}, nil, defaults,
		},
		"0 keeps nothing": {
			&commitpb.Retention{TimeMs: new(int64(0)), Bytes: new(int64(0))}, nil, nil,
			LogRetention{WaitForTables: DefaultWaitForTables},
		},
		"more than a duration holds": {
			&commitpb.Retention{TimeMs: new(int64(math.MaxInt64)), WaitForTablesMs: new(int64(-5))}, nil, nil,
			LogRetention{Time: time.Duration(maxMillis) * time.Millisecond, Bytes: Unlimited},
		},
	} {
		require.Equal(t, c.want, ResolveRetention(c.stream, c.namespace, c.cluster), name)
	}
}

func TestARetentionSurvivesItsEncoding(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var want Retention
		if rapid.Bool().Draw(r, "time") {
			d := time.Duration(rapid.Int64Range(0, maxMillis).Draw(r, "ms")) * time.Millisecond
			want.Time = &d
		}
		if rapid.Bool().Draw(r, "bytes") {
			n := rapid.Int64Min(-1).Draw(r, "n")
			want.Bytes = &n
		}
		if rapid.Bool().Draw(r, "wait") {
			d := time.Duration(rapid.Int64Range(0, maxMillis).Draw(r, "wait ms")) * time.Millisecond
			on := rapid.Bool().Draw(r, "groups")
			want.WaitForTables, want.WaitForGroups = &d, &on
		}
		require.Equal(r, want, retentionOf(want.encode()))
		require.Equal(r, want, want.Over(Retention{}))
		require.Equal(r, want, Retention{}.Over(want))
	})
}

func TestARetentionThatMeansNothingIsRefused(t *testing.T) {
	tiny, negative, none := time.Microsecond, -time.Second, time.Duration(0)
	require.ErrorIs(t, Retention{Time: &tiny}.Validate(), base.ErrInvalid)
	require.ErrorIs(t, Retention{WaitForTables: &negative}.Validate(), base.ErrInvalid)
	require.NoError(t, Retention{Time: &negative, WaitForTables: &none}.Validate())
	require.NoError(t, Retention{Time: &none}.Validate())
	require.NoError(t, Retention{}.Validate())
}
