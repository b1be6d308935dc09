package checkpoint_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/checkpoint"
)

var update = flag.Bool("update", false, "write the golden files again")

var header = checkpoint.Header{
	Cluster: base.ClusterID{0xc1, 15: 0x02}, Shard: 3, Revision: 1 << 40, Time: -5,
	Chain: base.Hash{1}, State: base.Hash{2}, Record: base.Hash{3, 31: 4},
}

// table is a section as a test sees it: columns of uint64 or of string.
type table struct {
	id      checkpoint.SectionID
	kinds   []checkpoint.Kind
	numbers [][]uint64
	texts   [][]string
	rows    int
}

func (s *table) write(e *checkpoint.Encoder) {
	e.Section(s.id, s.kinds...)
	for row := range s.rows {
		for c, kind := range s.kinds {
			if kind == checkpoint.Numbers {
				e.Number(s.numbers[c][row])
			} else {
				e.Text(s.texts[c][row])
			}
		}
	}
}

func (s *table) requireIn(t require.TestingT, got *checkpoint.Section) {
	require.Equal(t, s.id, got.ID)
	require.EqualValues(t, s.rows, got.Rows)
	rows, err := got.Read(s.kinds...)
	require.NoError(t, err)
	for row := range s.rows {
		for c, kind := range s.kinds {
			if kind == checkpoint.Numbers {
				require.Equal(t, s.numbers[c][row], rows.Number())
			} else {
				require.Equal(t, s.texts[c][row], rows.Text())
			}
		}
	}
	require.NoError(t, rows.Close())
}

func encode(t require.TestingT, tables ...*table) []byte {
	e := checkpoint.NewEncoder(header)
	for _, s := range tables {
		s.write(e)
	}
	data, err := e.Finish()
	require.NoError(t, err)
	return data
}

func drawTable(t *rapid.T) *table {
	s := &table{
		id:   checkpoint.SectionID(rapid.Uint16().Draw(t, "id")),
		rows: rapid.IntRange(0, 20).Draw(t, "rows"),
	}
	for range rapid.IntRange(1, 5).Draw(t, "columns") {
		kind := rapid.SampledFrom([]checkpoint.Kind{checkpoint.Numbers, checkpoint.Texts}).Draw(t, "kind")
		s.kinds = append(s.kinds, kind)
		s.numbers = append(s.numbers, rapid.SliceOfN(rapid.Uint64(), s.rows, s.rows).Draw(t, "numbers"))
		s.texts = append(s.texts, rapid.SliceOfN(rapid.String(), s.rows, s.rows).Draw(t, "texts"))
	}
	return s
}

func TestEveryTableComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tables []*table
		for range rapid.IntRange(0, 4).Draw(t, "sections") {
			tables = append(tables, drawTable(t))
		}
		data := encode(t, tables...)
		require.Equal(t, data, encode(t, tables...), "the same state gives the same bytes")
		c, err := checkpoint.Open(data)
		require.NoError(t, err)
		require.Equal(t, header, c.Header)
		require.Len(t, c.Sections, len(tables))
		for i, s := range tables {
			s.requireIn(t, &c.Sections[i])
		}
	})
}

// many is large enough for several chunks a column.
func many(rows int) *table {
	s := &table{id: 7, kinds: []checkpoint.Kind{checkpoint.Numbers, checkpoint.Texts}, numbers: make([][]uint64, 2), texts: make([][]string, 2), rows: rows}
	for i := range rows {
		s.numbers[0] = append(s.numbers[0], uint64(i)*math.MaxUint64/7)
		s.texts[1] = append(s.texts[1], strings.Repeat("x", i%100))
	}
	return s
}

func TestAColumnOfManyChunksComesBack(t *testing.T) {
	s := many(60_000)
	s.texts[1][1234] = strings.Repeat("long", checkpoint.MaxValueBytes/4)
	data := encode(t, s)
	c, err := checkpoint.Open(data)
	require.NoError(t, err)
	require.Greater(t, c.Sections[0].RawBytes, int64(3<<20))
	s.requireIn(t, &c.Sections[0])
}

func TestTheEncoderRefusesWhatCouldNotBeRead(t *testing.T) {
	for name, fill := range map[string]func(e *checkpoint.Encoder){
		"a value before any section": func(e *checkpoint.Encoder) { e.Number(1) },
		"a value of another kind":    func(e *checkpoint.Encoder) { e.Section(1, checkpoint.Texts); e.Number(1) },
		"half a row":                 func(e *checkpoint.Encoder) { e.Section(1, checkpoint.Numbers, checkpoint.Numbers); e.Number(1) },
		"no column":                  func(e *checkpoint.Encoder) { e.Section(1) },
		"a giant": func(e *checkpoint.Encoder) {
			e.Section(1, checkpoint.Texts)
			e.Text(strings.Repeat("x", checkpoint.MaxValueBytes+1))
		},
	} {
		e := checkpoint.NewEncoder(header)
		fill(e)
		_, err := e.Finish()
		require.ErrorIs(t, err, base.ErrInvalid, name)
	}
}

func TestAReaderThatExpectsOtherColumnsIsTold(t *testing.T) {
	c, err := checkpoint.Open(encode(t, many(3)))
	require.NoError(t, err)
	s := &c.Sections[0]
	_, err = s.Read(checkpoint.Numbers)
	require.ErrorIs(t, err, base.ErrNewerFormat, "a column that is not known")
	_, err = s.Read(checkpoint.Numbers, checkpoint.Texts, checkpoint.Numbers)
	require.ErrorIs(t, err, base.ErrCorrupt)
	_, err = s.Read(checkpoint.Texts, checkpoint.Texts)
	require.ErrorIs(t, err, base.ErrCorrupt)

	rows, err := s.Read(checkpoint.Numbers, checkpoint.Texts)
	require.NoError(t, err)
	rows.Number()
	require.ErrorIs(t, rows.Close(), base.ErrCorrupt, "values that nobody read")

	rows, err = s.Read(checkpoint.Numbers, checkpoint.Texts)
	require.NoError(t, err)
	for range 4 {
		rows.Number()
		_ = rows.Text()
	}
	require.True(t, rows.Failed())
	require.ErrorIs(t, rows.Close(), base.ErrCorrupt, "more rows than there are")
}

// Every flipped bit is noticed, wherever it lies.
func TestDamageIsNoticed(t *testing.T) {
	data := encode(t, many(50))
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= 0x10
		_, err := checkpoint.Open(damaged)
		require.ErrorIs(t, err, base.ErrCorrupt, "byte %d", i)
	}
	for _, length := range []int{0, 4, 163, len(data) - 1} {
		_, err := checkpoint.Open(data[:length])
		require.ErrorIs(t, err, base.ErrCorrupt, "%d bytes", length)
	}
}

// seal puts the checksum under bytes that lie.
func seal(data []byte) []byte {
	body := data[:len(data)-4]
	return binary.BigEndian.AppendUint32(bytes.Clone(body), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

func TestANewerVersionIsNotTakenForDamage(t *testing.T) {
	data := encode(t, many(5))
	data[5]++
	_, err := checkpoint.Open(seal(data))
	require.ErrorIs(t, err, base.ErrNewerFormat)
	require.ErrorContains(t, err, "upgrade")
	_, err = checkpoint.Open(seal(append(data[:20], 0, 0, 0, 0)))
	require.ErrorIs(t, err, base.ErrNewerFormat, "whatever its length")
}

func TestAnObjectThatLiesUnderItsChecksumIsRefused(t *testing.T) {
	const section, column, chunk = 160, 176, 184
	for name, lie := range map[string]func(data []byte){
		"version 0":         func(data []byte) { data[5] = 0 },
		"another length":    func(data []byte) { data[143]++ },
		"more sections":     func(data []byte) { data[147]++ },
		"fewer sections":    func(data []byte) { data[147]-- },
		"many sections":     func(data []byte) { data[144] = 1 },
		"a reserved byte":   func(data []byte) { data[150] = 1 },
		"no columns":        func(data []byte) { data[section+3] = 0 },
		"more columns":      func(data []byte) { data[section+3]++ },
		"many rows":         func(data []byte) { data[section+8] = 1 },
		"rows beyond bytes": func(data []byte) { data[section+13] = 1 },
		"an unknown kind":   func(data []byte) { data[column+3] = 9 },
		"more chunks":       func(data []byte) { data[column+7]++ },
		"a longer chunk":    func(data []byte) { data[chunk+7]++ },
		"an empty chunk":    func(data []byte) { data[chunk+2], data[chunk+3] = 0, 0 },
	} {
		data := encode(t, many(5))
		lie(data)
		_, err := checkpoint.Open(seal(data))
		require.ErrorIs(t, err, base.ErrCorrupt, name)
	}
}

// The bytes depend on the zstd library; what must never change is that an object
// written once is read the same for ever.
func TestTheGoldenCheckpointIsReadForEver(t *testing.T) {
	path := filepath.Join("testdata", "v1.checkpoint")
	s := many(300)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, encode(t, s), 0o600))
	}
	golden, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, checkpoint.Is(golden))
	c, err := checkpoint.Open(golden)
	require.NoError(t, err)
	require.Equal(t, header, c.Header)
	s.requireIn(t, &c.Sections[0])
}

// readAll reads every value of every section, whatever the columns are, and returns
// how many bytes that allocated.
func readAll(c *checkpoint.Checkpoint) (allocated uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range c.Sections {
		err = readSection(&c.Sections[i])
		if err != nil {
			break
		}
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

func readSection(s *checkpoint.Section) error {
	for _, kinds := range [][]checkpoint.Kind{
		{checkpoint.Numbers}, {checkpoint.Texts}, {checkpoint.Numbers, checkpoint.Texts},
	} {
		rows, err := s.Read(kinds...)
		if err != nil {
			continue
		}
		for row := uint64(0); row < s.Rows && !rows.Failed(); row++ {
			for _, kind := range kinds {
				if kind == checkpoint.Numbers {
					rows.Number()
				} else {
					_ = rows.Text()
				}
			}
		}
		return rows.Close()
	}
	return nil
}

// FuzzOpen seals what it is given, so that it gets past the checksum.
func FuzzOpen(f *testing.F) {
	f.Add(encode(f))
	f.Add(encode(f, many(40)))
	f.Add(encode(f, many(3), &table{id: 1, kinds: []checkpoint.Kind{checkpoint.Numbers}, numbers: [][]uint64{{5, 5, 9}}, rows: 3}))
	f.Add([]byte("LSCP"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= 10 {
			data = seal(data)
		}
		c, err := checkpoint.Open(data)
		if err != nil {
			if !bytes.Contains([]byte(err.Error()), []byte("newer")) {
				require.ErrorIs(t, err, base.ErrCorrupt)
			}
			return
		}
		var raw int64
		for _, s := range c.Sections {
			raw += s.RawBytes
		}
		allocated, err := readAll(c)
		// A chunk is allocated as large as it claims to be, once a column, but only
		// where a frame of its length could hold so much.
		require.LessOrEqual(t, allocated, uint64(4*raw+1<<23))
		if err != nil {
			require.ErrorIs(t, err, base.ErrCorrupt)
		}
	})
}

// A million entries of an index: what loading takes.
func BenchmarkAMillionRows(b *testing.B) {
	const rows = 1_000_000
	build := func() []byte {
		e := checkpoint.NewEncoder(header)
		e.Section(1, checkpoint.Numbers, checkpoint.Numbers, checkpoint.Numbers, checkpoint.Numbers)
		for i := range uint64(rows) {
			e.Number(i * 100)
			e.Number(100)
			e.Number(i / 8)
			e.Number(i * 7919 % 100_000)
		}
		data, err := e.Finish()
		require.NoError(b, err)
		return data
	}
	data := build()
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			build()
		}
		b.ReportMetric(float64(len(data))/rows, "bytes/row")
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			c, err := checkpoint.Open(data)
			require.NoError(b, err)
			r, err := c.Sections[0].Read(checkpoint.Numbers, checkpoint.Numbers, checkpoint.Numbers, checkpoint.Numbers)
			require.NoError(b, err)
			for range 4 * rows {
				r.Number()
			}
			require.NoError(b, r.Close())
		}
	})
}
