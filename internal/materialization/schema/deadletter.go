package schema

import "github.com/apache/iceberg-go"

// Names of the columns of a dead-letter table besides the system columns
// __partition, __offset and __timestamp.
const (
	// CodeColumn says in one word what was wrong: a Code.
	CodeColumn = "code"
	// ReasonColumn says it in a sentence.
	ReasonColumn = "reason"
	// DeadKeyColumn, DeadPayloadColumn and DeadHeadersColumn are the record,
	// byte for byte. A null payload is a tombstone.
	DeadKeyColumn     = "key"
	DeadPayloadColumn = "payload"
	DeadHeadersColumn = "headers"
	// FailedAtColumn is when the record was decoded, timestamptz.
	FailedAtColumn = "failed_at"
)

// Code is what was wrong with a record that became no row.
type Code string

// The codes.
const (
	// CodeTombstone: a record without a payload. An appended row could not
	// tell it from an empty one, and would lose the key.
	CodeTombstone Code = "tombstone"
	// CodeInvalidJSON: the payload is not one JSON value.
	CodeInvalidJSON Code = "invalid_json"
	// CodeInvalidUTF8: the payload is not UTF-8.
	CodeInvalidUTF8 Code = "invalid_utf8"
	// CodeTooDeep: the payload nests deeper than document.MaxDepth.
	CodeTooDeep Code = "too_deep"
	// CodeTooLarge: the payload holds more than document.MaxNodes values.
	CodeTooLarge Code = "too_large"
)

// DeadLetter returns the schema of every dead-letter table. It does not evolve
// with the payloads.
func DeadLetter() *iceberg.Schema {
	p := iceberg.PrimitiveTypes
	ids := &idSource{}
	return iceberg.NewSchema(0, ids.assign([]iceberg.NestedField{
		{Name: PartitionColumn, Type: p.Int32, Required: true},
		{Name: OffsetColumn, Type: p.Int64, Required: true},
		{Name: TimestampColumn, Type: p.TimestampTz},
		{Name: CodeColumn, Type: p.String, Required: true},
		{Name: ReasonColumn, Type: p.String, Required: true},
		{Name: DeadKeyColumn, Type: p.Binary},
		{Name: DeadPayloadColumn, Type: p.Binary},
		{Name: DeadHeadersColumn, Type: headersType()},
		{Name: FailedAtColumn, Type: p.TimestampTz, Required: true},
	})...)
}

// Fits reports whether a landed schema has each column of another with the same
// type, in any order and among any others.
func Fits(landed, want *iceberg.Schema) bool {
	for _, field := range want.Fields() {
		found, err := checkSystem(landed.Fields(), field)
		if !found || err != nil {
			return false
		}
	}
	return true
}
