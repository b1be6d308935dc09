package catalog

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// DefaultWaitForTables is the longest that records are kept only because a table
// lacks them.
const DefaultWaitForTables = 168 * time.Hour

// Unlimited is the time or the number of bytes that keeps everything.
const Unlimited = -1

// Retention says what the logs of a stream keep. A nil field is unset: it keeps
// what the stream has, or inherits.
type Retention struct {
	// Time is how old a record may get; negative keeps all, 0 keeps none.
	Time *time.Duration
	// Bytes is what each log keeps at least; negative keeps all, 0 keeps none.
	Bytes *int64
	// WaitForTables is the longest that records are kept only because a table
	// lacks them.
	WaitForTables *time.Duration
	// WaitForGroups keeps what a consumer group has not read yet.
	WaitForGroups *bool
}

// LogRetention is a retention with every field resolved.
type LogRetention struct {
	// Time and Bytes bound what a log keeps; negative is without a bound.
	Time  time.Duration
	Bytes int64
	// WaitForTables is how much longer than that records wait for a table.
	WaitForTables time.Duration
	WaitForGroups bool
}

// ResolveRetention merges what a stream, its namespace and the cluster say, in this
// order, field by field, and fills what none of them sets with the defaults. Any of
// them may be nil.
func ResolveRetention(stream, namespace, cluster *commitpb.Retention) LogRetention {
	r := retentionOf(stream).Over(retentionOf(namespace)).Over(retentionOf(cluster))
	resolved := LogRetention{Time: Unlimited, Bytes: Unlimited, WaitForTables: DefaultWaitForTables}
	if r.Time != nil {
		resolved.Time = *r.Time
	}
	if r.Bytes != nil {
		resolved.Bytes = max(*r.Bytes, Unlimited)
	}
	if r.WaitForTables != nil {
		resolved.WaitForTables = max(0, *r.WaitForTables)
	}
	if r.WaitForGroups != nil {
		resolved.WaitForGroups = *r.WaitForGroups
	}
	return resolved
}

// Over returns the retention with what it leaves unset taken from another.
func (r Retention) Over(under Retention) Retention {
	return Retention{
		Time: cmp.Or(r.Time, under.Time), Bytes: cmp.Or(r.Bytes, under.Bytes),
		WaitForTables: cmp.Or(r.WaitForTables, under.WaitForTables), WaitForGroups: cmp.Or(r.WaitForGroups, under.WaitForGroups),
	}
}

// retentionOf reads a retention, nil as one that sets nothing.
func retentionOf(r *commitpb.Retention) Retention {
	if r == nil {
		return Retention{}
	}
	return Retention{
		Time: mapped(r.TimeMs, duration), Bytes: r.Bytes, //nolint:protogetter // unset must stay unset
		WaitForTables: mapped(r.WaitForTablesMs, duration), WaitForGroups: r.WaitForGroups, //nolint:protogetter // likewise
	}
}

// encode is the inverse of retentionOf.
func (r Retention) encode() *commitpb.Retention {
	return &commitpb.Retention{
		TimeMs: mapped(r.Time, millis), Bytes: mapped(r.Bytes, func(n int64) int64 { return max(n, Unlimited) }),
		WaitForTablesMs: mapped(r.WaitForTables, millis), WaitForGroups: r.WaitForGroups,
	}
}

// mapped returns what a function makes of a value, and nil of none.
func mapped[A, B any](value *A, fn func(A) B) *B {
	if value == nil {
		return nil
	}
	made := fn(*value)
	return &made
}

// duration turns milliseconds into a duration, the longest one where they are
// more than it can hold.
func duration(ms int64) time.Duration {
	if ms < 0 {
		return Unlimited
	}
	return time.Duration(min(ms, maxMillis)) * time.Millisecond
}

const maxMillis = int64(1<<63-1) / int64(time.Millisecond)

// Validate checks each field and names the one that is wrong.
func (r Retention) Validate() error {
	if r.Time != nil && *r.Time > 0 && *r.Time < time.Millisecond {
		return fmt.Errorf("retention time %s: want at least 1ms, 0 or -1: %w", *r.Time, base.ErrInvalid)
	}
	if r.WaitForTables != nil && *r.WaitForTables < 0 {
		return fmt.Errorf("retention wait_for_tables %s: want 0 or more: %w", *r.WaitForTables, base.ErrInvalid)
	}
	return nil
}

func millis(d time.Duration) int64 {
	if d < 0 {
		return Unlimited
	}
	return d.Milliseconds()
}
