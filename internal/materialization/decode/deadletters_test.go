package decode_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/materialization/decode"
	"github.com/lakestream-go/lakestream/internal/materialization/decode/decodetest"
	"github.com/lakestream-go/lakestream/internal/materialization/schema"
)

func TestADeadLetterKeepsTheRecordByteForByte(t *testing.T) {
	extended := iceberg.NewSchema(2, append(schema.DeadLetter().Fields(),
		iceberg.NestedField{ID: 90, Name: "note", Type: iceberg.PrimitiveTypes.String})...)
	d, err := decode.NewDeadLetters(extended)
	require.NoError(t, err)
	d.Append(2, &recordbatch.Positioned{Offset: 7, Record: recordbatch.Record{
		Timestamp: 5, Key: []byte("k\x00"), Value: []byte("\xff{"), Headers: []recordbatch.Header{{Key: "h", Value: []byte("v")}},
	}}, decode.Verdict{Code: schema.CodeInvalidUTF8, Reason: "because"}, 1000)
	d.Append(2, &recordbatch.Positioned{Offset: 8}, decode.Verdict{Code: schema.CodeTombstone, Reason: "nothing there"}, 1001)
	require.Equal(t, 2, d.Rows())

	batch := d.Batch()
	defer batch.Release()
	require.Equal(t, []decodetest.Row{
		{
			"__partition": int32(2), "__offset": int64(7), "__timestamp": arrow.Timestamp(5000),
			"code": "invalid_utf8", "reason": "because", "key": []byte("k\x00"), "payload": []byte("\xff{"),
			"headers": []any{row{"key": "h", "value": []byte("v")}}, "failed_at": arrow.Timestamp(1_000_000),
		},
		{
			"__partition": int32(2), "__offset": int64(8), "__timestamp": arrow.Timestamp(0),
			"code": "tombstone", "reason": "nothing there", "failed_at": arrow.Timestamp(1_001_000),
		},
	}, decodetest.Rows(t, batch))
}

func TestADeadLetterTableOfAnotherShapeIsRefused(t *testing.T) {
	fields := schema.DeadLetter().Fields()
	_, err := decode.NewDeadLetters(iceberg.NewSchema(0, fields[1:]...))
	require.ErrorIs(t, err, base.ErrInvalid)
	require.ErrorContains(t, err, "column __partition: no such column")
}
