package shard

import (
	"maps"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
)

// claims are the open writers that a call of this process was told of.
type claims map[base.WriterID]struct{}

// claimLocked notes who learns of a writer, before the outcome is told.
func (f *Follower) claimLocked(out *Outcome) {
	switch out.Kind { //nolint:exhaustive // no other kind opens or closes a writer
	case commitrecord.KindWriterOpen:
		if f.requests[out.Request] != nil && out.Writer != 0 {
			f.claimed[out.Writer] = struct{}{}
		}
	case commitrecord.KindWriterFence:
		maps.DeleteFunc(f.claimed, func(id base.WriterID, _ struct{}) bool {
			_, open := f.state.Writer(id)
			return !open
		})
	}
}

// Claimed reports whether a call of Publish was told that it has this writer, which
// is open. A writer of this process that is open and not claimed was opened by a copy
// of a WriterOpen record that arrived after its writer was closed: nobody uses it.
func (f *Follower) Claimed(writer base.WriterID) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	_, ok := f.claimed[writer]
	return ok
}
