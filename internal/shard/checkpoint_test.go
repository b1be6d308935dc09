package shard_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/shard/shardtest"
)

func encodeState(t require.TestingT, s *shard.State) []byte {
	data, err := shard.Snapshot{State: s, Record: base.Hash{7}}.Encode()
	require.NoError(t, err)
	return data
}

func loadState(t require.TestingT, data []byte, of base.Shard) *shard.State {
	sn, err := shard.VerifyCheckpoint(data, shardtest.Cluster, of)
	require.NoError(t, err)
	require.Equal(t, base.Hash{7}, sn.Record)
	return sn.State
}

// At any revision, what a checkpoint brings back is the state: it has the same
// hash, gives every later record the same outcome, and the same bytes again.
func TestAStateGoesOnFromItsCheckpointAsIfNothingHadHappened(t *testing.T) {
	check(t, func(t *rapid.T) func(*shard.State, shardtest.Step, shard.Outcome) {
		at := base.Revision(rapid.Uint64Range(1, historyLength).Draw(t, "checkpoint at"))
		var loaded *shard.State
		return func(s *shard.State, step shardtest.Step, out shard.Outcome) {
			if loaded != nil {
				require.Equal(t, out, fold(t, loaded, step))
				require.Equal(t, s.Hash(), loaded.Hash())
				require.Equal(t, s.ChainHash(), loaded.ChainHash())
				require.Equal(t, s.IndexEntries(), loaded.IndexEntries())
				require.Equal(t, s.Objects(), loaded.Objects())
			}
			if s.Revision() == at {
				data := encodeState(t, s)
				loaded = loadState(t, data, testShard)
				require.Equal(t, s.Hash(), loaded.Hash())
				require.Equal(t, shardtest.DumpOf(s), shardtest.DumpOf(loaded))
				require.True(t, bytes.Equal(data, encodeState(t, loaded)), "a loaded state gives the same bytes")
			}
		}
	})
}

func TestACloneIsAStateOfItsOwn(t *testing.T) {
	check(t, func(t *rapid.T) func(*shard.State, shardtest.Step, shard.Outcome) {
		at := base.Revision(rapid.Uint64Range(1, historyLength).Draw(t, "clone at"))
		var still, moving *shard.State
		var hash base.Hash
		return func(s *shard.State, step shardtest.Step, out shard.Outcome) {
			if still != nil {
				require.Equal(t, out, fold(t, moving, step))
				require.Equal(t, s.Hash(), moving.Hash())
				require.Equal(t, hash, still.Hash(), "what happens to the original does not reach the clone")
			}
			if s.Revision() == at {
				still, moving, hash = s.Clone(), s.Clone(), s.Hash()
				require.Equal(t, hash, still.Hash())
			}
		}
	})
}

// metaLedger has something of everything that only the log meta holds.
func metaLedger(t *testing.T) *shard.State {
	t.Helper()
	l := ledger{t: t, State: shard.NewState(shardtest.Cluster, base.MetaShard)}
	properties := []*commitpb.Property{{Key: "a", Value: "1"}, {Key: "b", Value: ""}}
	l.accept(&commitpb.ClusterCreate{Shards: 4, FoldVersion: commitrecord.FoldVersion})
	l.accept(&commitpb.NamespaceCreate{Namespace: "shop", Properties: properties, Table: &commitpb.TablePolicy{}})
	l.accept(&commitpb.NamespaceCreate{Namespace: "empty"})
	l.accept(&commitpb.CatalogRegister{Name: "lake", Type: "rest", Connection: properties, Properties: properties[:1]})
	l.accept(&commitpb.CatalogRegister{Name: "bare", Type: "sql"})
	days := int64(7)
	l.accept(&commitpb.ClusterUpdate{ExpectedVersion: 1, Retention: &commitpb.Retention{TimeMs: &days}})
	return l.State
}

func TestNamespacesAndCatalogsComeBackFromACheckpoint(t *testing.T) {
	s := metaLedger(t)
	loaded := loadState(t, encodeState(t, s), base.MetaShard)
	require.Equal(t, s.Hash(), loaded.Hash())
	namespace, ok := loaded.Namespace("shop")
	require.True(t, ok)
	require.Len(t, namespace.Properties, 2)
	require.Len(t, loaded.TableCatalogs(), 2)
	require.EqualValues(t, 7, loaded.ClusterPolicy().Retention.GetTimeMs())
	original, copied := ledger{t, s.Clone()}, ledger{t, loaded}
	for _, p := range []commitrecord.Payload{
		&commitpb.NamespaceUpdate{NamespaceId: 2, ExpectedVersion: 1, Remove: []string{"a"}},
		&commitpb.NamespaceDrop{NamespaceId: 3}, &commitpb.CatalogUnregister{Name: "lake"},
	} {
		require.Equal(t, original.accept(p), copied.accept(p))
	}
	require.Equal(t, original.Hash(), copied.Hash())
	require.NotEqual(t, s.Hash(), copied.Hash(), "the clone does not reach the original")
}

// busyLedger has entries, dead objects, prepared ranges and a closed writer.
func busyLedger(t *testing.T) ledger {
	t.Helper()
	l := newLedger(t)
	l.append(1, 0, 5)
	l.append(2, 0, 5)
	l.append(3, 1, 9)
	l.accept(compactOf(4, uint64(l.Revision()), 0, 10))
	l.accept(preparedOf(5, 0, 10, "file"))
	l.append(6, 0, 3)
	l.accept(open('b'))
	return l
}

func TestACheckpointOfAnotherClusterOrShardIsRefused(t *testing.T) {
	data := encodeState(t, busyLedger(t).State)
	_, err := shard.LoadCheckpoint(data, base.ClusterID{1}, testShard)
	require.ErrorIs(t, err, base.ErrForeign)
	_, err = shard.LoadCheckpoint(data, shardtest.Cluster, testShard+1)
	require.ErrorIs(t, err, base.ErrCorrupt)
	data[200] ^= 1
	_, err = shard.LoadCheckpoint(data, shardtest.Cluster, testShard)
	require.ErrorIs(t, err, base.ErrCorrupt)
}

// sealAgain writes a checkpoint again with what mend makes of its bytes, under a
// checksum that fits.
func sealAgain(data []byte, mend func(data []byte) []byte) []byte {
	body := mend(bytes.Clone(data[:len(data)-4]))
	binary.BigEndian.PutUint64(body[136:], uint64(len(body)+4))
	return binary.BigEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

func TestAStateThatIsNotTheOneItSaysIsNoticed(t *testing.T) {
	data := sealAgain(encodeState(t, busyLedger(t).State), func(data []byte) []byte {
		data[72] ^= 1 // the state hash
		return data
	})
	_, err := shard.LoadCheckpoint(data, shardtest.Cluster, testShard)
	require.NoError(t, err)
	_, err = shard.VerifyCheckpoint(data, shardtest.Cluster, testShard)
	require.ErrorIs(t, err, base.ErrCorrupt)
}

func TestASectionOfANewerBinaryStopsTheReader(t *testing.T) {
	data := sealAgain(encodeState(t, busyLedger(t).State), func(data []byte) []byte {
		data[147]++ // one section more
		section := []byte{0, 99, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		column := []byte{0, 0, 0, 1, 0, 0, 0, 0}
		return append(append(data, section...), column...)
	})
	_, err := shard.LoadCheckpoint(data, shardtest.Cluster, testShard)
	require.ErrorIs(t, err, base.ErrNewerFormat)
	require.ErrorContains(t, err, "upgrade")
}

// The golden checkpoint was written once and must be read for ever, into the state
// that the same records give today.
func TestTheGoldenStateIsReadForEver(t *testing.T) {
	path := filepath.Join("testdata", "v1.checkpoint")
	l := busyLedger(t)
	if *update {
		require.NoError(t, os.WriteFile(path, encodeState(t, l.State), 0o600))
	}
	golden, err := os.ReadFile(path)
	require.NoError(t, err)
	loaded := loadState(t, golden, testShard)
	require.Equal(t, shardtest.DumpOf(l.State), shardtest.DumpOf(loaded))
	require.Equal(t, l.Hash(), loaded.Hash())
}

// FuzzLoadCheckpoint changes bytes under a checksum that fits: whatever a state
// says, loading it ends with a class and without a panic.
func FuzzLoadCheckpoint(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("testdata", "v1.checkpoint"))
	require.NoError(f, err)
	f.Add(golden, uint16(170), byte(1))
	f.Add(golden, uint16(700), byte(0xff))
	f.Fuzz(func(t *testing.T, data []byte, at uint16, flip byte) {
		if len(data) < 200 {
			return
		}
		data = sealAgain(data, func(data []byte) []byte {
			data[int(at)%len(data)] ^= flip
			return data
		})
		sn, err := shard.LoadCheckpoint(data, shardtest.Cluster, testShard)
		if err != nil {
			require.True(t, errors.Is(err, base.ErrCorrupt) || errors.Is(err, base.ErrNewerFormat) || errors.Is(err, base.ErrForeign), "%v", err)
			return
		}
		sn.State.Hash()
	})
}

// BenchmarkCheckpoint writes and loads a state of a million index entries, and
// measures for how long applying waits.
func BenchmarkCheckpoint(b *testing.B) {
	s, next := appendBench(b)
	for seq := 1; seq <= 1000; seq++ {
		applyBench(b, s, next(seq))
	}
	sn := shard.Snapshot{State: s}
	data, err := sn.Encode()
	require.NoError(b, err)
	b.Run("clone", func(b *testing.B) {
		for b.Loop() {
			s.Clone()
		}
	})
	b.Run("hash", func(b *testing.B) {
		for b.Loop() {
			s.Hash()
		}
	})
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			_, err := sn.Encode()
			require.NoError(b, err)
		}
		b.ReportMetric(float64(len(data)), "bytes")
	})
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			_, err := shard.LoadCheckpoint(data, s.Cluster(), 0)
			require.NoError(b, err)
		}
	})
}
