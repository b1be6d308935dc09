package prepare_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/decode/decodetest"
	"github.com/lakestream-go/lakestream/internal/materialization/memtables"
	"github.com/lakestream-go/lakestream/internal/materialization/prepare"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheFirstRangeCreatesTheTable(t *testing.T) {
	tables := memtables.New()
	prepared := prepareAll(t, tables, request(texts(`{"id":1}`, `{"id":2,"name":"x"}`)))

	table := landed(t, tables)
	require.Equal(t, owner, table.Properties[materialization.PropertyOwner])
	require.Equal(t, "main", table.Properties[materialization.PropertyRole])
	require.Equal(t, base.LogID{Stream: 7}, prepared[0].Log)
	require.Equal(t, base.OffsetRange{Start: 0, End: 2}, prepared[0].Range)
	require.Equal(t, table.UUID, prepared[0].TableUUID)
	require.Equal(t, table.Schema.ID, prepared[0].SchemaID)
	require.Empty(t, prepared[0].DeadLetterUUID)
	require.Len(t, prepared[0].Main, 1)
	require.Equal(t, table.Location+"/data/s00-4-11-7-0-0-2-1.parquet", prepared[0].Main[0].Path)
	require.Equal(t, []decodetest.Row{
		{"__partition": int32(0), "__offset": int64(0), "__timestamp": arrow.Timestamp(recordTime * 1000), "id": int64(1)},
		{"__partition": int32(0), "__offset": int64(1), "__timestamp": arrow.Timestamp(recordTime * 1000), "id": int64(2), "name": "x"},
	}, readRows(t, tables, prepared[0].Main))
}

func TestEachSourceHasItsOwnFiles(t *testing.T) {
	tables := memtables.New()
	prepared := prepareAll(t, tables, requestFor(
		source(0, 5, texts(`{"a":1}`, `{"a":2}`)...), source(1, 0), source(2, 0, texts(`{"b":"x"}`)...)))

	require.Len(t, readRows(t, tables, prepared[0].Main), 2)
	require.Empty(t, prepared[1].Main, "an empty range has no files")
	require.Equal(t, base.OffsetRange{}, prepared[1].Range)
	last := readRows(t, tables, prepared[2].Main)
	require.Equal(t, int32(2), last[0]["__partition"])
	require.Equal(t, "x", last[0]["b"])
	require.Len(t, tables.Paths(), 2)
}

func TestASettledSchemaCostsOneReadOfTheRecords(t *testing.T) {
	tables := memtables.New()
	prepareAll(t, tables, request(texts(`{"a":1}`)))
	before := landed(t, tables)
	counted := &countedSource{records: source(0, 1, texts(`{"a":2}`, `{"A":"conflict"}`, `{"b":null}`)...)}

	prepareAll(t, tables, requestFor(prepare.Source{Log: counted.records.Log, Records: counted}))

	require.Equal(t, 1, counted.reads)
	require.Equal(t, before.Schema.ID, landed(t, tables).Schema.ID)
}

type countedSource struct {
	records prepare.Source
	reads   int
}

func (c *countedSource) Range() base.OffsetRange { return c.records.Records.Range() }

func (c *countedSource) Each(yield func(*positioned) error) error {
	c.reads++
	return c.records.Records.Each(yield)
}

// Given a landed table, when a later source brings new fields, then the table
// evolves first and every file is written under what landed.
func TestNewFieldsEvolveTheTableFirst(t *testing.T) {
	tables := memtables.New()
	first := prepareAll(t, tables, request(texts(`{"a":1}`)))
	r := requestFor(source(0, 1, texts(`{"a":2}`)...), source(1, 0, texts(`{"a":3}`, `{"o":{"b":[1.5]}}`)...))
	r.FilePrefix = "s00-4-12"
	second := prepareAll(t, tables, r)

	table := landed(t, tables)
	require.NotEqual(t, first[0].SchemaID, table.Schema.ID)
	for _, p := range second {
		require.Equal(t, table.Schema.ID, p.SchemaID)
	}
	rows := readRows(t, tables, second[1].Main)
	require.Equal(t, decodetest.Row{"b": []any{1.5}}, rows[1]["o"])
	require.Len(t, tables.Paths(), 3, "what the first pass wrote is gone")
	require.NotContains(t, second[0].Main[0].Path, "-1.parquet", "no name comes twice")
}

// Field evolution scenarios: what was null or empty at first gets its column
// when there is something to put into it, and the row lands.
func TestWhatWasEmptyGetsItsColumnLater(t *testing.T) {
	tables := memtables.New()
	for i, step := range []struct{ payload, column string }{
		{`{"parent":null,"a":{}}`, ""},
		{`{"parent":{"x":1}}`, "parent.x"},
		{`{"parent":{"x":2,"y":{"z":true}}}`, "parent.y.z"},
		{`{"a":{"b":1}}`, "a.b"},
	} {
		r := requestFor(source(0, base.Offset(i), []byte(step.payload)))
		r.FilePrefix = fmt.Sprintf("s00-4-%d", i)
		prepared := prepareAll(t, tables, r)
		rows := readRows(t, tables, prepared[0].Main)
		require.Len(t, rows, 1)
		decodetest.RequireSame(t, []byte(step.payload), rows[0])
		require.NotContains(t, rows[0], "__overflow")
		if step.column != "" {
			_, found := landed(t, tables).Schema.FindFieldByName(step.column)
			require.True(t, found, step.column)
		}
	}
}

// Given one malformed record among a thousand, 999 land and one is a dead letter.
func TestABadRecordStallsNothing(t *testing.T) {
	payloads := make([][]byte, 1000)
	for i := range payloads {
		payloads[i] = fmt.Appendf(nil, `{"n":%d}`, i)
	}
	payloads[500] = []byte(`{"n":500`)
	payloads[501] = nil
	tables := memtables.New()
	prepared := prepareAll(t, tables, request(payloads))

	require.Len(t, readRows(t, tables, prepared[0].Main), 998)
	dead, err := tables.Load(t.Context(), deadTable)
	require.NoError(t, err)
	require.Equal(t, dead.UUID, prepared[0].DeadLetterUUID)
	require.Equal(t, "dead-letter", dead.Properties[materialization.PropertyRole])
	require.Equal(t, []decodetest.Row{
		{
			"__partition": int32(0), "__offset": int64(500), "__timestamp": arrow.Timestamp(recordTime * 1000),
			"code": "invalid_json", "key": []byte("k"), "payload": []byte(`{"n":500`), "failed_at": arrow.Timestamp(failedAt.UnixMicro()),
			"reason": "not valid JSON: byte 8: the payload ends where a comma or the end of the object should be",
		},
		{
			"__partition": int32(0), "__offset": int64(501), "__timestamp": arrow.Timestamp(recordTime * 1000),
			"code": "tombstone", "key": []byte("k"), "failed_at": arrow.Timestamp(failedAt.UnixMicro()),
			"reason": "the record has no payload",
		},
	}, readRows(t, tables, prepared[0].DeadLetter))
}

func TestARangeOfDeadLettersAloneHasNoMainFile(t *testing.T) {
	tables := memtables.New()
	prepared := prepareAll(t, tables, requestFor(source(0, 0, nil, nil), source(1, 0, texts(`{"a":1}`)...)))
	require.Empty(t, prepared[0].Main)
	require.Len(t, prepared[0].DeadLetter, 1)
	require.Empty(t, prepared[1].DeadLetterUUID)
	landed(t, tables)
}

// Given an instance that lands its columns between our read and our change, we
// union again with what it made.
func TestTwoInstancesEvolveOneTableAtOnce(t *testing.T) {
	for story, fault := range map[string]memtables.Fault{
		"the other is first":  {},
		"our reply is lost":   {After: base.ErrUnknown},
		"our request is lost": {Before: base.ErrUnknown},
	} {
		t.Run(story, func(t *testing.T) {
			tables := memtables.New()
			prepareAll(t, tables, request(texts(`{"a":1}`)))
			once := fault
			once.Meanwhile = func() {
				other := requestFor(source(1, 0, texts(`{"theirs":1}`)...))
				other.FilePrefix = "s00-9-1"
				prepareAll(t, tables, other)
			}
			tables.SetHook(failOnce(tables, memtables.OpEvolve, once))
			ours := requestFor(source(0, 1, texts(`{"ours":1}`)...))
			ours.FilePrefix = "s00-4-12"
			prepared := prepareAll(t, tables, ours)

			table := landed(t, tables)
			for _, column := range []string{"a", "theirs", "ours"} {
				_, found := table.Schema.FindFieldByName(column)
				require.True(t, found, column)
			}
			require.Equal(t, table.Schema.ID, prepared[0].SchemaID)
			require.Equal(t, int64(1), readRows(t, tables, prepared[0].Main)[0]["ours"])
		})
	}
}

// failOnce makes the first operation of a kind meet a fault.
func failOnce(tables *memtables.Tables, kind memtables.OpKind, fault memtables.Fault) memtables.Hook {
	return func(op memtables.Op) memtables.Fault {
		if op.Kind != kind {
			return memtables.Fault{}
		}
		tables.SetHook(nil)
		return fault
	}
}

func TestTwoInstancesCreateOneTableAtOnce(t *testing.T) {
	for story, fault := range map[string]memtables.Fault{
		"the other is first":  {},
		"our reply is lost":   {After: base.ErrUnknown},
		"our request is lost": {Before: base.ErrUnknown},
	} {
		t.Run(story, func(t *testing.T) {
			tables := memtables.New()
			fault.Meanwhile = func() {
				other := requestFor(source(1, 0, texts(`{"v":"text","theirs":1}`)...))
				other.FilePrefix = "s00-9-1"
				prepareAll(t, tables, other)
			}
			tables.SetHook(failOnce(tables, memtables.OpCreate, fault))
			prepared := prepareAll(t, tables, request(texts(`{"v":1,"ours":2}`)))

			row := readRows(t, tables, prepared[0].Main)[0]
			require.JSONEq(t, `{"v":1}`, row["__overflow"].(string), "the type that landed first counts")
			require.Equal(t, int64(2), row["ours"])
		})
	}
}

func TestAnUncertainCreateOfATableThatIsNotThereIsTheCallersToRepeat(t *testing.T) {
	tables := memtables.New()
	tables.SetHook(failOnce(tables, memtables.OpCreate, memtables.Fault{Before: base.ErrUnknown}))
	_, err := prepare.Prepare(t.Context(), tables, request(texts(`{"a":1}`)))
	require.ErrorIs(t, err, base.ErrUnknown)
	require.ErrorContains(t, err, "creating table shop.orders")
}

func TestATableThatIsReplacedMeanwhileIsAConflict(t *testing.T) {
	tables := memtables.New()
	prepareAll(t, tables, request(texts(`{"a":1}`)))
	tables.SetHook(failOnce(tables, memtables.OpEvolve, memtables.Fault{Meanwhile: func() {
		require.NoError(t, tables.Drop(mainTable))
		again := request(texts(`{"c":1}`))
		again.FilePrefix = "s00-9-1"
		prepareAll(t, tables, again)
	}}))
	r := request(texts(`{"b":1}`))
	r.FilePrefix = "s00-4-12"
	_, err := prepare.Prepare(t.Context(), tables, r)
	require.ErrorIs(t, err, base.ErrConflict)
	require.ErrorContains(t, err, "dropped and created again")
}

func TestATableOfSomeoneElseIsRefused(t *testing.T) {
	one := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.Int64})
	for story, test := range map[string]struct {
		ident      materialization.Ident
		properties map[string]string
		rows       bool
		want       error
		text       string
	}{
		"rows of no stream":  {mainTable, nil, true, base.ErrForeign, "holds rows that no stream wrote: choose another table name"},
		"another stream's":   {mainTable, map[string]string{materialization.PropertyOwner: "cluster/s00/6"}, false, base.ErrForeign, "is filled by another stream (cluster/s00/6, not cluster/s00/7)"},
		"our dead letters":   {mainTable, map[string]string{materialization.PropertyOwner: owner, materialization.PropertyRole: "dead-letter"}, false, base.ErrInvalid, "is the stream's dead-letter table"},
		"dead letters' name": {deadTable, nil, false, base.ErrInvalid, "lacks columns of a dead-letter table"},
	} {
		t.Run(story, func(t *testing.T) {
			tables := memtables.New()
			_, err := tables.Create(t.Context(), test.ident, one, test.properties)
			require.NoError(t, err)
			if test.rows {
				require.NoError(t, tables.Append(test.ident, materialization.DataFile{Path: "x", Rows: 1}))
			}
			_, err = prepare.Prepare(t.Context(), tables, request([][]byte{[]byte(`{"a":1}`), nil}))
			require.ErrorIs(t, err, test.want)
			require.ErrorContains(t, err, test.text)
			require.Empty(t, tables.Paths(), "no file stays")
		})
	}
}

func TestAnEmptyTableOfAnotherIsFilled(t *testing.T) {
	tables := memtables.New()
	_, err := tables.Create(t.Context(), mainTable,
		iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "ID", Type: iceberg.PrimitiveTypes.Int32}), nil)
	require.NoError(t, err)
	prepared := prepareAll(t, tables, request(texts(`{"id":1,"x":true}`)))
	row := readRows(t, tables, prepared[0].Main)[0]
	require.Equal(t, int32(1), row["ID"])
	require.Equal(t, true, row["x"])
	require.Equal(t, int64(0), row["__offset"])
}

func TestASourceThatFailsLeavesNoFile(t *testing.T) {
	boom := errors.New("boom")
	broken := source(1, 0, texts(`{"a":1}`, `{"a":2}`)...)
	broken.Records.(*records).fail = boom
	gap := source(1, 0, texts(`{"a":1}`, `{"a":2}`)...)
	gap.Records.(*records).all[1].Offset = 2
	short := source(1, 0, texts(`{"a":1}`)...)
	short.Records.(*records).offsets.End = 2
	for _, test := range []struct {
		bad  prepare.Source
		want error
		text string
	}{
		{broken, boom, "boom"},
		{gap, base.ErrCorrupt, "the source yields offset 2 where 1 should be"},
		{short, base.ErrCorrupt, "the source ends at offset 1"},
	} {
		tables := memtables.New()
		prepareAll(t, tables, request(texts(`{"a":0}`)))
		require.Len(t, tables.Paths(), 1)
		r := requestFor(source(0, 1, texts(`{"a":1}`)...), test.bad)
		r.FilePrefix = "s00-4-12"
		_, err := prepare.Prepare(t.Context(), tables, r)
		require.ErrorIs(t, err, test.want)
		require.ErrorContains(t, err, test.text)
		require.Len(t, tables.Paths(), 1, "the first source's file is gone too")
	}
}

func TestACancelledCallLeavesNoFile(t *testing.T) {
	tables := memtables.New()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := prepare.Prepare(ctx, tables, request(texts(`{"a":1}`)))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, tables.Paths())
}

func TestAnIncompleteRequestIsRefused(t *testing.T) {
	for want, change := range map[string]func(*prepare.Request){
		"an owner":                    func(r *prepare.Request) { r.Owner = "" },
		"names for both tables":       func(r *prepare.Request) { r.DeadLetter.Name = "" },
		"different names":             func(r *prepare.Request) { r.DeadLetter = r.Main },
		"a file prefix without slash": func(r *prepare.Request) { r.FilePrefix = "a/b" },
		"a clock":                     func(r *prepare.Request) { r.Clock = nil },
	} {
		r := request(texts(`{}`))
		change(&r)
		_, err := prepare.Prepare(t.Context(), memtables.New(), r)
		require.ErrorIs(t, err, base.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}

func TestALargeRangeBecomesSeveralFiles(t *testing.T) {
	payloads := make([][]byte, 3000)
	for i := range payloads {
		payloads[i] = fmt.Appendf(nil, `{"n":%d,"text":"%x"}`, i, uint64(i)*0x9E3779B97F4A7C15)
	}
	r := request(payloads)
	r.TargetFileBytes, r.BatchBytes = 4<<10, 8<<10
	tables := memtables.New()
	prepared := prepareAll(t, tables, r)
	require.Greater(t, len(prepared[0].Main), 2)
	for i, row := range readRows(t, tables, prepared[0].Main) {
		require.Equal(t, int64(i), row["n"])
	}
}

// Given one landed schema, the same records make the same rows.
func TestRowsAreTheSameEachTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		payloads := decodetest.Payloads(6).Draw(rt, "payloads")
		tables := memtables.New()
		first := prepareAll(t, tables, request(payloads))
		again := request(payloads)
		again.FilePrefix = "s00-5-1"
		second := prepareAll(t, tables, again)
		require.Equal(t, first[0].SchemaID, second[0].SchemaID)
		rows := readRows(t, tables, first[0].Main)
		require.Equal(t, rows, readRows(t, tables, second[0].Main))
		require.Len(t, rows, len(payloads))
		for i, row := range rows {
			decodetest.RequireSame(t, payloads[i], row)
		}
	})
}

var update = flag.Bool("update", false, "write the golden files anew")

// The transcript shows, for payloads that users have, what table they get.
func TestTranscript(t *testing.T) {
	input, err := os.ReadFile(filepath.Join("testdata", "transcript.ndjson"))
	require.NoError(t, err)
	tables := memtables.New()
	prepared := prepareAll(t, tables, request(texts(strings.Split(strings.TrimSpace(string(input)), "\n")...)))

	var got strings.Builder
	for _, field := range landed(t, tables).Schema.Fields() {
		fmt.Fprintf(&got, "%s: %s\n", field.Name, field.Type)
	}
	for _, row := range readRows(t, tables, prepared[0].Main) {
		delete(row, "__partition")
		delete(row, "__timestamp")
		text, err := json.Marshal(row)
		require.NoError(t, err)
		fmt.Fprintf(&got, "%s\n", text)
	}
	for _, row := range readRows(t, tables, prepared[0].DeadLetter) {
		fmt.Fprintf(&got, "dead letter %d: %s: %s\n", row["__offset"], row["code"], row["reason"])
	}
	golden := filepath.Join("testdata", "transcript.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}
