package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// Bootstrap says where a cluster is and what to create it with.
type Bootstrap struct {
	Coordination coord.Store
	Objects      blob.Store
	// Shards is the shard count of a cluster that does not exist yet.
	Shards int
	// MustExist refuses to create: for commands that only look. It writes no
	// identity and no record.
	MustExist bool
	// FoldVersion is what a cluster that does not exist yet begins at; 0 means the
	// newest.
	FoldVersion uint32
	Clock       base.Clock
	Entropy     io.Reader
	Logger      *slog.Logger
}

// Run finds the cluster, creating it when both stores are empty, or finishing a
// creation that was interrupted. When it returns, every log holds its
// ClusterCreate record.
func (b Bootstrap) Run(ctx context.Context) (Identity, error) {
	id, err := b.agree(ctx)
	if err != nil {
		return Identity{}, fmt.Errorf("opening cluster: %w", err)
	}
	for _, shard := range id.Logs() {
		if err := b.beginLog(ctx, id, shard); err != nil {
			return Identity{}, fmt.Errorf("opening cluster: %w", err)
		}
	}
	if b.Shards != 0 && b.Shards != id.Shards {
		b.Logger.Warn("the shard count is fixed when a cluster is created; the configured one has no effect",
			"configured", b.Shards, "cluster", id.Shards)
	}
	return id, nil
}

// Logs returns every log of the cluster.
func (id Identity) Logs() []base.Shard {
	logs := []base.Shard{base.MetaShard}
	for i := range id.Shards {
		logs = append(logs, base.Shard(i))
	}
	return logs
}

// agree returns the identity that both stores hold, writing what is missing where
// that is safe.
func (b Bootstrap) agree(ctx context.Context) (Identity, error) {
	// The object first: it is written after the document, so an instance that
	// creates the cluster between the two reads is not taken for half of one.
	object, err := readObject(ctx, b.Objects)
	if err != nil {
		return Identity{}, err
	}
	doc, err := readDocument(ctx, b.Coordination.Documents())
	if err != nil {
		return Identity{}, err
	}
	switch {
	case doc == nil && object != nil:
		return Identity{}, fmt.Errorf("the object store %s holds a cluster that the coordination store %s does not know: "+
			"check that both settings name the same cluster; if coordination was lost, stop every instance and run lakestream recover: %w", b.Objects, b.Coordination, base.ErrForeign)
	case doc == nil && b.MustExist:
		return Identity{}, fmt.Errorf("no cluster in %s: run a pipeline that writes to it first: %w", b.Objects, base.ErrNotFound)
	case doc == nil:
		return b.create(ctx)
	case object == nil:
		return b.finish(ctx, doc)
	case !bytes.Equal(doc, object):
		return Identity{}, fmt.Errorf("the object store %s and the coordination store %s belong to different clusters: %w",
			b.Objects, b.Coordination, base.ErrForeign)
	}
	return decodeIdentity(doc)
}

func (b Bootstrap) create(ctx context.Context) (Identity, error) {
	if b.Shards < 1 || b.Shards > base.MaxShards {
		return Identity{}, fmt.Errorf("shards %d: want 1 to %d: %w", b.Shards, base.MaxShards, base.ErrInvalid)
	}
	if err := b.refuseObjects(ctx, base.WALPrefix, base.CompactedPrefix, base.CheckpointPrefix, base.SegmentPrefix); err != nil {
		return Identity{}, err
	}
	id, err := newIdentity(b.Shards, b.Clock, b.Entropy)
	if err != nil {
		return Identity{}, err
	}
	used, err := b.used(ctx, id)
	if err != nil {
		return Identity{}, err
	}
	var doc []byte
	if used {
		// Another instance created the cluster just now, or its identity was lost.
		doc, err = readDocument(ctx, b.Coordination.Documents())
		if err == nil && doc == nil {
			err = fmt.Errorf("the coordination store %s holds commit logs and no identity: nothing was changed: %w", b.Coordination, base.ErrForeign)
		}
	} else {
		doc, err = writeDocument(ctx, b.Coordination.Documents(), id)
	}
	if err != nil {
		return Identity{}, err
	}
	return b.finish(ctx, doc)
}

// used reports whether any log of the cluster has a record.
func (b Bootstrap) used(ctx context.Context, id Identity) (bool, error) {
	for _, shard := range id.Logs() {
		last, err := b.last(ctx, shard)
		if err != nil || last > 0 {
			return last > 0, err
		}
	}
	return false, nil
}

// finish writes the identity object that belongs to a document. A document alone
// is a creation that was interrupted only while every log is empty.
func (b Bootstrap) finish(ctx context.Context, doc []byte) (Identity, error) {
	id, err := decodeIdentity(doc)
	if err != nil {
		return Identity{}, err
	}
	used, err := b.used(ctx, id)
	if err != nil {
		return Identity{}, err
	}
	if used {
		return id, b.reopened(ctx, doc)
	}
	if b.MustExist {
		return Identity{}, fmt.Errorf("the cluster in %s is not complete: run a pipeline that writes to it first: %w", b.Objects, base.ErrNotFound)
	}
	if err := b.refuseObjects(ctx, base.WALPrefix, base.CompactedPrefix, base.CheckpointPrefix, base.SegmentPrefix); err != nil {
		return Identity{}, err
	}
	return id, writeObject(ctx, b.Objects, doc)
}

// reopened explains a log with records beside a missing identity object, unless
// another instance finished the creation just now.
func (b Bootstrap) reopened(ctx context.Context, doc []byte) error {
	object, err := readObject(ctx, b.Objects)
	if err != nil {
		return err
	}
	if bytes.Equal(object, doc) {
		return nil
	}
	return fmt.Errorf("the coordination store %s holds a cluster whose objects are not in %s: "+
		"check the storage setting; nothing was changed: %w", b.Coordination, b.Objects, base.ErrForeign)
}

func (b Bootstrap) last(ctx context.Context, shard base.Shard) (base.Revision, error) {
	log, err := b.Coordination.Log(ctx, shard.String())
	if err != nil {
		return 0, fmt.Errorf("opening the log of %s: %w", shard, err)
	}
	_, last, err := log.Bounds(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the bounds of %s: %w", shard, err)
	}
	return last, nil
}

// beginLog puts the first record of a log that holds none of ours. Two instances
// may both put one: the fold takes the first.
func (b Bootstrap) beginLog(ctx context.Context, id Identity, shard base.Shard) error {
	begun, err := b.begun(ctx, id, shard)
	if err != nil || begun {
		return err
	}
	prefixes := []string{
		base.WALPrefix + shard.String() + "/", base.CompactedPrefix + shard.String() + "/",
		base.CheckpointPrefix + shard.String() + "/", base.SegmentPrefix + shard.String() + "/",
	}
	if err := b.refuseObjects(ctx, prefixes...); err != nil {
		return err
	}
	if b.MustExist {
		return fmt.Errorf("the log of %s is empty: run a pipeline that writes first: %w", shard, base.ErrNotFound)
	}
	record := &commitpb.ClusterCreate{Shards: uint32(id.Shards), FoldVersion: cmp.Or(b.FoldVersion, commitrecord.FoldVersion)} //nolint:gosec // ≤ MaxShards
	data, err := commitrecord.Encode(commitrecord.Envelope{Cluster: id.Cluster}, record)
	if err != nil {
		return err
	}
	log, err := b.Coordination.Log(ctx, shard.String())
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", shard, err)
	}
	if _, err := log.Put(ctx, data); err != nil {
		return fmt.Errorf("beginning the log of %s: %w", shard, err)
	}
	return nil
}

// begun reports whether a log holds its ClusterCreate record. A stranger's record
// or a delete marker may lie before it, or may be all there is.
func (b Bootstrap) begun(ctx context.Context, id Identity, shard base.Shard) (bool, error) {
	log, err := b.Coordination.Log(ctx, shard.String())
	if err != nil {
		return false, fmt.Errorf("opening the log of %s: %w", shard, err)
	}
	first, last, err := log.Bounds(ctx)
	if err != nil {
		return false, fmt.Errorf("reading the bounds of %s: %w", shard, err)
	}
	if first != 1 {
		return last > 0, nil // what was dropped from the front is in a checkpoint
	}
	watch, err := log.Watch(ctx, first)
	if err != nil {
		return false, fmt.Errorf("reading the log of %s: %w", shard, err)
	}
	defer watch.Stop()
	for revision := base.Revision(0); revision < last; {
		select {
		case e, ok := <-watch.Entries():
			if !ok {
				return false, fmt.Errorf("reading the log of %s: the watch was closed: %w", shard, base.ErrUnavailable)
			}
			if begins(e.Data, id.Cluster) {
				return true, nil
			}
			revision = e.Revision
		case <-ctx.Done():
			return false, fmt.Errorf("reading the log of %s: %w", shard, ctx.Err())
		}
	}
	return false, nil
}

// begins reports whether a record is the cluster's ClusterCreate, or so new that
// the view must be the one to refuse it.
func begins(data []byte, cluster base.ClusterID) bool {
	env, _, err := commitrecord.DecodeEnvelope(data)
	if err != nil {
		return errors.Is(err, base.ErrNewerFormat)
	}
	return env.Cluster == cluster && env.Kind == commitrecord.KindClusterCreate
}

// refuseObjects fails when the store holds objects that no log could explain.
func (b Bootstrap) refuseObjects(ctx context.Context, prefixes ...string) error {
	for _, prefix := range prefixes {
		found, err := b.Objects.List(ctx, prefix, "", 1)
		if err != nil {
			return fmt.Errorf("listing %s: %w", prefix, err)
		}
		if len(found) > 0 {
			return fmt.Errorf("the object store %s holds %s although the log that would explain it is empty: "+
				"coordination was lost or another one is configured; nothing was changed: %w", b.Objects, found[0].Key, base.ErrForeign)
		}
	}
	return nil
}
