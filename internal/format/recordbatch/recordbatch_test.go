package recordbatch_test

import (
	"encoding/binary"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestRecordsComeBackAsTheyWereGiven(t *testing.T) {
	eachCompression(t, func(t *testing.T, compression recordbatch.Compression) {
		rapid.Check(t, func(t *rapid.T) {
			calls := [][]recordbatch.Record{genRecords(t, "first", 1), genRecords(t, "second", 0), genRecords(t, "third", 0)}
			entry := entryOf(compression, calls...)
			entry.Base = base.Offset(rapid.Int64Range(0, 1<<60).Draw(t, "base"))
			got, err := readEntry(entry)
			require.NoError(t, err)
			requireSame(t, slices.Concat(calls...), got, entry.Base)
			for i := range got {
				require.Equal(t, entry.Revision, got[i].Revision)
				require.Equal(t, entry.AppendTime, got[i].AppendTime)
			}
		})
	})
}

func TestRunsKnowTheirExtremes(t *testing.T) {
	runs := runsOf(varied())
	require.Len(t, runs, 1)
	require.Equal(t, 5, runs[0].Records)
	require.EqualValues(t, 1_700_000_000_000, runs[0].BaseTime)
	require.EqualValues(t, -5, runs[0].MinTime)
	require.EqualValues(t, 1_700_000_100_000, runs[0].MaxTime)
}

func TestSizeBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := genRecords(t, "records", 1)
		runs := runsOf(records)
		bound := 0
		for i := range records {
			bound += recordbatch.EncodedBound(&records[i])
		}
		encoded := 0
		for _, run := range runs {
			encoded += len(run.Data)
		}
		require.LessOrEqual(t, encoded, bound)
		block := recordbatch.AppendBlock(nil, slices.Values(runs), recordbatch.None)
		require.LessOrEqual(t, len(block), recordbatch.BlockBound(slices.Values(runs)))
	})
}

func TestSmallRunsShareABatchAndLargeOnesDoNot(t *testing.T) {
	given := func(calls ...[]recordbatch.Record) []int {
		var counts []int
		data := entryOf(recordbatch.None, calls...).Data
		for len(data) > 0 {
			info, err := recordbatch.InspectBatch(data)
			require.NoError(t, err)
			counts = append(counts, info.Records)
			data = data[info.Bytes:]
		}
		return counts
	}
	one := numbered(1, 100)
	require.Equal(t, []int{4}, given(one, one, one, one), "single appends are grouped")
	require.Equal(t, []int{643, 357}, given(numbered(1000, 91)), "a long append is split at the target")
	require.Equal(t, []int{1, 1}, given(numbered(1, 200_000), one), "a huge record stands alone")
	require.Equal(t, []int{500, 500}, given(numbered(500, 100), numbered(500, 100)), "nearly full runs are not cut up")
}

func TestIncompressibleBatchesAreStoredPlain(t *testing.T) {
	info, err := recordbatch.InspectBatch(entryOf(recordbatch.Zstd, numbered(1, 0)).Data)
	require.NoError(t, err)
	require.Equal(t, recordbatch.None, info.Compression)
	info, err = recordbatch.InspectBatch(entryOf(recordbatch.Zstd, numbered(50, 100)).Data)
	require.NoError(t, err)
	require.Equal(t, recordbatch.Zstd, info.Compression)
}

func TestSkippingReadsFromTheMiddle(t *testing.T) {
	eachCompression(t, func(t *testing.T, compression recordbatch.Compression) {
		records := numbered(2000, 100) // several batches
		entry := entryOf(compression, records)
		entry.Base = 5_000
		r := recordbatch.NewReader(recordbatch.MaxBatchBytes)
		for _, skip := range []int{0, 1, 599, 600, 601, 1_000, 1_999} {
			r.Reset(entry)
			require.NoError(t, r.SkipTo(entry.Base+base.Offset(skip)))
			got, err := readAll(r)
			require.NoError(t, err)
			requireSame(t, records[skip:], got, entry.Base+base.Offset(skip))
		}
		r.Reset(entry)
		require.NoError(t, r.SkipTo(5_100))
		require.NoError(t, r.SkipTo(6_999), "forward again")
		require.ErrorIs(t, r.SkipTo(5_000), base.ErrInvalid, "never back")
		require.ErrorIs(t, r.SkipTo(7_000), base.ErrInvalid, "never past the end")
	})
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	eachCompression(t, func(t *testing.T, compression recordbatch.Compression) {
		entry := entryOf(compression, varied(), numbered(20, 60))
		for bit := range len(entry.Data) * 8 {
			damaged := entry
			damaged.Data = slices.Clone(entry.Data)
			damaged.Data[bit/8] ^= 1 << (bit % 8)
			_, err := readEntry(damaged)
			require.ErrorIs(t, err, base.ErrCorrupt, "bit %d of byte %d", bit%8, bit/8)
		}
	})
}

func TestEveryTruncationIsFound(t *testing.T) {
	entry := entryOf(recordbatch.None, varied(), numbered(20, 60))
	for n := range entry.Data {
		damaged := entry
		damaged.Data = entry.Data[:n]
		_, err := readEntry(damaged)
		require.ErrorIs(t, err, base.ErrCorrupt, "cut to %d bytes", n)
	}
	entry = entryOf(recordbatch.None, numbered(1000, 100))
	first, err := recordbatch.InspectBatch(entry.Data)
	require.NoError(t, err)
	entry.Data = entry.Data[:first.Bytes]
	_, err = readEntry(entry)
	require.ErrorIs(t, err, base.ErrCorrupt, "cut between two batches")
}

func TestABlockThatIsNotTheIndexedOneIsFound(t *testing.T) {
	entry := entryOf(recordbatch.None, varied())
	for _, records := range []int{0, 4, 6} {
		other := entry
		other.Records = records
		_, err := readEntry(other)
		require.ErrorIs(t, err, base.ErrCorrupt, "%d records expected", records)
	}
	doubled := entry
	doubled.Records *= 2
	doubled.Data = slices.Concat(entry.Data, entry.Data)
	_, err := readEntry(doubled)
	require.ErrorIs(t, err, base.ErrCorrupt, "base offsets must follow on")
}

func TestDamageStaysWithTheEntry(t *testing.T) {
	entry := entryOf(recordbatch.None, varied())
	damaged := entry
	damaged.Data = entry.Data[:40]
	r := recordbatch.NewReader(recordbatch.MaxBatchBytes)
	r.Reset(damaged)
	_, first := r.Next()
	require.ErrorIs(t, first, base.ErrCorrupt)
	_, second := r.Next()
	require.Equal(t, first, second)
	r.Reset(entry)
	got, err := readAll(r)
	require.NoError(t, err)
	requireSame(t, varied(), got, 0)
}

func TestDecompressionIsBoundedByTheCaller(t *testing.T) {
	entry := entryOf(recordbatch.Zstd, []recordbatch.Record{{Value: make([]byte, 1<<20)}})
	require.Less(t, len(entry.Data), 1<<10)
	r := recordbatch.NewReader(1 << 19)
	r.Reset(entry)
	_, err := r.Next()
	require.ErrorIs(t, err, base.ErrCorrupt)
	require.ErrorContains(t, err, "at most 524288")
}

func TestKeptBuffersOutliveTheBatch(t *testing.T) {
	records := numbered(2000, 100)
	r := recordbatch.NewReader(recordbatch.MaxBatchBytes)
	r.KeepBuffers()
	r.Reset(entryOf(recordbatch.Zstd, records))
	var values [][]byte
	for range records {
		p, err := r.Next()
		require.NoError(t, err)
		values = append(values, p.Value)
	}
	for i := range records {
		require.Equal(t, records[i].Value, values[i])
	}
}

func TestPatchBaseLeavesTheChecksumAlone(t *testing.T) {
	entry := entryOf(recordbatch.None, varied())
	recordbatch.PatchBase(entry.Data, 1<<40)
	info, err := recordbatch.InspectBatch(entry.Data)
	require.NoError(t, err)
	require.EqualValues(t, 1<<40, info.Base)
}

func TestCompressionNames(t *testing.T) {
	for _, c := range compressions {
		parsed, err := recordbatch.ParseCompression(c.String())
		require.NoError(t, err)
		require.Equal(t, c, parsed)
	}
	_, err := recordbatch.ParseCompression("lzma")
	require.ErrorIs(t, err, base.ErrInvalid)
}

func TestGoldenBlockStaysReadable(t *testing.T) {
	path := filepath.Join("testdata", "block.golden")
	entry := entryOf(recordbatch.None, varied(), numbered(3, 20))
	if *update {
		require.NoError(t, os.WriteFile(path, entry.Data, 0o600))
	}
	golden, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, golden, entry.Data, "the stored form changed: that needs a new version")
	require.EqualValues(t, 2, golden[16])
	require.EqualValues(t, 8, binary.BigEndian.Uint32(golden[57:]))
}

func FuzzReader(f *testing.F) {
	for _, c := range compressions {
		entry := entryOf(c, varied(), numbered(20, 60))
		f.Add(entry.Data, entry.Records, 3)
	}
	f.Add([]byte{}, 0, 0)
	f.Fuzz(func(t *testing.T, data []byte, records, skip int) {
		resealed := slices.Clone(data)
		reseal(resealed)
		for _, block := range [][]byte{data, resealed} {
			entry := recordbatch.Entry{Records: records, Data: block}
			got, err := readEntry(entry)
			if err != nil {
				require.ErrorIs(t, err, base.ErrCorrupt)
				continue
			}
			require.Len(t, got, records)
			if skip < 0 || skip >= records {
				continue
			}
			r := recordbatch.NewReader(recordbatch.MaxBatchBytes)
			r.Reset(entry)
			require.NoError(t, r.SkipTo(base.Offset(skip)))
			rest, err := readAll(r)
			require.NoError(t, err)
			require.Equal(t, got[skip:], rest)
		}
	})
}

// reseal makes the checksum of the first batch valid, so that a fuzzer gets past it.
func reseal(data []byte) {
	if len(data) < recordbatch.HeaderBytes {
		return
	}
	length := uint64(binary.BigEndian.Uint32(data[8:])) + 12
	if length < recordbatch.HeaderBytes || length > uint64(len(data)) {
		return
	}
	binary.BigEndian.PutUint32(data[17:], castagnoli(data[21:length]))
}
