package catalog

import (
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

// Limited reports whether anything of a log is ever to go.
func (r LogRetention) Limited() bool { return r.Time >= 0 || r.Bytes >= 0 }

// ResolveRetention fills a stream's retention with what its namespace says, then
// with what the cluster says, then with the defaults. Any of them may be nil.
func ResolveRetention(stream, namespace, cluster *commitpb.Retention) LogRetention {
	r := LogRetention{Time: Unlimited, Bytes: Unlimited, WaitForTables: DefaultWaitForTables}
	for _, level := range []*commitpb.Retention{cluster, namespace, stream} {
		if level == nil {
			continue
		}
		if ms := level.TimeMs; ms != nil { //nolint:protogetter // unset inherits
			r.Time = duration(*ms)
		}
		if bytes := level.Bytes; bytes != nil { //nolint:protogetter // likewise
			r.Bytes = max(*bytes, Unlimited)
		}
		if ms := level.WaitForTablesMs; ms != nil { //nolint:protogetter // likewise
			r.WaitForTables = max(0, duration(*ms))
		}
		if wait := level.WaitForGroups; wait != nil { //nolint:protogetter // likewise
			r.WaitForGroups = *wait
		}
	}
	return r
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

// merge returns old with the fields that r sets, and whether anything changed.
func (r Retention) merge(old *commitpb.Retention) (*commitpb.Retention, bool) {
	merged := &commitpb.Retention{
		TimeMs: old.TimeMs, Bytes: old.Bytes, //nolint:protogetter // unset must stay unset
		WaitForTablesMs: old.WaitForTablesMs, WaitForGroups: old.WaitForGroups, //nolint:protogetter // likewise
	}
	changed := false
	if r.Time != nil {
		changed = set(&merged.TimeMs, millis(*r.Time)) || changed
	}
	if r.Bytes != nil {
		changed = set(&merged.Bytes, max(*r.Bytes, Unlimited)) || changed
	}
	if r.WaitForTables != nil {
		changed = set(&merged.WaitForTablesMs, millis(*r.WaitForTables)) || changed
	}
	if r.WaitForGroups != nil {
		changed = set(&merged.WaitForGroups, *r.WaitForGroups) || changed
	}
	return merged, changed
}

func millis(d time.Duration) int64 {
	if d < 0 {
		return Unlimited
	}
	return d.Milliseconds()
}

// set makes a field hold value, and reports whether it did not.
func set[T comparable](field **T, value T) bool {
	if *field != nil && **field == value {
		return false
	}
	*field = &value
	return true
}
