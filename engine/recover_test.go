package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/memtables"
	"github.com/lakestream-go/lakestream/internal/materialization/tablestest"
)

// Dead letters are committed before the rows of their range. When coordination is
// lost in between, an offset below the end of either table must not be given again.
func TestARecoveryGoesByTheTableThatIsFurthest(t *testing.T) {
	tables := memtables.New()
	create := func(name string, ends materialization.EndOffsets) materialization.Ident {
		ident := materialization.Ident{Namespace: "shop", Name: name}
		_, err := tables.Create(t.Context(), ident, tablestest.Schema(), map[string]string{materialization.PropertyEndOffsets: ends.String()})
		require.NoError(t, err)
		return ident
	}
	main := create("orders", materialization.EndOffsets{0: 10, 1: 20})
	dead := create("orders_dlt", materialization.EndOffsets{1: 25, 2: 3})
	absent := materialization.Ident{Namespace: "shop", Name: "events"}
	for _, order := range [][]materialization.Ident{{main, dead, absent}, {absent, dead, main}} {
		ends, err := furthestEnds(t.Context(), tables, order...)
		require.NoError(t, err)
		require.Equal(t, map[base.Partition]base.Offset{0: 10, 1: 25, 2: 3}, ends)
	}
	none, err := furthestEnds(t.Context(), tables, absent)
	require.NoError(t, err)
	require.Empty(t, none)

	edited := materialization.Ident{Namespace: "shop", Name: "edited"}
	_, err = tables.Create(t.Context(), edited, tablestest.Schema(), map[string]string{materialization.PropertyEndOffsets: "0:x"})
	require.NoError(t, err)
	_, err = furthestEnds(t.Context(), tables, main, edited)
	require.ErrorIs(t, err, base.ErrCorrupt)
	require.ErrorContains(t, err, "shop.edited")
}
