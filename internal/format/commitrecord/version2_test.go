package commitrecord_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// A record with a field that the cluster's fold version does not have would stop the
// instances that fold that version.
func TestEachNewFieldAsksForItsFoldVersion(t *testing.T) {
	old := map[string]commitrecord.Payload{
		"create":   &commitpb.StreamCreate{Namespace: "n", Name: "s", Partitions: 1, Table: &commitpb.TablePolicy{}},
		"update":   &commitpb.StreamUpdate{Stream: 1, ExpectedVersion: 1, Table: &commitpb.TablePolicy{}},
		"append":   &commitpb.Append{Writer: 1, Seq: 1},
		"reset":    &commitpb.TableReset{Stream: 1},
		"recreate": &commitpb.ClusterCreate{Shards: 1, FoldVersion: 1},
	}
	for name, p := range old {
		require.EqualValues(t, 1, commitrecord.Since(p), name)
	}
	for name, p := range map[string]commitrecord.Payload{
		"namespace":  &commitpb.StreamCreate{NamespaceId: 1},
		"retention":  &commitpb.StreamCreate{Retention: &commitpb.Retention{}},
		"schema":     &commitpb.StreamCreate{Schema: &commitpb.StreamSchema{}},
		"properties": &commitpb.StreamCreate{Properties: []*commitpb.Property{{}}},
		"keep":       &commitpb.StreamUpdate{Retention: &commitpb.Retention{}},
		"replace":    &commitpb.StreamUpdate{Properties: &commitpb.Properties{}},
		"producer":   &commitpb.Append{Groups: []*commitpb.ProducerGroup{{}}},
		"trim":       &commitpb.Trim{},
		"recovered":  &commitpb.Recovered{},
	} {
		require.EqualValues(t, 2, commitrecord.Since(p), name)
	}
}
