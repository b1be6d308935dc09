package commit

import (
	"maps"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// group is the prepared ranges that one commit adds, and where the tables end
// after it.
type group struct {
	ranges []Range
	ends   materialization.EndOffsets
	// full is true when more ranges wait than one commit takes.
	full bool
}

// selectGroup chooses the ranges that the table does not hold yet, at most
// maxFiles files of them. A range lies below the table's end offset as a whole,
// and is never added again; or from it on as a whole; anything between is no
// state that the engine can have made.
func selectGroup(ident materialization.Ident, uuid string, held materialization.EndOffsets, logs []Log, maxFiles int) (group, *suspension) {
	g := group{ends: maps.Clone(held)}
	files := 0
	for _, log := range logs {
		end, begun := held[log.Partition]
		if !begun {
			end = log.Start
		}
		for _, r := range log.Prepared {
			if r.Range.End <= end {
				continue
			}
			if fault := checkRange(ident, uuid, end, r); fault != nil {
				return group{}, fault
			}
			files += len(r.Main) + len(r.DeadLetter)
			if files > maxFiles && len(g.ranges) > 0 {
				g.full = true
				break
			}
			g.ranges = append(g.ranges, r)
			end = r.Range.End
			g.ends[log.Partition] = end
		}
	}
	return g, nil
}

func checkRange(ident materialization.Ident, uuid string, end base.Offset, r Range) *suspension {
	if r.Range.Start != end {
		return suspend(ident, "it ends at offset %d of partition %d, inside or short of the prepared range %s",
			end, r.Log.Partition, r.Range)
	}
	return checkWrittenFor(ident, uuid, r)
}

func checkWrittenFor(ident materialization.Ident, uuid string, r Range) *suspension {
	if r.TableUUID != uuid {
		return suspend(ident, "range %s of partition %d was prepared for table uuid %s, not %s: the table was replaced",
			r.Range, r.Log.Partition, r.TableUUID, uuid)
	}
	return nil
}

// without returns the group cut, in each partition, before its first range that
// names a missing file.
func (g group) without(missing []MissingFile, held materialization.EndOffsets) group {
	cut := map[base.Partition]base.Offset{}
	for _, file := range missing {
		if at, found := cut[file.Log.Partition]; !found || file.Range.Start < at {
			cut[file.Log.Partition] = file.Range.Start
		}
	}
	kept := group{ends: maps.Clone(held), full: g.full}
	for _, r := range g.ranges {
		if at, found := cut[r.Log.Partition]; found && r.Range.Start >= at {
			continue
		}
		kept.ranges = append(kept.ranges, r)
		kept.ends[r.Log.Partition] = r.Range.End
	}
	return kept
}

// mainFiles returns the files of the group for the main table.
func (g group) mainFiles() []materialization.DataFile {
	var files []materialization.DataFile
	for _, r := range g.ranges {
		files = append(files, r.Main...)
	}
	return files
}

// deadLetters returns the group's dead letters that a dead-letter table, which
// ends at held, does not hold yet, and where it ends with them.
func (g group) deadLetters(held materialization.EndOffsets) ([]materialization.DataFile, materialization.EndOffsets) {
	var files []materialization.DataFile
	ends := maps.Clone(held)
	for _, r := range g.ranges {
		if len(r.DeadLetter) > 0 && r.Range.End > held[r.Log.Partition] {
			files = append(files, r.DeadLetter...)
			ends[r.Log.Partition] = r.Range.End
		}
	}
	return files, ends
}

// hasDeadLetters reports whether any range of the group has some, committed or
// not.
func (g group) hasDeadLetters() bool {
	return slices.ContainsFunc(g.ranges, func(r Range) bool { return len(r.DeadLetter) > 0 })
}

// update is a commit that adds files and moves the end offsets of a table.
func update(role, owner, commitID string, files []materialization.DataFile, ends materialization.EndOffsets) materialization.Update {
	progress := map[string]string{
		materialization.PropertyOwner:      owner,
		materialization.PropertyRole:       role,
		materialization.PropertyEndOffsets: ends.String(),
		materialization.PropertyCommitID:   commitID,
	}
	return materialization.Update{Files: files, Summary: progress, Properties: maps.Clone(progress)}
}

// unpublished returns the ranges that the table holds and the fold does not know
// to be held, and the end offsets to publish. It ends at what this view has
// prepared: what others committed beyond is theirs to publish.
func unpublished(held materialization.EndOffsets, logs []Log) group {
	g := group{ends: materialization.EndOffsets{}}
	for _, log := range logs {
		for _, r := range log.Prepared {
			if r.Range.End > held[log.Partition] {
				break
			}
			g.ranges = append(g.ranges, r)
			g.ends[log.Partition] = r.Range.End
		}
	}
	return g
}
