package commit_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/materialization/icebergtables"
	"github.com/lakestream-go/lakestream/internal/materialization/memtables"
	"github.com/lakestream-go/lakestream/internal/materialization/tablestest"
)

const owner = "00000000000000000000000000000001/s00/7"

var (
	events  = materialization.Ident{Namespace: "web", Name: "events"}
	letters = materialization.Ident{Namespace: "web", Name: "events_dlt"}
)

// clock is a clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time // guarded by mu
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After jumps to the time that is waited for: a test has nothing else to do.
func (c *clock) After(d time.Duration) <-chan time.Time {
	c.advance(d)
	fired := make(chan time.Time, 1)
	fired <- c.Now()
	return fired
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// entropy is endless and the same in each run.
type entropy struct{ n byte }

func (e *entropy) Read(p []byte) (int, error) {
	for i := range p {
		e.n++
		p[i] = e.n
	}
	return len(p), nil
}

// fold is the log side as the committer sees it: it accepts prepared ranges and
// Materialized records by the rules of the fold.
type fold struct {
	mu   sync.Mutex
	view commit.View // guarded by mu
	// before and after fail the next Publish without or with its effect.
	before, after error
	published     int
}

func (f *fold) View(context.Context) (commit.View, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	view := f.view
	view.Logs = slices.Clone(view.Logs)
	for i := range view.Logs {
		view.Logs[i].Prepared = slices.Clone(view.Logs[i].Prepared)
	}
	return view, nil
}

func (f *fold) Publish(_ context.Context, progress commit.Materialized) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.before; err != nil {
		f.before = nil
		return err
	}
	for i := range f.view.Logs {
		log := &f.view.Logs[i]
		end, moved := progress.Ends[log.Partition]
		if !moved || end <= log.Materialized {
			continue
		}
		n := slices.IndexFunc(log.Prepared, func(r commit.Range) bool { return r.Range.End == end })
		if n < 0 {
			return fmt.Errorf("offset %d of partition %d ends no prepared range", end, log.Partition)
		}
		log.Materialized, log.Prepared = end, log.Prepared[n+1:]
	}
	f.view.Main, f.view.DeadLetter = progress.Main, progress.DeadLetter
	f.published++
	err := f.after
	f.after = nil
	return err
}

// world is a stream, its tables and whoever commits to them.
type world struct {
	catalog tablestest.Catalog
	admin   tablestest.Admin
	mem     *memtables.Tables // nil over iceberg
	clock   *clock
	entropy *entropy
	fold    *fold
	heads   map[base.Partition]base.Offset
	dead    map[base.Partition]map[base.Offset]bool
	files   int
}

func memWorld(ctx context.Context, t tablestest.TestingT) *world {
	mem := memtables.New()
	w := newWorld(ctx, t, mem, mem)
	w.mem = mem
	return w
}

func newWorld(ctx context.Context, t tablestest.TestingT, catalog tablestest.Catalog, admin tablestest.Admin) *world {
	w := &world{
		catalog: catalog, admin: admin, entropy: &entropy{},
		clock: &clock{now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)},
		fold:  &fold{view: commit.View{Owner: owner}},
		heads: map[base.Partition]base.Offset{},
		dead:  map[base.Partition]map[base.Offset]bool{},
	}
	for _, ident := range []materialization.Ident{events, letters} {
		w.create(ctx, t, ident)
	}
	return w
}

func (w *world) create(ctx context.Context, t tablestest.TestingT, ident materialization.Ident) {
	t.Helper()
	role := commit.RoleMain
	if ident == letters {
		role = commit.RoleDeadLetter
	}
	_, err := w.catalog.Create(ctx, ident, tablestest.Schema(), map[string]string{
		materialization.PropertyOwner: owner,
		materialization.PropertyRole:  role,
	})
	require.NoError(t, err)
}

// overEach tells a story over the catalog in memory and over Iceberg on SQLite.
func overEach(t *testing.T, tell func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { tell(t, memWorld(t.Context(), t)) })
	t.Run("sqlite", func(t *testing.T) { tell(t, sqliteWorld(t)) })
}

func sqliteWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	path, warehouse := filepath.Join(dir, "catalog.db"), "file://"+filepath.Join(dir, "warehouse")
	tables, err := icebergtables.Open(t.Context(), icebergtables.Config{Type: "sql", URI: path, Warehouse: warehouse})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tables.Close()) })
	return newWorld(t.Context(), t, tables, tablestest.OpenSQLAdmin(t, path, warehouse))
}

// prepare makes the next range of a partition: good rows, then dead letters.
func (w *world) prepare(ctx context.Context, t tablestest.TestingT, partition base.Partition, good, bad int) commit.Range {
	t.Helper()
	start := w.heads[partition]
	middle := start + base.Offset(good)
	end := middle + base.Offset(bad)
	w.heads[partition] = end
	main, dead := w.load(ctx, t, events), w.load(ctx, t, letters)
	r := commit.Range{Accepted: base.MillisOf(w.clock.Now()), Prepared: materialization.Prepared{
		Log: base.LogID{Stream: 7, Partition: partition}, Range: base.OffsetRange{Start: start, End: end},
		TableUUID: main.UUID, SchemaID: main.Schema.ID,
	}}
	if good > 0 {
		r.Main = w.write(ctx, t, main, tablestest.RangeRows(partition, base.OffsetRange{Start: start, End: middle}))
	}
	if bad > 0 {
		r.DeadLetterUUID = dead.UUID
		r.DeadLetter = w.write(ctx, t, dead, tablestest.RangeRows(partition, base.OffsetRange{Start: middle, End: end}))
		for offset := middle; offset < end; offset++ {
			w.note(partition, offset)
		}
	}
	w.accept(r)
	return r
}

func (w *world) note(partition base.Partition, offset base.Offset) {
	if w.dead[partition] == nil {
		w.dead[partition] = map[base.Offset]bool{}
	}
	w.dead[partition][offset] = true
}

// accept makes the fold know a range.
func (w *world) accept(r commit.Range) {
	w.fold.mu.Lock()
	defer w.fold.mu.Unlock()
	logs := &w.fold.view.Logs
	i := slices.IndexFunc(*logs, func(l commit.Log) bool { return l.Partition == r.Log.Partition })
	if i < 0 {
		i = len(*logs)
		*logs = append(*logs, commit.Log{Partition: r.Log.Partition, Start: r.Range.Start, Materialized: r.Range.Start})
	}
	(*logs)[i].Prepared = append((*logs)[i].Prepared, r)
}

func (w *world) write(ctx context.Context, t tablestest.TestingT, table *materialization.Table, rows []tablestest.Row) []materialization.DataFile {
	w.files++
	return []materialization.DataFile{tablestest.Write(ctx, t, w.catalog, table, fmt.Sprintf("f%d", w.files), rows)}
}

func (w *world) load(ctx context.Context, t tablestest.TestingT, ident materialization.Ident) *materialization.Table {
	t.Helper()
	var table *materialization.Table
	var err error
	w.unfaulted(func() { table, err = w.catalog.Load(ctx, ident) })
	require.NoError(t, err)
	return table
}

// unfaulted runs what a test does itself without the faults that it injects.
func (w *world) unfaulted(do func()) {
	if w.mem == nil {
		do()
		return
	}
	hook := w.mem.Hook()
	w.mem.SetHook(nil)
	do()
	w.mem.SetHook(hook)
}

// committer returns a committer that remembers nothing, as after a restart.
func (w *world) committer(t tablestest.TestingT, change ...func(*commit.Options)) *commit.Committer {
	t.Helper()
	options := commit.Options{
		Table: events, DeadLetter: letters, Tables: w.catalog, Source: w.fold,
		Clock: w.clock, Entropy: w.entropy,
	}
	for _, do := range change {
		do(&options)
	}
	c, err := commit.New(options)
	require.NoError(t, err)
	return c
}

// settle steps a committer until it has nothing to do, or is suspended.
func (w *world) settle(ctx context.Context, t tablestest.TestingT, c *commit.Committer) commit.Status {
	t.Helper()
	for range 1000 {
		status, err := c.Step(ctx)
		require.NoError(t, ctx.Err())
		if status.State == commit.StateSuspended || (err == nil && status.Pending == 0) {
			return status
		}
		w.clock.advance(status.Delay)
	}
	require.FailNow(t, "the committer does not settle")
	return commit.Status{}
}

// requireExactlyOnce checks that the tables together hold each prepared record
// once: good ones in the main table, bad ones among the dead letters.
func (w *world) requireExactlyOnce(ctx context.Context, t tablestest.TestingT) {
	t.Helper()
	var good, bad []tablestest.Row
	for partition, head := range w.heads {
		for _, row := range tablestest.RangeRows(partition, base.OffsetRange{End: head}) {
			if w.dead[partition][row.Offset] {
				bad = append(bad, row)
			} else {
				good = append(good, row)
			}
		}
	}
	w.unfaulted(func() {
		requireRows(t, good, tablestest.Rows(ctx, t, w.catalog, w.load(ctx, t, events)))
		requireRows(t, bad, tablestest.Rows(ctx, t, w.catalog, w.load(ctx, t, letters)))
	})
	ends, err := w.load(ctx, t, events).EndOffsets()
	require.NoError(t, err)
	heads := materialization.EndOffsets(maps.Clone(w.heads))
	require.Equal(t, heads.String(), ends.String())
	for _, log := range w.fold.view.Logs {
		require.Equal(t, w.heads[log.Partition], log.Materialized)
	}
}

func requireRows(t tablestest.TestingT, want, got []tablestest.Row) {
	t.Helper()
	order := func(a, b tablestest.Row) int {
		return bytes.Compare(fmt.Appendf(nil, "%06d/%012d", a.Partition, a.Offset), fmt.Appendf(nil, "%06d/%012d", b.Partition, b.Offset))
	}
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	require.Equal(t, want, got)
}
