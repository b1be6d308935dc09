package shard

import (
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Renumber returns the snapshot as of a later revision, with nothing folded between.
// A log that is made anew after a loss goes on from there: what was lost had
// revisions, and with them ids of streams and writers, that must not be given
// again. A revision that does not lie ahead is base.ErrInvalid.
func (sn Snapshot) Renumber(revision base.Revision) (Snapshot, error) {
	if revision <= sn.State.revision {
		return Snapshot{}, fmt.Errorf("going on from revision %d as %d: %w", sn.State.revision, revision, base.ErrInvalid)
	}
	sn.State = sn.State.Clone()
	sn.State.revision = revision
	sn.Record = base.Hash{}
	return sn, nil
}
