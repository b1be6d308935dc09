package worker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/worker"
)

// told is what processes tell of themselves through the documents of the leases.
func (c *cluster) told(leases ...[2]string) []worker.Instance {
	c.t.Helper()
	documents := c.server.Open("test").Documents()
	for _, l := range leases {
		_, err := documents.Create(c.t.Context(), l[0], []byte(l[1]), ttl)
		require.NoError(c.t, err)
	}
	found, err := worker.Instances(c.t.Context(), documents)
	require.NoError(c.t, err)
	return found
}

// folds is an instance that tells which fold version it knows.
func folds(id string, version uint32) worker.Instance {
	return worker.Instance{ID: id, FoldVersion: version}
}

// live keeps an instance's lease until the returned function is called.
func (c *cluster) live(self worker.Instance) (end func()) {
	ctx, stop := c.context()
	done := make(chan struct{})
	go func() {
		c.leases(self.ID).KeepAlive(ctx, self, c.neverLost)
		close(done)
	}()
	c.passUntil(func() bool {
		for _, i := range c.told() {
			if i.ID == self.ID {
				return true
			}
		}
		return false
	}, self.ID+" lives")
	return func() { stop(); <-done }
}

// Given leases of this release, of the one before, of a later one that tells more, and
// one that nobody can read, then each names its holder, and who does not tell what it
// folds is taken for the oldest.
func TestLeasesTellWhoLives(t *testing.T) {
	c := newCluster(t)
	require.Equal(t, []worker.Instance{
		{ID: "before", FoldVersion: 1},
		{ID: "broken", FoldVersion: 1},
		{ID: "later", FoldVersion: 7},
		{ID: "other", FoldVersion: 1},
		{ID: "this", Label: "edge", Host: "h", Since: time.Unix(1, 0).UTC(), FoldVersion: 2},
	}, c.told(
		[2]string{"lease.instance.before", "before"},
		[2]string{"lease.instance.broken", `{"id":"broken`},
		[2]string{"lease.instance.later", `{"id":"later","fold_version":7,"mood":["good"]}`},
		[2]string{"lease.instance.other", `{"id":"somebody","fold_version":9}`},
		[2]string{"lease.instance.this", `{"id":"this","label":"edge","host":"h","since":"1970-01-01T00:00:01Z","fold_version":2}`},
		[2]string{"lease.compact.s00", "this"},
	))
}

// Given an instance that keeps its lease, with a label as long as anyone likes, then
// others see what it tells, within bounds.
func TestAnInstanceDescribesItself(t *testing.T) {
	c := newCluster(t)
	run := c.start()
	self := worker.Instance{ID: "a", Label: strings.Repeat("ü", 10_000), Host: "h", Since: c.clock.Now(), FoldVersion: 2}
	run(func() { c.leases("a").KeepAlive(c.ctx, self, c.neverLost) })
	c.passUntil(func() bool { return len(c.told()) == 1 }, "it lives")
	got := c.told()[0]
	require.LessOrEqual(t, len(got.Label), base.MaxNameBytes)
	require.True(t, strings.HasPrefix(self.Label, got.Label))
	self.Label = got.Label
	require.Equal(t, self, got)
}

// Given leases of jobs, then each is shown with who runs it, and the leases of the
// instances are none.
func TestJobsAreShownByInstance(t *testing.T) {
	c := newCluster(t)
	c.told(
		[2]string{"lease.instance.a", "a"}, [2]string{"lease.table.s00-2", "a"},
		[2]string{"lease.compact.s00", "a"}, [2]string{"lease.compact.s01", "b"},
	)
	jobs, err := worker.Jobs(t.Context(), c.server.Open("test").Documents())
	require.NoError(t, err)
	require.Equal(t, map[string][]string{"a": {"compact.s00", "table.s00-2"}, "b": {"compact.s01"}}, jobs)
}

// Given coordination that does not answer, then who asks is told so.
func TestWhoLivesIsUnknownWhileNobodyAnswers(t *testing.T) {
	c := newCluster(t)
	silent := coord.NewFaulty(c.server.Open("test"), func(coord.Call) coord.Fault { return coord.Fault{Before: base.ErrUnavailable} }).Documents()
	_, err := worker.Instances(t.Context(), silent)
	require.ErrorIs(t, err, base.ErrUnavailable)
	_, err = worker.Jobs(t.Context(), silent)
	require.ErrorIs(t, err, base.ErrUnavailable)
}
