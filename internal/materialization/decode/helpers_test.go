package decode_test

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/materialization/decode"
	"github.com/lakestream-go/lakestream/internal/materialization/decode/decodetest"
	"github.com/lakestream-go/lakestream/internal/materialization/document"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

// fataler is what testing and rapid have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// schemaOf is a new table's schema after payloads, those that parse.
func schemaOf(limits schema.Limits, payloads ...[]byte) *iceberg.Schema {
	in := schema.NewInference(limits)
	for _, payload := range payloads {
		var doc document.Document
		if doc.Parse(payload) == nil {
			in.Add(&doc)
		}
	}
	return schema.New(schema.DefaultSystemColumns(), in)
}

func landedBy(payloads ...string) *iceberg.Schema {
	all := make([][]byte, len(payloads))
	for i, p := range payloads {
		all[i] = []byte(p)
	}
	return schemaOf(schema.Limits{}, all...)
}

func decoderOf(t fataler, landed *iceberg.Schema, limits schema.Limits) *decode.Decoder {
	t.Helper()
	d, err := decode.New(landed, schema.DefaultSystemColumns(), limits)
	if err != nil {
		t.Fatalf("compiling: %v", err)
	}
	return d
}

func record(offset base.Offset, payload []byte) *recordbatch.Positioned {
	return &recordbatch.Positioned{
		Record: recordbatch.Record{Timestamp: 1_750_000_000_123, Value: payload},
		Offset: offset,
	}
}

// rowsOf decodes payloads, all of which land.
func rowsOf(t testing.TB, d *decode.Decoder, payloads ...string) []decodetest.Row {
	t.Helper()
	for i, payload := range payloads {
		verdict := d.Append(3, record(base.Offset(i), []byte(payload)))
		require.True(t, verdict.Landed(), "%s: %s", payload, verdict.Reason)
	}
	return takeRows(t, d)
}

func takeRows(t testing.TB, d *decode.Decoder) []decodetest.Row {
	t.Helper()
	batch := d.Batch()
	defer batch.Release()
	return decodetest.Rows(t, batch)
}

// user leaves the columns that payloads and overflow fill.
func user(row decodetest.Row) decodetest.Row {
	rest := decodetest.Row{}
	for name, value := range row {
		if !schema.IsSystem(name) || name == schema.OverflowColumn {
			rest[name] = value
		}
	}
	return rest
}
