package verify

import (
	"errors"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Report is the outcome of a proof, for people and as JSON.
type Report struct {
	// OK is true when the tables hold each offset exactly once up to the
	// materialized end.
	OK                   bool   `json:"ok"`
	Table                string `json:"table"`
	TableUUID            string `json:"table_uuid"`
	SnapshotID           int64  `json:"snapshot_id"`
	DeadLetterTable      string `json:"dead_letter_table,omitempty"`
	DeadLetterSnapshotID int64  `json:"dead_letter_snapshot_id,omitempty"`
	// Rest counts the records that are in the log and not materialized yet.
	Rest       int64             `json:"rest"`
	Partitions []PartitionReport `json:"partitions"`
	// Findings are examples of what is wrong, at most ten of each kind.
	Findings []Finding `json:"findings"`

	// Logs are what was to be proven, by partition.
	Logs []Log `json:"-"`
	// Stray counts rows of no partition of the stream, or without a position.
	Stray int64 `json:"stray"`
}

// PartitionReport is what the tables hold of one partition.
type PartitionReport struct {
	Partition    base.Partition `json:"partition"`
	Start        base.Offset    `json:"start"`
	Materialized base.Offset    `json:"materialized"`
	// Rows and DeadLetters count the rows with an offset in the proven range.
	Rows        int64 `json:"rows"`
	DeadLetters int64 `json:"dead_letters"`
	// LeftOut counts what was left out on purpose, as the log states it.
	LeftOut int64 `json:"left_out"`
	// Missing counts the offsets that nothing accounts for. It is below zero
	// when offsets stated as left out are in the tables after all.
	Missing    int64 `json:"missing"`
	Duplicated int64 `json:"duplicated"`
	// Unexpected counts rows below the start, or from the table's own end on.
	Unexpected int64 `json:"unexpected"`
	// Committed counts rows between the materialized end and the table's own
	// end: their commit landed, and the record that publishes it is under way.
	Committed int64 `json:"committed"`
	Rest      int64 `json:"rest"`
}

// FindingKind names what is wrong.
type FindingKind string

// The kinds of findings.
const (
	// FindingMissing: no row has an offset of the range. Where offsets were
	// left out on purpose they are among these, since only their number is known.
	FindingMissing    FindingKind = "missing"
	FindingDuplicated FindingKind = "duplicated"
	FindingUnexpected FindingKind = "unexpected"
	FindingStray      FindingKind = "stray"
)

// Finding is an example of what is wrong: the offsets [Start, End).
type Finding struct {
	Kind      FindingKind    `json:"kind"`
	Table     string         `json:"table,omitempty"`
	Partition base.Partition `json:"partition"`
	Start     base.Offset    `json:"start"`
	End       base.Offset    `json:"end"`
}

// ErrNotProven says that the tables do not hold each record exactly once.
var ErrNotProven = errors.New("not exactly once")

// ErrIncomplete says that a part of the log is not materialized yet.
var ErrIncomplete = errors.New("not all of the log is materialized")

// Proven returns nil when the tables hold each offset exactly once up to the
// materialized end, else an error that is ErrNotProven.
func (r *Report) Proven() error {
	if r.OK {
		return nil
	}
	var missing, duplicated, unexpected int64
	for _, p := range r.Partitions {
		missing += max(p.Missing, -p.Missing)
		duplicated += p.Duplicated
		unexpected += p.Unexpected
	}
	return fmt.Errorf("%w: table %s: %d missing, %d duplicated, %d unexpected, %d stray",
		ErrNotProven, r.Table, missing, duplicated, unexpected, r.Stray)
}

// Complete returns what Proven returns, or ErrIncomplete when a rest of the log
// remains to be materialized.
func (r *Report) Complete() error {
	if err := r.Proven(); err != nil {
		return err
	}
	if r.Rest > 0 {
		return fmt.Errorf("%w: table %s: %d records remain", ErrIncomplete, r.Table, r.Rest)
	}
	return nil
}

// conclude accounts for what was left out on purpose, and drops the examples of
// offsets that it explains.
func (r *Report) conclude() {
	r.OK = r.Stray == 0
	explained := map[base.Partition]bool{}
	for i := range r.Partitions {
		p := &r.Partitions[i]
		p.Missing -= p.LeftOut
		r.Rest += p.Rest
		r.OK = r.OK && p.Missing == 0 && p.Duplicated == 0 && p.Unexpected == 0
		explained[p.Partition] = p.Missing <= 0
	}
	kept := r.Findings[:0]
	for _, finding := range r.Findings {
		if finding.Kind != FindingMissing || !explained[finding.Partition] {
			kept = append(kept, finding)
		}
	}
	r.Findings = kept
}

// example adds a finding while there is room for its kind.
func (r *Report) example(finding Finding) {
	n := 0
	for _, known := range r.Findings {
		if known.Kind == finding.Kind {
			n++
		}
	}
	if n < maxExamples {
		r.Findings = append(r.Findings, finding)
	}
}
