package gc

import (
	"fmt"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/log"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Rules are what retention goes by in one round.
type Rules struct {
	// Now is the time by which records are old. With Ageless set nothing is old:
	// the clock cannot be trusted.
	Now     base.Millis
	Ageless bool
	// Resolve returns what the logs of a stream keep, and whether it has a table.
	Resolve func(*shard.Stream) (catalog.LogRetention, bool)
	// Consumed returns the offset up to which every consumer group has read a log,
	// and the group that is the furthest behind; false when no group reads it.
	Consumed func(base.LogID) (base.Offset, string, bool)
	// Hidden returns the offset before which records have been hidden by a trim for
	// long enough to be dropped.
	Hidden func(*shard.Log) base.Offset
}

// LogTrim is how far a log is to be trimmed for good.
type LogTrim struct {
	Log base.LogID
	To  base.Offset
}

// Held is what a log would give up if nothing waited for it.
type Held struct {
	Log base.LogID
	// Records that are kept only because of what By names.
	Records int64
	// By is "its table" or "consumer group NAME".
	By string
	// Until is when the wait ends and the records go; 0 for never.
	Until base.Millis
}

// Retention is what one round does.
type Retention struct {
	Trims []LogTrim
	Held  []Held
}

// PlanRetention decides what the logs of a shard give up now. It never trims what a
// table lacks before the cap on waiting for it has passed.
func PlanRetention(s *shard.State, rules Rules) (plan Retention) {
	for _, st := range s.Streams() {
		keep, table := rules.Resolve(st)
		for _, l := range st.Logs {
			w := wanted{state: s, log: l, rules: rules, keep: keep}
			w.expire()
			if table {
				w.waitForTable()
			}
			if keep.WaitForGroups {
				w.waitForGroups()
			}
			if w.to > l.Floor() {
				plan.Trims = append(plan.Trims, LogTrim{Log: l.ID(), To: w.to})
			}
			plan.Held = append(plan.Held, w.held...)
		}
	}
	return plan
}

// wanted is how far a log may be trimmed, as one rule after another sees it.
type wanted struct {
	state *shard.State
	log   *shard.Log
	rules Rules
	keep  catalog.LogRetention
	to    base.Offset
	held  []Held
}

// expire begins with what age, size and the user's trims allow.
func (w *wanted) expire() {
	keep := log.Keep{Time: w.keep.Time, Bytes: w.keep.Bytes}
	if w.rules.Ageless {
		keep.Time = catalog.Unlimited
	}
	w.to = w.rules.Hidden(w.log)
	if expired := log.RetentionOffset(w.state, w.log, w.log.Head(), w.rules.Now, keep); expired > w.log.Start() {
		w.to = max(w.to, expired)
	}
}

func (w *wanted) waitForTable() {
	has := w.log.Materialized()
	if has >= w.to {
		return
	}
	patience := max(0, w.keep.Time) + w.keep.WaitForTables
	if patience < 0 { // both are long: the sum has no meaning, and neither has the cap
		patience = catalog.Unlimited
	}
	given := w.olderThan(patience)
	held := Held{By: "its table"}
	if e, ok := w.state.Find(w.log, max(given, has, w.log.Floor())); ok && patience >= 0 {
		held.Until = e.AppendTime + base.Millis(patience.Milliseconds())
	}
	w.holdAt(max(given, has), held)
}

// agePage is how many entries are looked at at once: a log may have very many.
const agePage = 256

// olderThan returns the end of what is older than a time, hidden or not.
func (w *wanted) olderThan(age time.Duration) base.Offset {
	if age < 0 || w.rules.Ageless {
		return 0
	}
	end := base.Offset(0)
	for from := w.log.Floor(); ; from = end {
		entries := w.state.Entries(w.log, from, agePage)
		for _, e := range entries {
			if e.AppendTime+base.Millis(age.Milliseconds()) > w.rules.Now {
				return end
			}
			end = e.Range.End
		}
		if len(entries) < agePage {
			return end
		}
	}
}

func (w *wanted) waitForGroups() {
	if at, group, ok := w.rules.Consumed(w.log.ID()); ok && at < w.to {
		w.holdAt(at, Held{By: fmt.Sprintf("consumer group %s", group)})
	}
}

// holdAt keeps what lies at an offset and beyond, and the whole entry around it:
// half an entry frees nothing.
func (w *wanted) holdAt(at base.Offset, held Held) {
	if at >= w.to {
		return
	}
	if e, ok := w.state.Find(w.log, at); ok {
		at = min(at, e.Range.Start)
	}
	held.Log, held.Records = w.log.ID(), int64(w.to-max(at, w.log.Floor()))
	w.held = append(w.held, held)
	w.to = at
}

// Skips returns, for each log whose table lacks records that are gone, which ones.
func Skips(s *shard.State, hasTable func(*shard.Stream) bool) map[base.LogID]base.OffsetRange {
	skips := make(map[base.LogID]base.OffsetRange)
	for _, st := range s.Streams() {
		if !hasTable(st) {
			continue
		}
		for _, l := range st.Logs {
			if l.Prepared() < l.Floor() {
				skips[l.ID()] = base.OffsetRange{Start: l.Prepared(), End: l.Floor()}
			}
		}
	}
	return skips
}
