package history

import (
	"context"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
)

// List returns what the object store holds of a shard's history. Objects that this
// software did not name are left out.
func List(ctx context.Context, objects blob.Store, shard base.Shard) (s Stored, err error) {
	err = eachObject(ctx, objects, base.CheckpointPrefix+shard.String()+"/", func(info blob.Info) {
		if _, revision, err := base.RevisionOfCheckpointKey(info.Key); err == nil {
			s.Checkpoints = append(s.Checkpoints, StoredCheckpoint{Key: info.Key, Revision: revision})
		}
	})
	if err != nil {
		return Stored{}, err
	}
	s.Segments, err = listSegments(ctx, objects, shard)
	return s, err
}

func listSegments(ctx context.Context, objects blob.Store, shard base.Shard) (segments []StoredSegment, err error) {
	err = eachObject(ctx, objects, base.SegmentPrefix+shard.String()+"/", func(info blob.Info) {
		if _, from, to, err := base.RangeOfSegmentKey(info.Key); err == nil {
			segments = append(segments, StoredSegment{Key: info.Key, From: from, To: to})
		}
	})
	return segments, err
}
