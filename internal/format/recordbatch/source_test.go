package recordbatch_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
)

func entriesAt(start base.Offset, parts ...[]recordbatch.Record) []recordbatch.Entry {
	var entries []recordbatch.Entry
	for i, part := range parts {
		entry := entryOf(compressions[i%2], part)
		entry.Base = start
		entry.Revision = base.Revision(i + 1)
		start += base.Offset(len(part))
		entries = append(entries, entry)
	}
	return entries
}

func TestSourceReadsEntriesAsOneRange(t *testing.T) {
	parts := [][]recordbatch.Record{numbered(700, 120), varied(), numbered(3, 9)}
	source, err := recordbatch.NewSource(entriesAt(40, parts...))
	require.NoError(t, err)
	require.Equal(t, base.OffsetRange{Start: 40, End: 748}, source.Range())
	for range 2 { // it can be read again
		var got []recordbatch.Positioned
		require.NoError(t, source.Each(func(p *recordbatch.Positioned) error {
			got = append(got, clone(p))
			return nil
		}))
		requireSame(t, slices.Concat(parts...), got, 40)
		require.EqualValues(t, 1, got[699].Revision)
		require.EqualValues(t, 2, got[700].Revision)
		require.EqualValues(t, 3, got[705].Revision)
	}
}

func TestSourceStopsAtTheFirstError(t *testing.T) {
	source, err := recordbatch.NewSource(entriesAt(0, varied(), varied()))
	require.NoError(t, err)
	stop := errors.New("enough")
	seen := 0
	require.ErrorIs(t, source.Each(func(*recordbatch.Positioned) error {
		seen++
		if seen == 7 {
			return stop
		}
		return nil
	}), stop)
	require.Equal(t, 7, seen)
}

func TestSourceReportsDamage(t *testing.T) {
	entries := entriesAt(0, varied(), varied())
	entries[1].Data = entries[1].Data[:len(entries[1].Data)-1]
	source, err := recordbatch.NewSource(entries)
	require.NoError(t, err)
	require.ErrorIs(t, source.Each(func(*recordbatch.Positioned) error { return nil }), base.ErrCorrupt)
}

func TestSourceRefusesEntriesThatDoNotFollow(t *testing.T) {
	gap := entriesAt(0, varied(), varied())
	gap[1].Base++
	empty := entriesAt(0, varied())
	empty[0].Records = 0
	for name, entries := range map[string][]recordbatch.Entry{"none": nil, "gap": gap, "empty entry": empty} {
		t.Run(name, func(t *testing.T) {
			_, err := recordbatch.NewSource(entries)
			require.ErrorIs(t, err, base.ErrInvalid)
		})
	}
}
