package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/checkpoint"
	"github.com/lakestream-go/lakestream/internal/format/segment"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Rebuilt is what checkpoint and archive give of a shard without its log.
type Rebuilt struct {
	// Snapshot has no state where the object store holds no history of the shard.
	Snapshot shard.Snapshot
	// Checkpoint is the key that folding began with, empty for the first record.
	Checkpoint string
	// Segments is how many were folded.
	Segments int
	// LastRecord is the server time of the newest folded record that came from a
	// segment, or else the checkpoint's time.
	LastRecord base.Millis
	// Damaged are the objects that could not be used, and why.
	Damaged []string
	// Gap is the first revision that is missing although later ones are archived,
	// 0 for none.
	Gap base.Revision
	// Newest is the newest revision that a checkpoint or a segment names, whether
	// it could be used or not.
	Newest base.Revision
}

// Rebuild folds the newest checkpoint that is whole and the segments after it. It
// goes on past damage as far as another checkpoint or segment has the same
// records. What a newer binary wrote is base.ErrNewerFormat.
func Rebuild(ctx context.Context, objects blob.Store, cluster base.ClusterID, of base.Shard) (Rebuilt, error) {
	r, err := rebuild(ctx, objects, cluster, of)
	if err != nil {
		return Rebuilt{}, fmt.Errorf("rebuilding %s: %w", of, err)
	}
	return r, nil
}

func rebuild(ctx context.Context, objects blob.Store, cluster base.ClusterID, of base.Shard) (r Rebuilt, err error) {
	stored, err := List(ctx, objects, of)
	if err != nil {
		return r, err
	}
	r.Newest = stored.Newest()
	if err := r.start(ctx, objects, cluster, of, stored.Checkpoints); err != nil {
		return r, err
	}
	if r.Snapshot.State == nil {
		if len(stored.Segments) == 0 {
			return r, nil
		}
		r.Snapshot.State = shard.NewState(cluster, of)
	}
	f := shard.NewFollowerAt(r.Snapshot)
	if err := r.fold(ctx, objects, cluster, f, stored.Segments); err != nil {
		return r, err
	}
	r.Snapshot = f.Snapshot()
	if r.Snapshot.State.Revision() == 0 {
		r.Snapshot.State = nil
	}
	return r, nil
}

// start loads the newest checkpoint that is whole.
func (r *Rebuilt) start(ctx context.Context, objects blob.Store, cluster base.ClusterID, of base.Shard, checkpoints []StoredCheckpoint) error {
	for _, c := range slices.Backward(checkpoints) {
		data, err := readObject(ctx, objects, c.Key, checkpoint.MaxBytes)
		if err == nil {
			r.Snapshot, err = shard.VerifyCheckpoint(data, cluster, of)
		}
		switch {
		case err == nil:
			r.Checkpoint, r.LastRecord = c.Key, r.Snapshot.State.Time()
			return nil
		case !damaged(err):
			return fmt.Errorf("reading %s: %w", c.Key, err)
		}
		r.Damaged = append(r.Damaged, fmt.Sprintf("%s: %v", c.Key, err))
		r.Snapshot = shard.Snapshot{}
	}
	return nil
}

// fold applies the archived records after the follower's revision.
func (r *Rebuilt) fold(ctx context.Context, objects blob.Store, cluster base.ClusterID, f *shard.Follower, segments []StoredSegment) error {
	var sh base.Shard
	f.Inspect(func(s *shard.State) { sh = s.Shard() })
	var before *segment.Segment
	for {
		at := f.Revision()
		s, err := r.next(ctx, objects, cluster, sh, at, before, segments)
		if err != nil {
			return err
		}
		if s == nil {
			for _, g := range segments {
				if g.To > at {
					r.Gap = at + 1
				}
			}
			return nil
		}
		for _, e := range s.Entries {
			if err := f.Apply(coord.Entry(e)); err != nil {
				return err
			}
			if e.Revision > at {
				r.LastRecord = e.Time
			}
		}
		before = s
		r.Segments++
	}
}

// next returns a whole segment that has the revision after at: the one that reaches
// furthest. A segment that begins where the one before ended must follow it, unless
// the archive was begun anew there.
func (r *Rebuilt) next(
	ctx context.Context, objects blob.Store, cluster base.ClusterID, of base.Shard, at base.Revision, before *segment.Segment, segments []StoredSegment,
) (*segment.Segment, error) {
	var candidates []StoredSegment
	for _, g := range segments {
		if g.From <= at+1 && g.To > at {
			candidates = append(candidates, g)
		}
	}
	slices.SortFunc(candidates, func(a, b StoredSegment) int { return int(b.To - a.To) }) //nolint:gosec // segments that overlap are near
	for _, g := range candidates {
		s, err := readSegment(ctx, objects, g, cluster, of)
		if err == nil && before != nil && s.From == before.To+1 && s.Start != (base.Hash{}) && s.Start != before.End {
			err = fmt.Errorf("reading %s: it does not follow the segment before it: %w", g.Key, base.ErrCorrupt)
		}
		if err == nil {
			return s, nil
		}
		if !damaged(err) && !errors.Is(err, base.ErrNotFound) {
			return nil, err
		}
		r.Damaged = append(r.Damaged, err.Error())
	}
	return nil, nil //nolint:nilnil // the archive ends here
}
