package catalog

import (
	"cmp"
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

// Over returns the policy with what it leaves unset taken from another.
func (p TablePolicy) Over(under TablePolicy) TablePolicy {
	if p.Enabled == nil {
		p.Enabled = under.Enabled
	}
	p.Namespace = cmp.Or(p.Namespace, under.Namespace)
	p.Name = cmp.Or(p.Name, under.Name)
	p.CommitInterval = cmp.Or(p.CommitInterval, under.CommitInterval)
	if len(p.SystemColumns) == 0 {
		p.SystemColumns = under.SystemColumns
	}
	return p
}

// Resolve merges the policies of a stream, of its namespace and of the cluster, in
// this order, field by field, and fills what none of them sets with the defaults.
// Any of them may be nil or left out. A name counts on the stream alone: streams
// that share one would fill one table.
func Resolve(name base.StreamName, levels ...*commitpb.TablePolicy) Table {
	var p TablePolicy
	for i, level := range levels {
		under := policyOf(level)
		if i > 0 {
			under.Name = ""
		}
		p = p.Over(under)
	}
	on := true
	p = p.Over(TablePolicy{
		Enabled: &on, Namespace: name.Namespace, Name: name.Name, CommitInterval: DefaultCommitInterval,
		SystemColumns: []string{ColumnPartition, ColumnOffset, ColumnTimestamp},
	})
	return Table{
		Enabled: *p.Enabled, Namespace: tableName(p.Namespace), Name: tableName(p.Name),
		CommitInterval: p.CommitInterval, SystemColumns: p.SystemColumns,
	}
}

// tableName makes a name that every catalog takes: dots separate levels there.
func tableName(name string) string { return strings.ReplaceAll(name, ".", "_") }

// policyOf reads a policy, nil as one that sets nothing.
func policyOf(p *commitpb.TablePolicy) TablePolicy {
	if p == nil {
		return TablePolicy{}
	}
	return TablePolicy{
		Enabled: p.Enabled, Namespace: p.GetNamespace(), Name: p.GetName(), //nolint:protogetter // unset must stay unset
		CommitInterval: max(0, duration(p.GetCommitIntervalMs())), SystemColumns: p.GetSystemColumns(),
	}
}

// encode is the inverse of policyOf.
func (p TablePolicy) encode() *commitpb.TablePolicy {
	encoded := &commitpb.TablePolicy{Enabled: p.Enabled, SystemColumns: p.SystemColumns}
	if p.Namespace != "" {
		encoded.Namespace = &p.Namespace
	}
	if p.Name != "" {
		encoded.Name = &p.Name
	}
	if ms := p.CommitInterval.Milliseconds(); ms != 0 {
		encoded.CommitIntervalMs = &ms
	}
	return encoded
}
