package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Due says when a checkpoint is made: as soon as one of these has come together
// since the newest one. Zero fields count for nothing.
type Due struct {
	Records uint64
	// Bytes are those of the records.
	Bytes int64
	// Age is by the log's own time, of the newest record. It also bounds how many
	// segments a recovery has to fold.
	Age time.Duration
}

// Progress is what has come together since the newest checkpoint.
type Progress struct {
	Records uint64
	Bytes   int64
	Age     time.Duration
}

// Reached reports whether a checkpoint is due.
func (d Due) Reached(p Progress) bool {
	if p.Records == 0 {
		return false
	}
	return d.Records > 0 && p.Records >= d.Records ||
		d.Bytes > 0 && p.Bytes >= d.Bytes ||
		d.Age > 0 && p.Age >= d.Age
}

// Stored is what the object store holds of a shard's history, in the order of keys.
type Stored struct {
	Checkpoints []StoredCheckpoint
	Segments    []StoredSegment
}

// StoredCheckpoint is one checkpoint as its key tells it.
type StoredCheckpoint struct {
	Key      string
	Revision base.Revision
}

// StoredSegment is one segment as its key tells it.
type StoredSegment struct {
	Key      string
	From, To base.Revision
}

// Archived returns the newest revision of the segments, 0 for none.
func (s *Stored) Archived() base.Revision {
	if len(s.Segments) == 0 {
		return 0
	}
	return slices.MaxFunc(s.Segments, func(a, b StoredSegment) int { return cmp.Compare(a.To, b.To) }).To
}

// Newest returns the newest revision that any object names, 0 for none.
func (s *Stored) Newest() base.Revision {
	newest := s.Archived()
	for _, c := range s.Checkpoints {
		newest = max(newest, c.Revision)
	}
	return newest
}

// Tidying is what a newer checkpoint makes dispensable.
type Tidying struct {
	// PurgeBelow is the first revision that the log must keep, 0 for all.
	PurgeBelow base.Revision
	// Delete are the keys of checkpoints and segments.
	Delete []string
}

// PlanTidying decides what goes once a pointer names these checkpoints. One
// checkpoint older than both is kept, for the case that both are damaged, and the
// segments after it. The log is purged up to the previous checkpoint, as far as it
// is archived. The entry at the checkpoint stays, so that a view that starts there
// can compare it. Checkpoints newer than the pointer's may be about to be named.
func PlanTidying(p Pointer, stored Stored) (t Tidying) {
	if p.Previous == nil {
		return t
	}
	t.PurgeBelow = min(p.Previous.Revision, stored.Archived())
	oldest := p.Previous.Revision
	spare := false
	for _, c := range slices.Backward(stored.Checkpoints) {
		switch {
		case c.Revision > p.Current.Revision, c.Key == p.Current.Key, c.Key == p.Previous.Key:
		case c.Revision < p.Previous.Revision && !spare:
			spare, oldest = true, c.Revision
		default:
			t.Delete = append(t.Delete, c.Key)
		}
	}
	for _, g := range stored.Segments {
		if g.To <= oldest {
			t.Delete = append(t.Delete, g.Key)
		}
	}
	return t
}
