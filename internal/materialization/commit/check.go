package commit

import (
	"fmt"
	"slices"

	"github.com/lakestream-go/lakestream/internal/materialization"
)

// Roles of a table, as PropertyRole holds them.
const (
	RoleMain       = "main"
	RoleDeadLetter = "dead-letter"
)

// checkTable decides whether a table is still the one that the fold knows, with
// all that was committed to it: not replaced, not another stream's, not rolled
// back, not stripped of its properties. It returns nil, or why not.
//
// Properties and snapshots change together in the engine's commits, and apart in
// everyone else's. A rollback moves the head and leaves the properties; a restore
// of old metadata moves both and leaves the fold. So each is held against the
// other two.
func checkTable(table *materialization.Table, role string, owner string, bound Mark) *suspension {
	for _, check := range []func(*materialization.Table, string, string, Mark) string{
		checkIdentity, checkOwner, checkHistory,
	} {
		if reason := check(table, role, owner, bound); reason != "" {
			return suspend(table.Ident, "%s", reason)
		}
	}
	return nil
}

func checkIdentity(table *materialization.Table, role, _ string, bound Mark) string {
	if bound.TableUUID != "" && table.UUID != bound.TableUUID {
		return fmt.Sprintf("it was dropped and created again: its uuid is %s, the log was materialized into %s", table.UUID, bound.TableUUID)
	}
	if has := table.Properties[materialization.PropertyRole]; has != "" && has != role {
		return fmt.Sprintf("it is a %s table, not a %s table", has, role)
	}
	return ""
}

func checkOwner(table *materialization.Table, _, owner string, bound Mark) string {
	has := table.Properties[materialization.PropertyOwner]
	switch {
	case has == owner:
		return ""
	case has != "":
		return fmt.Sprintf("it belongs to %s, not to this stream (%s)", has, owner)
	case bound.TableUUID != "":
		return fmt.Sprintf("its property %s was removed", materialization.PropertyOwner)
	case table.Head != 0:
		return "it holds snapshots of others and was never this stream's"
	default:
		return ""
	}
}

func checkHistory(table *materialization.Table, _, _ string, bound Mark) string {
	id := table.Properties[materialization.PropertyCommitID]
	ends := table.Properties[materialization.PropertyEndOffsets]
	switch {
	case id == "" && (bound.CommitID != "" || ends != "" || len(table.CommitIDs) > 0):
		return fmt.Sprintf("its property %s was removed", materialization.PropertyCommitID)
	case id != "" && ends == "":
		return fmt.Sprintf("its property %s was removed", materialization.PropertyEndOffsets)
	case id != "" && len(table.CommitIDs) > 0 && table.CommitIDs[0] != id,
		id != "" && len(table.CommitIDs) == 0 && table.AncestryComplete:
		return fmt.Sprintf("it was rolled back: commit %s is not the newest in the history of its head", id)
	case bound.CommitID != "" && table.AncestryComplete && !slices.Contains(table.CommitIDs, bound.CommitID):
		return fmt.Sprintf("commit %s, which the log counts on, is not in the history of its head", bound.CommitID)
	default:
		return ""
	}
}

// checkProgress decides whether the main table holds at least what was published
// of each log.
func checkProgress(table *materialization.Table, ends materialization.EndOffsets, logs []Log) *suspension {
	for _, log := range logs {
		if log.Materialized > log.Start && ends[log.Partition] < log.Materialized {
			return suspend(table.Ident, "partition %d ends at offset %d in it, but was materialized up to %d: an older state of the table was restored",
				log.Partition, ends[log.Partition], log.Materialized)
		}
	}
	return nil
}

// checkDeadLetters decides whether a dead-letter table is the one that a group's
// dead letters were written for, and ends between ranges.
func checkDeadLetters(table *materialization.Table, ends materialization.EndOffsets, g group) *suspension {
	for _, r := range g.ranges {
		end := ends[r.Log.Partition]
		switch {
		case len(r.DeadLetter) == 0:
		case r.DeadLetterUUID != table.UUID:
			return suspend(table.Ident, "the dead letters of range %s of partition %d were written for table uuid %s, not %s: the table was replaced",
				r.Range, r.Log.Partition, r.DeadLetterUUID, table.UUID)
		case r.Range.Start < end && end < r.Range.End:
			return suspend(table.Ident, "it ends at offset %d of partition %d, inside the prepared range %s", end, r.Log.Partition, r.Range)
		}
	}
	return nil
}
