package catalog

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

const (
	// DefaultCommitInterval is how often a table gets a snapshot.
	DefaultCommitInterval = 10 * time.Second
	// MinCommitInterval keeps a table's metadata from growing without bound.
	MinCommitInterval = time.Second
	// DeadLetterSuffix ends the name of a table's dead-letter table.
	DeadLetterSuffix = "_dlt"
)

// System columns that a table may have.
const (
	ColumnPartition = "partition"
	ColumnOffset    = "offset"
	ColumnTimestamp = "timestamp"
	ColumnKey       = "key"
	ColumnHeaders   = "headers"
)

// TablePolicy says how a stream becomes a table. A nil or empty field is unset:
// it keeps what the stream has, or the default.
type TablePolicy struct {
	// Enabled switches the table on or off; on by default.
	Enabled *bool
	// Namespace and Name are the table's; by default the stream's, with dots
	// replaced by underscores.
	Namespace, Name string
	// CommitInterval is the time between snapshots.
	CommitInterval time.Duration
	// SystemColumns are the columns that every row carries beside its own.
	SystemColumns []string
}

// Table is a policy with every field resolved.
type Table struct {
	Enabled        bool
	Namespace      string
	Name           string
	CommitInterval time.Duration
	SystemColumns  []string
}

// String renders the table's full name.
func (t Table) String() string { return t.Namespace + "." + t.Name }

// DeadLetterName returns the name of the table that takes what cannot be a row.
func (t Table) DeadLetterName() string { return t.Name + DeadLetterSuffix }

// overlaps reports whether one of the table and its dead-letter table is one of the
// other's.
func (t Table) overlaps(o Table) bool {
	return t.Namespace == o.Namespace &&
		(t.Name == o.Name || t.Name == o.DeadLetterName() || t.DeadLetterName() == o.Name)
}

// Validate checks each field and names the one that is wrong.
func (p TablePolicy) Validate() error {
	if p.CommitInterval != 0 && p.CommitInterval < MinCommitInterval {
		return fmt.Errorf("table commit interval %s: want at least %s: %w", p.CommitInterval, MinCommitInterval, base.ErrInvalid)
	}
	allowed := []string{ColumnPartition, ColumnOffset, ColumnTimestamp, ColumnKey, ColumnHeaders}
	for i, c := range p.SystemColumns {
		if !slices.Contains(allowed, c) {
			return fmt.Errorf("table system column %q: want one of %s: %w", c, strings.Join(allowed, ", "), base.ErrInvalid)
		}
		if slices.Contains(p.SystemColumns[:i], c) {
			return fmt.Errorf("table system column %q is named twice: %w", c, base.ErrInvalid)
		}
	}
	if len(p.SystemColumns) > 0 && (!slices.Contains(p.SystemColumns, ColumnPartition) || !slices.Contains(p.SystemColumns, ColumnOffset)) {
		return fmt.Errorf("table system columns %v: partition and offset are needed to prove that each record is there once: %w",
			p.SystemColumns, base.ErrInvalid)
	}
	for _, part := range []string{p.Namespace, p.Name} {
		if part == "" {
			continue
		}
		if err := base.CheckName(part); err != nil {
			return fmt.Errorf("table name: %w", err)
		}
	}
	return nil
}

// Resolve fills a stream's policy with the defaults.
func Resolve(name base.StreamName, p *commitpb.TablePolicy) Table {
	t := Table{
		Enabled:        p == nil || p.Enabled == nil || p.GetEnabled(),
		Namespace:      tableName(name.Namespace),
		Name:           tableName(name.Name),
		CommitInterval: DefaultCommitInterval,
		SystemColumns:  []string{ColumnPartition, ColumnOffset, ColumnTimestamp},
	}
	if p.GetNamespace() != "" {
		t.Namespace = tableName(p.GetNamespace())
	}
	if p.GetName() != "" {
		t.Name = tableName(p.GetName())
	}
	if p.GetCommitIntervalMs() > 0 {
		t.CommitInterval = time.Duration(p.GetCommitIntervalMs()) * time.Millisecond
	}
	if len(p.GetSystemColumns()) > 0 {
		t.SystemColumns = p.GetSystemColumns()
	}
	return t
}

// tableName makes a name that every catalog takes: dots separate levels there.
func tableName(name string) string { return strings.ReplaceAll(name, ".", "_") }

// merge returns old with the fields that p sets, and whether anything changed.
func (p TablePolicy) merge(old *commitpb.TablePolicy) (*commitpb.TablePolicy, bool) {
	merged := &commitpb.TablePolicy{
		Enabled: old.Enabled, Namespace: old.Namespace, Name: old.Name, //nolint:protogetter // unset must stay unset
		CommitIntervalMs: old.CommitIntervalMs, SystemColumns: old.GetSystemColumns(), //nolint:protogetter // likewise
	}
	changed := false
	if p.Enabled != nil && (old.Enabled == nil || old.GetEnabled() != *p.Enabled) { //nolint:protogetter // likewise
		merged.Enabled, changed = p.Enabled, true
	}
	if p.Namespace != "" && p.Namespace != old.GetNamespace() {
		merged.Namespace, changed = &p.Namespace, true
	}
	if p.Name != "" && p.Name != old.GetName() {
		merged.Name, changed = &p.Name, true
	}
	if ms := p.CommitInterval.Milliseconds(); ms != 0 && ms != old.GetCommitIntervalMs() {
		merged.CommitIntervalMs, changed = &ms, true
	}
	if len(p.SystemColumns) > 0 && !slices.Equal(p.SystemColumns, old.GetSystemColumns()) {
		merged.SystemColumns, changed = p.SystemColumns, true
	}
	return merged, changed
}
