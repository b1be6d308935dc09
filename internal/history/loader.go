package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/checkpoint"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Loader finds the checkpoints that a shard's pointer names. It is safe for
// concurrent use.
type Loader struct {
	Cluster   base.ClusterID
	Shard     base.Shard
	Documents coord.Documents
	Objects   blob.Store
	Logger    *slog.Logger
}

var _ shard.Checkpoints = Loader{}

// Load returns the newest checkpoint that is whole, as shard.Checkpoints wants it.
// One that is damaged or gone is told of loudly, and the one before it is taken, or
// none where it was the first: nothing is purged before the second.
func (l Loader) Load(ctx context.Context) (shard.Snapshot, error) {
	p, _, err := ReadPointer(ctx, l.Documents, l.Shard)
	if err != nil || p == nil {
		return shard.Snapshot{}, err
	}
	sn, err := l.read(ctx, p.Current)
	if !damaged(err) {
		return sn, err
	}
	logger := l.Logger.With("shard", l.Shard.String(), "checkpoint", p.Current.Key, "reason", err.Error())
	if p.Previous == nil {
		logger.Error("the only checkpoint cannot be read; going on from the beginning of the log")
		return shard.Snapshot{}, nil
	}
	logger.Error("the newest checkpoint cannot be read; going on from the one before it")
	return l.read(ctx, *p.Previous)
}

// damaged reports whether an older object may do better.
func damaged(err error) bool {
	return errors.Is(err, base.ErrCorrupt) || errors.Is(err, base.ErrForeign)
}

// Covered returns the revision of the checkpoint before the newest, 0 for none:
// whatever starts from a checkpoint starts there at the earliest.
func (l Loader) Covered(ctx context.Context) (base.Revision, error) {
	p, _, err := ReadPointer(ctx, l.Documents, l.Shard)
	if err != nil || p == nil || p.Previous == nil {
		return 0, err
	}
	return p.Previous.Revision, nil
}

func (l Loader) read(ctx context.Context, ref Ref) (shard.Snapshot, error) {
	data, err := readObject(ctx, l.Objects, ref.Key, checkpoint.MaxBytes)
	if errors.Is(err, base.ErrNotFound) {
		return shard.Snapshot{}, fmt.Errorf("reading checkpoint %s: the object is gone: %w", ref.Key, base.ErrCorrupt)
	}
	if err != nil {
		return shard.Snapshot{}, fmt.Errorf("reading checkpoint %s: %w", ref.Key, err)
	}
	sn, err := shard.LoadCheckpoint(data, l.Cluster, l.Shard)
	if err != nil {
		return shard.Snapshot{}, fmt.Errorf("reading checkpoint %s: %w", ref.Key, err)
	}
	if sn.State.Revision() != ref.Revision {
		return shard.Snapshot{}, fmt.Errorf("reading checkpoint %s: it is of revision %d: %w", ref.Key, sn.State.Revision(), base.ErrCorrupt)
	}
	return sn, nil
}

// readObject reads a whole object of at most limit bytes.
func readObject(ctx context.Context, objects blob.Store, key string, limit int64) ([]byte, error) {
	info, err := objects.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	if info.Size > limit {
		return nil, fmt.Errorf("%d bytes, at most %d are read: %w", info.Size, limit, base.ErrCorrupt)
	}
	return objects.ReadRange(ctx, key, 0, info.Size, nil)
}

// createObject writes a whole object, or nothing.
func createObject(ctx context.Context, objects blob.Store, key string, data []byte) error {
	w, err := objects.Create(ctx, key)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Commit()
}

// listPage is how many objects one request lists.
const listPage = 1000

// eachObject calls fn with every object under a prefix, in the order of keys.
func eachObject(ctx context.Context, objects blob.Store, prefix string, fn func(blob.Info)) error {
	after := ""
	for {
		page, err := objects.List(ctx, prefix, after, listPage)
		if err != nil {
			return fmt.Errorf("listing %s: %w", prefix, err)
		}
		for _, info := range page {
			fn(info)
		}
		if len(page) < listPage {
			return nil
		}
		after = page[len(page)-1].Key
	}
}
