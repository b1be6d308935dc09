package shard_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

// fullStates are states, of a shard and of the log meta, in which every field of
// every type that they are made of has a value somewhere.
func fullStates(t *testing.T) []*shard.State {
	t.Helper()
	l := ledger{t: t, State: shard.NewState(shardtest.Cluster, testShard)}
	for _, data := range slices.Concat(goldenHistory(t), version2History(t)) {
		_, err := l.put(data)
		require.NoError(t, err)
	}
	opened := uint64(l.accept(open('c')).Writer)
	owner := []*commitpb.Property{{Key: "owner", Value: "me"}}
	l.accept(&commitpb.StreamCreate{
		Namespace: "full", Name: "all", Partitions: 1, NamespaceId: 40, Retention: &commitpb.Retention{},
		Schema: &commitpb.StreamSchema{Type: "JSON"}, Properties: owner,
	})
	seq := uint64(0)
	add := func(partition, records uint32, first uint64) {
		seq++
		p := appendOf(seq, partition, records)
		p.Writer, p.Groups = opened, []*commitpb.ProducerGroup{groupOf("p", first, uint64(records))}
		l.accept(p)
	}
	prepare := func(start, end uint64) {
		seq++
		p := preparedOf(seq, start, end, "data/full")
		p.Writer, p.Ranges[0].TableUuid, p.Ranges[0].DeadLetterUuid, p.Ranges[0].Filtered = opened, "full", "full letters", 1
		l.accept(p)
	}
	add(0, 4, 7)
	add(1, 4, 70)
	add(1, 4, 80)
	at := uint64(l.log(0).Prepared()) //nolint:gosec // small
	prepare(at, at+9)
	l.accept(&commitpb.Materialized{
		Stream: orders, TableUuid: "full", DeadLetterUuid: "full letters", Snapshot: 3, CommitId: "c", DeadLetterSnapshot: 4, DeadLetterCommitId: "d",
		Partition: []uint32{0}, End: []uint64{at + 9},
	})
	prepare(at+9, at+13)
	l.accept(&commitpb.Trim{Stream: orders, Partition: []uint32{1}, Offset: []uint64{2}, Hard: true})
	l.accept(&commitpb.Trim{Stream: orders, Partition: []uint32{1}, Offset: []uint64{3}})
	l.accept(&commitpb.Skip{Stream: orders, Partition: 1, Start: 0, End: 2, Reason: "trimmed"})
	l.accept(&commitpb.LogFence{Stream: orders, Partition: []uint32{1}, Reason: "why"})
	l.accept(&commitpb.StreamUpdate{Stream: orders, Properties: &commitpb.Properties{Values: owner, SourceRevision: 5}})

	m := ledger{t: t, State: shard.NewState(shardtest.Cluster, base.MetaShard)}
	for _, data := range metaHistory(t) {
		_, err := m.put(data)
		require.NoError(t, err)
	}
	return []*shard.State{l.State, m.State}
}

// fields tells of each field of the types that a value is made of whether it has a
// value anywhere inside. Messages count as a whole.
func fields(v reflect.Value, found map[string]bool) {
	switch v.Kind() { //nolint:exhaustive // the others hold nothing
	case reflect.Pointer:
		if !v.IsNil() && !v.Type().Implements(reflect.TypeFor[proto.Message]()) {
			fields(v.Elem(), found)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Name() + "." + v.Type().Field(i).Name
			f := v.Field(i)
			empty := f.IsZero() || (f.Kind() == reflect.Map || f.Kind() == reflect.Slice) && f.Len() == 0
			found[name] = found[name] || !empty
			fields(f, found)
		}
	case reflect.Slice:
		for i := range v.Len() {
			fields(v.Index(i), found)
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			fields(entry.Key(), found)
			fields(entry.Value(), found)
		}
	}
}

// A field that is added to the state and forgotten in its checkpoint is lost at the
// next start, and one that a clone forgets with the checkpoint that is made of it.
func TestNoFieldOfAStateIsForgotten(t *testing.T) {
	notStored := []string{"objectTable.free"} // places that a loaded state does not have
	require.Empty(t, forgotten(t, notStored, func(s *shard.State) *shard.State { return s }), "the histories leave these fields without a value")
	require.Empty(t, forgotten(t, notStored, func(s *shard.State) *shard.State { return s.Clone() }))
	require.Empty(t, forgotten(t, notStored, func(s *shard.State) *shard.State { return loadState(t, encodeState(t, s), s.Shard()) }))
}

// forgotten lists the fields that have no value in any of the full states, as through
// returns them.
func forgotten(t *testing.T, but []string, through func(*shard.State) *shard.State) (names []string) {
	t.Helper()
	found := make(map[string]bool)
	for _, s := range fullStates(t) {
		fields(reflect.ValueOf(through(s)), found)
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if !found[name] && !slices.Contains(but, name) {
			names = append(names, name)
		}
	}
	return names
}
