package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// dying is an instance that ends at one of the records that it puts: before the record
// is in the log, or after that and before it learns so.
type dying struct {
	instance

	ctx  context.Context //nolint:containedctx // it is the life of the instance
	died bool
}

// dyingAt returns an instance whose life ends at its nth put from now on.
func (s streams) dyingAt(n int, landed bool) *dying {
	s.t.Helper()
	ctx, end := context.WithCancel(s.t.Context())
	s.t.Cleanup(end)
	d := &dying{ctx: ctx}
	puts := 0
	d.instance = s.instanceOver(coord.NewFaulty(s.server.Open("dying"), func(call coord.Call) coord.Fault {
		if call.Op != coord.OpPut {
			return coord.Fault{}
		}
		puts++
		switch {
		case puts < n:
			return coord.Fault{}
		case puts == n && landed:
			d.died = true
			end()
			return coord.Fault{After: base.ErrUnknown}
		default: // whatever else it would do never happens
			d.died = true
			end()
			return coord.Fault{Before: base.ErrUnavailable}
		}
	}))
	return d
}

// eachDeath runs do in an instance that dies, once for each record that do puts and
// once for each side of that record, and then wants the rest of the cluster to converge.
func eachDeath(t *testing.T, prepare func(streams), do func(context.Context, instance) error, converge func(*testing.T, streams)) {
	t.Helper()
	deaths := 0
	for n := 1; ; n++ {
		survived := false
		for _, landed := range []bool{false, true} {
			t.Run(fmt.Sprintf("at record %d, landed %v", n, landed), func(t *testing.T) {
				s := newStreams(t)
				prepare(s)
				d := s.dyingAt(n, landed)
				err := do(d.ctx, d.instance)
				if survived = !d.died; survived {
					require.NoError(t, err)
				} else {
					deaths++
				}
				converge(t, s)
			})
		}
		if survived {
			break
		}
	}
	require.NotZero(t, deaths)
}

// Behaviours 25 and 26. Given an instance that dies anywhere in a create, then others see
// the stream whole or not at all, and whoever creates it again gets one whole stream.
func TestACreateThatDiesAnywhereIsSeenWholeOrNotAtAll(t *testing.T) {
	cfg := catalog.StreamConfig{Partitions: 3, Properties: map[string]string{"owner": "sales"}}
	eachDeath(t, func(streams) {},
		func(ctx context.Context, in instance) error {
			_, err := in.Create(ctx, name("shop/orders"), cfg)
			return err
		},
		func(t *testing.T, s streams) {
			in := s.instance()
			st, err := in.Load(name("shop/orders"))
			if !errors.Is(err, base.ErrNotFound) {
				require.NoError(t, err)
				require.Equal(t, 3, st.Partitions)
				require.Equal(t, cfg.Properties, st.Properties)
			}
			again, err := in.Create(t.Context(), name("shop/orders"), cfg)
			require.NoError(t, err)
			require.Equal(t, 3, again.Partitions)
			if st.ID != 0 {
				require.Equal(t, st, again, "what was there is adopted")
			}
			_, err = in.Create(t.Context(), name("shop/orders"), catalog.StreamConfig{Partitions: 2})
			require.ErrorIs(t, err, catalog.ErrAlreadyExists)
			require.Equal(t, []catalog.Stream{again}, s.instance().List())
			require.Len(t, in.Namespaces(), 1)
		})
}

// Behaviours 25 and 26. Given an instance that dies anywhere in a growth, then others see
// the old partitions or all new ones, and a growth that is asked for again is done.
func TestAGrowthThatDiesAnywhereIsSeenWholeOrNotAtAll(t *testing.T) {
	eachDeath(t,
		func(s streams) { s.instance().ensure(t, "shop/orders", catalog.StreamConfig{Partitions: 2}) },
		func(ctx context.Context, in instance) error {
			st, err := in.Load(name("shop/orders"))
			if err != nil {
				return err
			}
			_, err = in.IncreasePartitions(ctx, st, 9)
			return err
		},
		func(t *testing.T, s streams) {
			in := s.instance()
			st := in.load(t, "shop/orders")
			require.Contains(t, []int{2, 9}, st.Partitions)
			grown, err := in.IncreasePartitions(t.Context(), st, 9)
			require.NoError(t, err)
			require.Equal(t, 9, grown.Partitions)
			in.write(t, grown, 0, 8)
			_, _, head := in.bounds(grown, 8)
			require.EqualValues(t, 10, head)
		})
}

// Behaviour 21. Given streams that come and go, in whichever instance, then no shard
// gives an id a second time: not for another stream, not for what has the same name in
// another namespace, and not after everything of the first was purged.
func TestNoIDIsGivenASecondTime(t *testing.T) {
	s := newStreams(t)
	type identity struct {
		shard base.Shard
		id    base.StreamID
	}
	given := make(map[identity]string)
	for round := range 5 {
		in := s.instance()
		for i := range 6 {
			stream := fmt.Sprintf("shop%d/s%d", round, i)
			st, err := in.Create(t.Context(), name(stream), catalog.StreamConfig{})
			require.NoError(t, err)
			is := identity{st.Shard, st.ID}
			require.Empty(t, given[is], "%s has the id of another", stream)
			given[is] = stream
			in.write(t, st, 0)
		}
		for _, st := range in.List() {
			dropped, err := in.Drop(t.Context(), st.Name, round%2 == 0)
			require.NoError(t, err)
			require.True(t, dropped)
		}
	}
	require.Len(t, given, 30)
}
