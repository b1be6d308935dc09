package catalog

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

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
			&commitpb.Retention{TimeMs: &hour, Bytes: proto.Int64(5), WaitForTablesMs: proto.Int64(0), WaitForGroups: proto.Bool(true)},
			&commitpb.Retention{TimeMs: proto.Int64(1), Bytes: proto.Int64(1), WaitForTablesMs: &hour, WaitForGroups: proto.Bool(false)}, nil,
			LogRetention{Time: time.Hour, Bytes: 5, WaitForGroups: true},
		},
		"each field by itself": {
			&commitpb.Retention{Bytes: proto.Int64(5)}, &commitpb.Retention{TimeMs: &hour},
			&commitpb.Retention{Bytes: proto.Int64(9), TimeMs: proto.Int64(9), WaitForTablesMs: &hour, WaitForGroups: proto.Bool(true)},
			LogRetention{Time: time.Hour, Bytes: 5, WaitForTables: time.Hour, WaitForGroups: true},
		},
		"a stream is unlimited in a limited namespace": {
			&commitpb.Retention{TimeMs: proto.Int64(-1), Bytes: proto.Int64(-7), WaitForGroups: proto.Bool(false)},
			&commitpb.Retention{TimeMs: &hour, Bytes: proto.Int64(5), WaitForGroups: proto.Bool(true)}, nil, defaults,
		},
		"0 keeps nothing": {
			&commitpb.Retention{TimeMs: proto.Int64(0), Bytes: proto.Int64(0)}, nil, nil,
			LogRetention{WaitForTables: DefaultWaitForTables},
		},
		"more than a duration holds": {
			&commitpb.Retention{TimeMs: proto.Int64(math.MaxInt64), WaitForTablesMs: proto.Int64(-5)}, nil, nil,
			LogRetention{Time: time.Duration(maxMillis) * time.Millisecond, Bytes: Unlimited},
		},
	} {
		require.Equal(t, c.want, ResolveRetention(c.stream, c.namespace, c.cluster), name)
		require.Equal(t, c.want.Time >= 0 || c.want.Bytes >= 0, c.want.Limited(), name)
	}
}

func TestARetentionKeepsWhatIsNotSet(t *testing.T) {
	day, off := 24*time.Hour, false
	old := &commitpb.Retention{TimeMs: proto.Int64(5), WaitForGroups: &off}
	_, changed := Retention{}.merge(old)
	require.False(t, changed)
	_, changed = Retention{WaitForGroups: &off}.merge(old)
	require.False(t, changed, "it is so already")
	bytes := int64(-9)
	merged, changed := Retention{Time: &day, Bytes: &bytes}.merge(old)
	require.True(t, changed)
	require.True(t, proto.Equal(&commitpb.Retention{TimeMs: proto.Int64(day.Milliseconds()), Bytes: proto.Int64(-1), WaitForGroups: &off}, merged))
	require.Equal(t, int64(5), old.GetTimeMs(), "what was read is not changed")
}

func TestARetentionThatMeansNothingIsRefused(t *testing.T) {
	tiny, negative, none := time.Microsecond, -time.Second, time.Duration(0)
	require.ErrorIs(t, Retention{Time: &tiny}.Validate(), base.ErrInvalid)
	require.ErrorIs(t, Retention{WaitForTables: &negative}.Validate(), base.ErrInvalid)
	require.NoError(t, Retention{Time: &negative, WaitForTables: &none}.Validate())
	require.NoError(t, Retention{Time: &none}.Validate())
	require.NoError(t, Retention{}.Validate())
}
