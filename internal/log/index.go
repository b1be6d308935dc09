package log

import (
	"context"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Index is what the read path needs of a shard's live view. Implementations are
// safe for concurrent use. A log that does not exist is base.ErrNotFound; a view
// that has stopped fails every call with the reason.
type Index interface {
	// Cluster returns the cluster whose objects the index names.
	Cluster() base.ClusterID
	// Lookup returns the bounds of a log and at most limit entries from the one
	// that covers the offset, or the first retained one beyond it, on, as one
	// moment shows them.
	Lookup(log base.LogID, offset base.Offset, limit int) (Lookup, error)
	// FindTime returns the first entry that holds something live with an append at
	// or after t, and false when there is none.
	FindTime(log base.LogID, t base.Millis) (shard.Entry, bool, error)
	// WaitHead blocks until the head of a log is beyond the offset. It fails
	// when ctx ends.
	WaitHead(ctx context.Context, log base.LogID, offset base.Offset) error
}

// Lookup is what an index shows of a log at one moment.
type Lookup struct {
	// Live is the range from the first live offset to the head.
	Live base.OffsetRange
	// Floor is the first retained offset: what lies between it and Live was
	// trimmed softly and can still be read by who asks for it.
	Floor base.Offset
	// Bytes counts what was appended to the log in all its life, as stored.
	Bytes   int64
	Entries []shard.Entry
}

// readable returns the range that can be read, with what was trimmed softly or
// without.
func (l *Lookup) readable(trimmed bool) base.OffsetRange {
	if trimmed {
		return base.OffsetRange{Start: l.Floor, End: l.Live.End}
	}
	return l.Live
}

// NewIndex returns the index of a followed shard.
func NewIndex(follower *shard.Follower) Index { return followerIndex{follower} }

type followerIndex struct {
	follower *shard.Follower
}

func (i followerIndex) Cluster() base.ClusterID {
	var cluster base.ClusterID
	i.follower.Inspect(func(s *shard.State) { cluster = s.Cluster() })
	return cluster
}

func (i followerIndex) Lookup(log base.LogID, offset base.Offset, limit int) (Lookup, error) {
	var found Lookup
	err := i.inspect(log, func(s *shard.State, l *shard.Log) {
		found.Live = base.OffsetRange{Start: l.Start(), End: l.Head()}
		found.Floor, found.Bytes = l.Floor(), l.Bytes()
		found.Entries = s.Entries(l, offset, limit)
	})
	return found, err
}

func (i followerIndex) FindTime(log base.LogID, t base.Millis) (shard.Entry, bool, error) {
	var entry shard.Entry
	var found bool
	err := i.inspect(log, func(s *shard.State, l *shard.Log) { entry, found = s.FindTime(l, t) })
	return entry, found, err
}

func (i followerIndex) WaitHead(ctx context.Context, log base.LogID, offset base.Offset) error {
	return i.follower.WaitHead(ctx, log, offset)
}

func (i followerIndex) inspect(log base.LogID, fn func(*shard.State, *shard.Log)) error {
	if err := i.follower.Err(); err != nil {
		return err
	}
	found := false
	i.follower.Inspect(func(s *shard.State) {
		var l *shard.Log
		if l, found = s.Log(log); found {
			fn(s, l)
		}
	})
	if !found {
		return fmt.Errorf("log %s: %w", log, base.ErrNotFound)
	}
	return nil
}
