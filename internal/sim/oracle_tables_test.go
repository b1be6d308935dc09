package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// row is the place of a record in a stream.
type row struct {
	partition base.Partition
	offset    base.Offset
}

// tableTruth is what the tables of a stream hold, taken from their files.
type tableTruth struct {
	rows map[row]verdict
	// seen counts the files of each table that were read.
	seen map[verdict]int
	// ends are the end offsets of the main table.
	ends materialization.EndOffsets
}

func (o *oracle) table(id base.StreamID) *tableTruth {
	t := o.tables[id]
	if t == nil {
		t = &tableTruth{rows: make(map[row]verdict), seen: make(map[verdict]int), ends: materialization.EndOffsets{}}
		o.tables[id] = t
	}
	return t
}

// takePrepared reads the files of each accepted range: each of its records must be
// in one of them, or counted as left out.
func (o *oracle) takePrepared(p *commitpb.Prepared, out *shard.Outcome) {
	for n, r := range p.GetRanges() {
		if out.Logs[n].Rejected != shard.Accepted {
			continue
		}
		truth := o.log(out.Logs[n].Log)
		start, end := base.Offset(r.GetStart()), base.Offset(r.GetEnd()) //nolint:gosec // small
		if start != truth.prepared || end > base.Offset(len(truth.records)) {
			o.fail("invariant 6: range [%d, %d) of log %s was prepared after %d of %d", start, end, out.Logs[n].Log, truth.prepared, len(truth.records))
			return
		}
		truth.prepared = end
		want := map[verdict]int{leftOut: int(r.GetFiltered())} //nolint:gosec // small
		for _, f := range r.GetMain() {
			want[inTable] += o.checkFile(f, out.Logs[n].Log, inTable, start, end)
		}
		for _, f := range r.GetDeadLetter() {
			want[deadLetter] += o.checkFile(f, out.Logs[n].Log, deadLetter, start, end)
		}
		for _, record := range truth.records[start:end] {
			want[o.verdictOf(record.Value)]--
		}
		for _, v := range []verdict{inTable, deadLetter, leftOut} {
			if want[v] != 0 {
				o.fail("invariant 6: range [%d, %d) of log %s was prepared with %d too many as %s", start, end, out.Logs[n].Log, want[v], v)
			}
		}
	}
}

// checkFile wants a prepared file to hold records of one range and verdict, and
// returns how many.
func (o *oracle) checkFile(f *commitpb.DataFile, id base.LogID, v verdict, start, end base.Offset) int {
	rows := o.rowsOf(f.GetPath())
	for n, r := range rows {
		switch {
		case r.partition != id.Partition, r.offset < start, r.offset >= end:
			o.fail("invariant 6: file %s of [%d, %d) of log %s holds %v", f.GetPath(), start, end, id, r)
			return 0
		case o.verdictOf(o.log(id).records[r.offset].Value) != v, n > 0 && r.offset <= rows[n-1].offset:
			o.fail("invariant 6: file %s of log %s holds offset %d as %s", f.GetPath(), id, r.offset, v)
			return 0
		}
	}
	if uint64(len(rows)) != f.GetRows() {
		o.fail("invariant 6: file %s holds %d rows, and its record says %d", f.GetPath(), len(rows), f.GetRows())
	}
	return len(rows)
}

// takeMaterialized wants each record that the log counts on to be in the tables.
func (o *oracle) takeMaterialized(p *commitpb.Materialized, out *shard.Outcome) {
	o.checkTables()
	for n := range out.Logs {
		if out.Logs[n].Rejected != shard.Accepted {
			continue
		}
		truth := o.log(out.Logs[n].Log)
		end := base.Offset(p.GetEnd()[n]) //nolint:gosec // small
		if end < truth.materialized || end > truth.prepared {
			o.fail("invariant 6: log %s was materialized to %d after %d, prepared to %d", out.Logs[n].Log, end, truth.materialized, truth.prepared)
			return
		}
		o.requireRows("the log says", out.Logs[n].Log, truth.materialized, end)
		truth.materialized = end
	}
}

// requireRows wants the records [start, end) to be in the tables.
func (o *oracle) requireRows(who string, id base.LogID, start, end base.Offset) {
	t := o.table(id.Stream)
	for at := start; at < end && o.world.broken == nil; at++ {
		want := o.verdictOf(o.log(id).records[at].Value)
		got, ok := t.rows[row{id.Partition, at}]
		if !ok {
			got = leftOut
		}
		if got != want {
			o.fail("invariant 6: %s that log %s is materialized to %d, and offset %d is %s instead of %s", who, id, end, at, got, want)
		}
	}
}

// checkTables reads what was added to the tables: no record may be there twice.
func (o *oracle) checkTables() {
	for _, id := range o.world.streams {
		main, dead := o.tablesOf(id)
		o.checkTable(id, dead, deadLetter)
		o.checkTable(id, main, inTable)
		if o.world.broken == nil {
			o.checkEnds(id, main)
		}
	}
	o.checkPendingFiles()
}

// checkPendingFiles wants the files of ranges that no table holds yet to be there.
func (o *oracle) checkPendingFiles() {
	paths := o.world.tables.Paths()
	for _, st := range o.state.Streams() {
		for _, l := range st.Logs {
			for _, p := range l.Pending() {
				for _, f := range slices.Concat(p.GetMain(), p.GetDeadLetter()) {
					if _, ok := slices.BinarySearch(paths, f.GetPath()); !ok {
						o.fail("invariant 8: file %s of a prepared range of log %s is gone", f.GetPath(), l.ID())
					}
				}
			}
		}
	}
}

func (o *oracle) checkTable(id base.StreamID, ident materialization.Ident, v verdict) {
	t := o.table(id)
	files := o.world.tables.Files(ident)
	if len(files) < t.seen[v] {
		o.fail("invariant 6: table %s lost files", ident)
		return
	}
	for _, f := range files[t.seen[v]:] {
		for _, r := range o.rowsOf(f.Path) {
			if was, ok := t.rows[r]; ok {
				o.fail("invariant 6: offset %d of partition %d is in table %s as %s, and is %s already", r.offset, r.partition, ident, v, was)
				return
			}
			t.rows[r] = v
			o.countRow(v)
		}
	}
	t.seen[v] = len(files)
}

func (o *oracle) countRow(v verdict) {
	if v == inTable {
		o.world.count.tableRows++
		return
	}
	o.world.count.deadRows++
}

// checkEnds wants a table's end offsets to tell the truth about its rows.
func (o *oracle) checkEnds(id base.StreamID, ident materialization.Ident) {
	o.looking = true
	table, err := o.world.tables.Load(o.world.ctx, ident)
	o.looking = false
	if err != nil {
		return // it was not created yet
	}
	ends, err := table.EndOffsets()
	if err != nil {
		o.fail("invariant 6: table %s: %v", ident, err)
		return
	}
	t := o.table(id)
	for p := range o.world.config.partitions {
		partition := base.Partition(p)
		if ends[partition] < t.ends[partition] {
			o.fail("invariant 6: the end of partition %d in table %s went from %d to %d", p, ident, t.ends[partition], ends[partition])
		}
		o.requireRows("the table says", base.LogID{Stream: id, Partition: partition}, t.ends[partition], ends[partition])
	}
	t.ends = ends
}

// checkRows wants the tables at the end to hold each record once and nothing else.
func (o *oracle) checkRows() {
	o.checkTables()
	for _, id := range o.world.streams {
		want := 0
		for p := range o.world.config.partitions {
			log := base.LogID{Stream: id, Partition: base.Partition(p)}
			o.requireRows("all agree", log, 0, base.Offset(len(o.log(log).records)))
			for _, record := range o.log(log).records {
				if o.verdictOf(record.Value) != leftOut {
					want++
				}
			}
		}
		if got := len(o.table(id).rows); got != want {
			o.fail("invariant 6: the tables of stream %d hold %d rows, want %d", id, got, want)
		}
	}
}

// rowsOf reads which records a file holds. A file never changes.
func (o *oracle) rowsOf(path string) []row {
	if rows, ok := o.files[path]; ok {
		return rows
	}
	o.looking = true
	defer func() { o.looking = false }()
	rows, err := readRows(o.world.ctx, o.world.tables, path)
	if err != nil {
		o.fail("invariant 8: file %s: %v", path, err)
	}
	o.files[path] = rows
	return rows
}

func readRows(ctx context.Context, tables materialization.Tables, path string) ([]row, error) {
	file, err := tables.OpenFile(ctx, path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(path, ".txt") {
		return parseText(string(data))
	}
	return parseParquet(ctx, data)
}

func parseText(text string) ([]row, error) {
	var rows []row
	for line := range strings.Lines(text) {
		var r row
		if _, err := fmt.Sscanf(line, "%d %d\n", &r.partition, &r.offset); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func parseParquet(ctx context.Context, data []byte) ([]row, error) {
	table, err := pqarrow.ReadTable(ctx, bytes.NewReader(data), parquet.NewReaderProperties(memory.DefaultAllocator),
		pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	defer table.Release()
	var rows []row
	batches := array.NewTableReader(table, 0)
	defer batches.Release()
	for batches.Next() {
		batch := batches.RecordBatch()
		partitions, offsets := column[*array.Int32](batch, "__partition"), column[*array.Int64](batch, "__offset")
		for n := range int(batch.NumRows()) {
			rows = append(rows, row{base.Partition(partitions.Value(n)), base.Offset(offsets.Value(n))})
		}
	}
	return rows, batches.Err()
}

func column[T arrow.Array](batch arrow.RecordBatch, name string) T {
	return batch.Column(batch.Schema().FieldIndices(name)[0]).(T)
}
