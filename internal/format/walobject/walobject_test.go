package walobject_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/format/walobject"
)

var update = flag.Bool("update", false, "rewrite golden files")

var header = walobject.Header{
	Cluster: base.ClusterID{0xc1, 2, 3, 15: 0xff}, Shard: 3, Writer: 17, Seq: 4,
}

func logID(i int) base.LogID {
	return base.LogID{Stream: 100 + base.StreamID(i)/4, Partition: base.Partition(i % 4)} //nolint:gosec // small
}

// runs returns the records of one log: n of them in each of some appends.
func runs(log, appends, n int) []recordbatch.Run {
	var out []recordbatch.Run
	for a := range appends {
		records := make([]recordbatch.Record, n)
		for i := range records {
			records[i] = recordbatch.Record{
				Timestamp: base.Millis(1_700_000_000_000 + 10*a + i),
				Value:     fmt.Appendf(nil, "log %d append %d record %d with words that words compress", log, a, i),
			}
		}
		_, run := recordbatch.AppendRun(nil, records)
		out = append(out, run)
	}
	return out
}

func build(t require.TestingT, logs, alignment int, compression recordbatch.Compression) []byte {
	var b walobject.Builder
	b.Reset(nil, header, alignment)
	for i := range logs {
		b.Add(logID(i), slices.Values(runs(i, 2, 3)), compression)
	}
	object, blocks, err := b.Finish()
	require.NoError(t, err)
	require.Len(t, blocks, logs)
	return object
}

func TestBlocksComeBackAsTheyWereAdded(t *testing.T) {
	for _, logs := range []int{0, 1, 9} {
		object := build(t, logs, 1, recordbatch.Zstd)
		parsed, err := walobject.Parse(object)
		require.NoError(t, err)
		require.Equal(t, header, parsed.Header)
		require.Len(t, parsed.Blocks, logs)
		for i, b := range parsed.Blocks {
			require.Equal(t, logID(i), b.Log)
			require.Equal(t, 6, b.Records)
			require.EqualValues(t, 1_700_000_000_000, b.MinTime)
			require.EqualValues(t, 1_700_000_000_012, b.MaxTime)
			want := recordbatch.AppendBlock(nil, slices.Values(runs(i, 2, 3)), recordbatch.Zstd)
			require.Equal(t, want, parsed.Block(i))
		}
	}
}

func TestTheLengthSuitsTheStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alignment := rapid.SampledFrom([]int{1, 512, 4096, walobject.MaxAlignment}).Draw(t, "alignment")
		logs := rapid.IntRange(0, 20).Draw(t, "logs")
		object := build(t, logs, alignment, recordbatch.None)
		require.Zero(t, len(object)%alignment)
		parsed, err := walobject.Parse(object)
		require.NoError(t, err)
		require.Less(t, parsed.Padding, alignment)
	})
}

func TestTheObjectIsBuiltInPlace(t *testing.T) {
	all := runs(0, 3, 100)
	buffer := slices.Repeat([]byte{0xee}, walobject.Bound(1, recordbatch.BlockBound(slices.Values(all)), 4096))
	var b walobject.Builder
	for range 2 { // also in a buffer that was used before
		b.Reset(buffer, header, 4096)
		b.Add(logID(0), slices.Values(all), recordbatch.None)
		object, _, err := b.Finish()
		require.NoError(t, err)
		require.Same(t, &buffer[0], &object[0])
		_, err = walobject.Parse(object)
		require.NoError(t, err)
	}
}

func TestRestampGivesTheObjectToAnotherWriter(t *testing.T) {
	object := build(t, 2, 4096, recordbatch.None)
	next := header
	next.Writer, next.Seq = 99, 1
	walobject.Restamp(object, next)
	parsed, err := walobject.Parse(object)
	require.NoError(t, err)
	require.NoError(t, parsed.Expect(next))
	require.ErrorIs(t, parsed.Expect(header), base.ErrCorrupt, "it is no longer the old writer's")
}

func TestAnotherClustersObjectIsForeign(t *testing.T) {
	parsed, err := walobject.Parse(build(t, 1, 1, recordbatch.None))
	require.NoError(t, err)
	other := header
	other.Cluster[0]++
	require.ErrorIs(t, parsed.Expect(other), base.ErrForeign)
}

func TestANewerVersionIsToldFromDamage(t *testing.T) {
	object := build(t, 1, 1, recordbatch.None)
	object[5] = walobject.Version + 1
	_, err := walobject.Parse(object)
	require.ErrorIs(t, err, base.ErrCorrupt, "a version that the checksum does not confirm")
	binary.BigEndian.PutUint32(object[40:], crc32.Checksum(object[:40], crc32.MakeTable(crc32.Castagnoli)))
	_, err = walobject.Parse(object)
	require.ErrorIs(t, err, base.ErrNewerFormat)
	require.NotErrorIs(t, err, base.ErrCorrupt)
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	object := build(t, 3, 1024, recordbatch.None)
	parsed, err := walobject.Parse(object)
	require.NoError(t, err)
	require.Positive(t, parsed.Padding)
	for bit := range len(object) * 8 {
		object[bit/8] ^= 1 << (bit % 8)
		_, err := walobject.Parse(object)
		require.ErrorIs(t, err, base.ErrCorrupt, "bit %d of byte %d", bit%8, bit/8)
		object[bit/8] ^= 1 << (bit % 8)
	}
}

func TestEveryTruncationIsFound(t *testing.T) {
	object := build(t, 3, 512, recordbatch.None)
	for n := range object {
		_, err := walobject.Parse(object[:n])
		require.ErrorIs(t, err, base.ErrCorrupt, "cut to %d bytes", n)
		_, err = walobject.Parse(object[len(object)-n:])
		require.ErrorIs(t, err, base.ErrCorrupt, "the last %d bytes", n)
	}
}

func TestABlockFetchedAloneIsVerified(t *testing.T) {
	parsed, err := walobject.Parse(build(t, 3, 1, recordbatch.Zstd))
	require.NoError(t, err)
	entry := recordbatch.Entry{Base: 70, Records: parsed.Blocks[1].Records, Data: parsed.Block(1)}
	source, err := recordbatch.NewSource([]recordbatch.Entry{entry})
	require.NoError(t, err)
	read := 0
	require.NoError(t, source.Each(func(p *recordbatch.Positioned) error {
		require.Contains(t, string(p.Value), "log 1 ")
		read++
		return nil
	}))
	require.Equal(t, 6, read)
}

func TestDescribe(t *testing.T) {
	object := build(t, 2, 4096, recordbatch.Zstd)
	description, err := walobject.Describe(object)
	require.NoError(t, err)
	got, err := json.MarshalIndent(description, "", "  ")
	require.NoError(t, err)
	golden(t, "describe.json", append(got, '\n'))
}

func TestDescribeReadsDownToTheRecords(t *testing.T) {
	var b walobject.Builder
	b.Reset(nil, header, 1)
	lying := runs(0, 1, 3)
	lying[0].MaxTime = lying[0].MinTime
	b.Add(logID(0), slices.Values(lying), recordbatch.None)
	object, _, err := b.Finish()
	require.NoError(t, err)
	_, err = walobject.Parse(object)
	require.NoError(t, err)
	_, err = walobject.Describe(object)
	require.ErrorIs(t, err, base.ErrCorrupt)
}

func TestGoldenObjectStaysReadable(t *testing.T) {
	golden(t, "v1.wal", build(t, 2, 1024, recordbatch.None))
}

// golden compares got with a file; a difference in an object means that the
// stored form changed, which needs a new version.
func golden(t *testing.T, name string, got []byte) {
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func FuzzParse(f *testing.F) {
	f.Add(build(f, 0, 1, recordbatch.None))
	f.Add(build(f, 2, 64, recordbatch.None))
	f.Add(build(f, 3, 1, recordbatch.Zstd))
	f.Add([]byte("LSWO"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, object := range [][]byte{data, reseal(slices.Clone(data))} {
			description, err := walobject.Describe(object)
			if err != nil {
				require.True(t, isClassed(err), "%v", err)
				continue
			}
			require.Equal(t, len(object), description.Bytes)
		}
	})
}

func isClassed(err error) bool {
	for _, class := range []error{base.ErrCorrupt, base.ErrNewerFormat} {
		if errors.Is(err, class) {
			return true
		}
	}
	return false
}

// reseal makes header, index and block checksums valid where the lengths allow
// it, so that a fuzzer gets past them.
func reseal(data []byte) []byte {
	if len(data) < 68 {
		return data
	}
	sum := func(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
	be := binary.BigEndian
	be.PutUint32(data[40:], sum(data[:40]))
	trailer := data[len(data)-24:]
	be.PutUint64(trailer, uint64(len(data)))
	size := int64(be.Uint32(trailer[8:])) * 44
	if size > int64(len(data)-68) {
		return data
	}
	start := int64(len(data)-24) - size
	index := data[start : len(data)-24]
	for ; len(index) > 0; index = index[44:] {
		pos, length := uint64(be.Uint32(index[16:])), uint64(be.Uint32(index[20:]))
		if pos+length <= uint64(len(data)) {
			be.PutUint32(index[40:], sum(data[pos:pos+length]))
		}
	}
	be.PutUint32(trailer[16:], sum(data[start:len(data)-8]))
	return data
}
