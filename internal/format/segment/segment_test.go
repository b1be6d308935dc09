package segment_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/segment"
)

var update = flag.Bool("update", false, "write the golden files again")

var cluster = base.ClusterID{0xc1, 15: 0x03}

const shard base.Shard = 2

// history returns n entries from a revision on.
func history(from base.Revision, n int) []segment.Entry {
	entries := make([]segment.Entry, n)
	for i := range entries {
		revision := from + base.Revision(i)
		entries[i] = segment.Entry{
			Revision: revision, Time: 1_700_000_000_000 - base.Millis(i%3), Data: fmt.Appendf(nil, "record %d of the log", revision),
		}
	}
	return entries
}

func encode(t require.TestingT, start base.Hash, entries []segment.Entry) ([]byte, segment.Header) {
	data, h, err := segment.Encode(cluster, shard, start, entries)
	require.NoError(t, err)
	return data, h
}

func decode(t require.TestingT, data []byte) *segment.Segment {
	s, err := segment.Decode(data)
	require.NoError(t, err)
	return s
}

func TestEntriesComeBackAsTheyWereDelivered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := base.Revision(rapid.Uint64Range(1, 1<<60).Draw(t, "from"))
		var entries []segment.Entry
		for i := range rapid.IntRange(1, 20).Draw(t, "entries") {
			entries = append(entries, segment.Entry{
				Revision: from + base.Revision(i),
				Time:     base.Millis(rapid.Int64().Draw(t, "time")),
				Data:     rapid.SliceOf(rapid.Byte()).Draw(t, "data"),
			})
		}
		data, h := encode(t, base.Hash{9}, entries)
		again, _ := encode(t, base.Hash{9}, entries)
		require.Equal(t, data, again, "the same entries give the same bytes")
		s := decode(t, data)
		require.Equal(t, h, s.Header)
		require.Equal(t, from, s.From)
		require.Len(t, s.Entries, len(entries))
		for i, e := range entries {
			require.Equal(t, e.Revision, s.Entries[i].Revision)
			require.Equal(t, e.Time, s.Entries[i].Time)
			require.True(t, bytes.Equal(e.Data, s.Entries[i].Data))
		}
	})
}

// However a history is cut into segments, the hash after it is the same.
func TestSegmentsFollowEachOther(t *testing.T) {
	entries := history(101, 40)
	_, whole := encode(t, base.Hash{}, entries)
	hash := base.Hash{}
	for _, n := range []int{1, 17, 2, 20} {
		data, h := encode(t, hash, entries[:n])
		entries = entries[n:]
		require.Equal(t, hash, decode(t, data).Start)
		hash = h.End
	}
	require.Equal(t, whole.End, hash)
}

func TestOnlyConsecutiveEntriesMakeASegment(t *testing.T) {
	gap := history(5, 3)
	gap[2].Revision++
	large := history(5, 2)
	large[1].Data = make([]byte, segment.MaxRawBytes)
	for name, entries := range map[string][]segment.Entry{
		"none": nil, "a gap": gap, "too large": large, "revision 0": history(0, 2),
	} {
		_, _, err := segment.Encode(cluster, shard, base.Hash{}, entries)
		require.ErrorIs(t, err, base.ErrInvalid, name)
	}
}

func TestDamageIsNoticed(t *testing.T) {
	data, _ := encode(t, base.Hash{1}, history(5, 10))
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= 0x40
		_, err := segment.Decode(damaged)
		require.ErrorIs(t, err, base.ErrCorrupt, "byte %d", i)
	}
	for _, length := range []int{0, 4, 9, 100, len(data) - 1} {
		_, err := segment.Decode(data[:length])
		require.ErrorIs(t, err, base.ErrCorrupt, "%d bytes", length)
	}
}

// seal puts the checksum under bytes that lie.
func seal(data []byte) []byte {
	body := data[:len(data)-4]
	return binary.BigEndian.AppendUint32(bytes.Clone(body), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

func TestASegmentThatLiesUnderItsChecksumIsRefused(t *testing.T) {
	for name, lie := range map[string]func(data []byte){
		"version 0":      func(data []byte) { data[5] = 0 },
		"revision 0":     func(data []byte) { clear(data[24:32]) },
		"another start":  func(data []byte) { data[31]++ },
		"fewer entries":  func(data []byte) { data[39]-- },
		"more entries":   func(data []byte) { data[39]++ },
		"many entries":   func(data []byte) { data[32] = 1 },
		"another hash":   func(data []byte) { data[40]++ },
		"another end":    func(data []byte) { data[72]++ },
		"another length": func(data []byte) { data[111]++ },
		"more bytes":     func(data []byte) { data[115]++ },
	} {
		data, _ := encode(t, base.Hash{1}, history(5, 10))
		lie(data)
		_, err := segment.Decode(seal(data))
		require.ErrorIs(t, err, base.ErrCorrupt, name)
	}
}

func TestANewerVersionIsNotTakenForDamage(t *testing.T) {
	data, _ := encode(t, base.Hash{1}, history(5, 10))
	data[5]++
	for _, length := range []int{len(data), 20} {
		_, err := segment.Decode(seal(data[:length]))
		require.ErrorIs(t, err, base.ErrNewerFormat)
		require.ErrorContains(t, err, "upgrade")
	}
}

// The bytes depend on the zstd library; what must never change is that a segment
// written once is read the same for ever.
func TestTheGoldenSegmentIsReadForEver(t *testing.T) {
	path := filepath.Join("testdata", "v1.segment")
	data, h := encode(t, base.Hash{7}, history(1234, 50))
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	golden, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, segment.Is(golden))
	s := decode(t, golden)
	require.Equal(t, h, s.Header)
	require.Equal(t, history(1234, 50), s.Entries)
}

// FuzzDecode seals what it is given, so that it gets past the checksum.
func FuzzDecode(f *testing.F) {
	data, _ := encode(f, base.Hash{1}, history(5, 10))
	f.Add(data)
	data, _ = encode(f, base.Hash{}, []segment.Entry{{Revision: 1}})
	f.Add(data)
	f.Add([]byte("LSCS"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= 10 {
			data = seal(data)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := segment.Decode(data)
		runtime.ReadMemStats(&after)
		// A frame becomes at most 32 Ki times its length, and at most MaxRawBytes;
		// entries take little beside their bytes.
		most := uint64(min(segment.MaxRawBytes, len(data)<<15))
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, 5*most+1<<22)
		if err != nil {
			require.True(t, errors.Is(err, base.ErrCorrupt) || errors.Is(err, base.ErrNewerFormat), "%v", err)
			return
		}
		again, _, err := segment.Encode(s.Cluster, s.Shard, s.Start, s.Entries)
		require.NoError(t, err)
		require.Equal(t, s.Entries, decode(t, again).Entries)
	})
}
