package compacted

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

// One bit of each byte, each place of a bit in turn: a checksum that finds one
// bit of a byte finds the others.
func TestAFlippedBitAnywhereIsRefused(t *testing.T) {
	records := testRecords(0, 24)
	object, meta := writeObject(t, records, Options{RowGroupRows: 15, PageBytes: 512})
	for at := range object {
		object[at] ^= 1 << (at % 8)
		err := readAll(object, meta)
		require.ErrorIs(t, err, base.ErrCorrupt, "byte %d of %d", at, len(object))
		object[at] ^= 1 << (at % 8)
	}
	require.NoError(t, readAll(object, meta))
}

func readAll(object []byte, meta Meta) error {
	r, err := Open(bytes.NewReader(object), int64(len(object)), meta)
	if err != nil {
		return err
	}
	return r.Each(func(*recordbatch.Positioned) error { return nil })
}

func TestATruncatedObjectIsRefused(t *testing.T) {
	object, meta := writeObject(t, testRecords(0, 120), smallGroups)
	for n := range object {
		require.ErrorIs(t, readAll(object[:n], meta), base.ErrCorrupt, "%d of %d bytes", n, len(object))
		require.ErrorIs(t, readAll(object[len(object)-n:], meta), base.ErrCorrupt, "the last %d of %d bytes", n, len(object))
	}
	require.ErrorIs(t, readAll(append(bytes.Clone(object), 0), meta), base.ErrCorrupt)
}

func TestAnObjectThatIsNotTheOneMeantIsRefused(t *testing.T) {
	object, meta := writeObject(t, testRecords(10, 20), Options{})
	other := meta
	other.Cluster[15]++
	require.ErrorIs(t, readAll(object, other), base.ErrForeign)
	for name, change := range map[string]func(*Meta){
		"shard":     func(m *Meta) { m.Shard++ },
		"stream":    func(m *Meta) { m.Log.Stream++ },
		"partition": func(m *Meta) { m.Log.Partition++ },
		"start":     func(m *Meta) { m.Range.Start++ },
		"end":       func(m *Meta) { m.Range.End++ },
	} {
		t.Run(name, func(t *testing.T) {
			want := meta
			change(&want)
			err := readAll(object, want)
			require.ErrorIs(t, err, base.ErrCorrupt)
			require.ErrorContains(t, err, want.String())
		})
	}
}

func TestANewerFormatIsToldFromACorruptOne(t *testing.T) {
	object, meta := writeObject(t, testRecords(0, 5), Options{})

	newerFile := bytes.Replace(object, []byte("lakestream.format\x18\x011"), []byte("lakestream.format\x18\x019"), 1)
	require.NotEqual(t, object, newerFile, "the format version was found in the footer")
	require.ErrorIs(t, readAll(newerFile, meta), base.ErrCorrupt, "before its checksum is mended")
	require.ErrorIs(t, readAll(reseal(newerFile), meta), base.ErrNewerFormat)

	newerBlock := bytes.Clone(object)
	newerBlock[trailerAt(newerBlock)+20] = blockVersion + 1
	require.ErrorIs(t, readAll(newerBlock, meta), base.ErrCorrupt, "before its checksum is mended")
	require.ErrorIs(t, readAll(mendBlock(newerBlock), meta), base.ErrNewerFormat)
}

// trailerAt returns where the checksum block's trailer lies, or -1.
func trailerAt(object []byte) int {
	if len(object) < tailBytes+trailerBytes {
		return -1
	}
	at := int64(len(object)) - tailBytes - trailerBytes - int64(binary.LittleEndian.Uint32(object[len(object)-tailBytes:]))
	if at < 0 {
		return -1
	}
	return int(at)
}

// reseal makes all checksums of an object right again, as someone would who
// wrote a hostile one. What has no block stays as it is.
func reseal(object []byte) []byte {
	out := bytes.Clone(object)
	at := trailerAt(out)
	if at < 0 {
		return out
	}
	count := int64(binary.LittleEndian.Uint32(out[at+12:]))
	start := int64(at) - count*crcBytes
	if start < 0 || count != (start+chunkBytes-1)/chunkBytes {
		return out
	}
	binary.LittleEndian.PutUint64(out[at:], uint64(start))
	for i := range count {
		chunk := out[i*chunkBytes : min(start, (i+1)*chunkBytes)]
		binary.LittleEndian.PutUint32(out[start+i*crcBytes:], crc32.Checksum(chunk, castagnoli))
	}
	binary.LittleEndian.PutUint32(out[at+16:], crc32.Checksum(out[at+trailerBytes:], castagnoli))
	return mendBlock(out)
}

// mendBlock makes the checksum of the block itself right.
func mendBlock(object []byte) []byte {
	at := trailerAt(object)
	start := at - int(binary.LittleEndian.Uint32(object[at+12:]))*crcBytes
	binary.LittleEndian.PutUint32(object[at+24:], crc32.Checksum(object[start:at+24], castagnoli))
	return object
}

func TestForgedChecksumsDoNotMakeABadFileReadable(t *testing.T) {
	records := testRecords(0, 24)
	object, meta := writeObject(t, records, Options{RowGroupRows: 15, PageBytes: 256})
	refused := 0
	for at := range len(object) - tailBytes {
		forged := bytes.Clone(object)
		forged[at] ^= 0x41
		err := readAll(reseal(forged), meta)
		if err != nil {
			require.True(t, errors.Is(err, base.ErrCorrupt) || errors.Is(err, base.ErrForeign) || errors.Is(err, base.ErrNewerFormat),
				"byte %d: %v", at, err)
			refused++
		}
	}
	require.Greater(t, refused, len(object)/4)
}

// brokenReader fails reads that touch a position.
type brokenReader struct {
	io.ReaderAt
	at int64
}

var errUnreachable = base.WithClass(base.ErrUnavailable, errors.New("store unreachable"))

func (b brokenReader) ReadAt(p []byte, off int64) (int, error) {
	if off <= b.at && b.at < off+int64(len(p)) {
		return 0, errUnreachable
	}
	return b.ReaderAt.ReadAt(p, off)
}

func TestAnUnreachableStoreIsNotCorruption(t *testing.T) {
	records := testRecords(0, 2000)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range records {
		records[i].Value = fmt.Appendf(nil, "%x%x%x%x%x", random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64())
	}
	object, meta := writeObject(t, records, Options{RowGroupRows: 600})
	require.Greater(t, len(object), chunkBytes)
	for at := 0; at < len(object); at += 1000 {
		source := brokenReader{bytes.NewReader(object), int64(at)}
		r, err := Open(source, int64(len(object)), meta)
		if err == nil {
			err = r.Each(func(*recordbatch.Positioned) error { return nil })
		}
		require.ErrorIs(t, err, base.ErrUnavailable, "at %d", at)
		require.NotErrorIs(t, err, base.ErrCorrupt, "at %d", at)
	}
}

func TestAScanThatFailedKeepsFailing(t *testing.T) {
	object, meta := writeObject(t, testRecords(0, 300), smallGroups)
	r := openObject(t, object, meta)
	object[10] ^= 1
	s, err := r.ReadFrom(0)
	require.NoError(t, err)
	_, first := s.Next(nil, 10)
	require.ErrorIs(t, first, base.ErrCorrupt)
	require.ErrorContains(t, first, "row group 0, offset 0")
	_, second := s.Next(nil, 10)
	require.Equal(t, first, second)
	s.Close()
	_, third := s.Next(nil, 10)
	require.Equal(t, first, third)
}
