package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/checkpoint"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/compacted"
	"github.com/lakestream-go/lakestream/internal/format/segment"
	"github.com/lakestream-go/lakestream/internal/format/walobject"
)

// Inspection says what bytes hold, after verifying them. Exactly one of the parts
// is set.
type Inspection struct {
	Name string `json:"name"`
	// Kind is "WAL object", "compacted object", "checkpoint", "commit log segment" or
	// "commit record".
	Kind      string                 `json:"kind"`
	WAL       *walobject.Description `json:"wal,omitempty"`
	Compacted *CompactedDescription  `json:"compacted,omitempty"`
	Commit    *CommitDescription     `json:"commit,omitempty"`

	Checkpoint *CheckpointDescription `json:"checkpoint,omitempty"`
	Segment    *SegmentDescription    `json:"segment,omitempty"`
}

// CommitDescription is one record of a shard's commit log.
type CommitDescription struct {
	Cluster      string          `json:"cluster"`
	Kind         string          `json:"kind"`
	Revision     uint64          `json:"revision,omitempty"`
	SeenRevision uint64          `json:"seen_revision"`
	SeenHash     string          `json:"seen_hash"`
	Request      string          `json:"request,omitempty"`
	Payload      json.RawMessage `json:"payload"`
}

// MaxInspectBytes bounds what is inspected at a time: it is held in memory.
const MaxInspectBytes = 1 << 30

// InspectBytes verifies bytes of unknown kind and says what they hold: a WAL
// object, a compacted object, a checkpoint, a commit log segment or a commit
// record. Anything else is ErrInvalid,
// damage ErrCorrupt.
func InspectBytes(name string, data []byte) (*Inspection, error) {
	in := &Inspection{Name: name}
	switch {
	case walobject.Is(data):
		d, err := walobject.Describe(data)
		if err != nil {
			return nil, fmt.Errorf("inspecting %s: %w", name, err)
		}
		in.Kind, in.WAL = "WAL object", &d
	case compacted.Is(data):
		d, err := compacted.Describe(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return nil, fmt.Errorf("inspecting %s: %w", name, err)
		}
		in.Kind, in.Compacted = "compacted object", describeCompacted(d)
	case checkpoint.Is(data), segment.Is(data):
		return inspectHistory(in, data)
	default:
		d, err := describeCommit(data)
		if err != nil {
			return nil, fmt.Errorf("inspecting %s: no object and no commit record of this software: %w", name, err)
		}
		in.Kind, in.Commit = "commit record", d
	}
	return in, nil
}

func describeCommit(data []byte) (*CommitDescription, error) {
	env, body, err := commitrecord.DecodeEnvelope(data)
	if err != nil {
		return nil, err
	}
	payload, err := commitrecord.DecodePayload(env.Kind, body)
	if err != nil {
		return nil, err
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", env.Kind, err)
	}
	return &CommitDescription{
		Cluster: env.Cluster.String(), Kind: env.Kind.String(), SeenRevision: uint64(env.SeenRevision),
		SeenHash: fmt.Sprintf("%x", env.SeenHash), Request: fmt.Sprintf("%x", env.Request), Payload: text,
	}, nil
}

// Inspect verifies an object of the store by its key, or a record of the commit
// log by shard and revision, as in s00@17, and says what it holds.
func (e *Engine) Inspect(ctx context.Context, key string) (*Inspection, error) {
	if shardName, revision, ok := strings.Cut(key, "@"); ok {
		return e.inspectRecord(ctx, key, shardName, revision)
	}
	info, err := e.objects.Stat(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("inspecting %s: %w", key, err)
	}
	if info.Size > MaxInspectBytes {
		return nil, fmt.Errorf("inspecting %s: %d bytes: want at most %d: %w", key, info.Size, MaxInspectBytes, base.ErrInvalid)
	}
	data, err := e.objects.ReadRange(ctx, key, 0, info.Size, nil)
	if err != nil {
		return nil, fmt.Errorf("inspecting %s: %w", key, err)
	}
	if _, _, err := base.WriterOfKey(key); err == nil && !walobject.Is(data) && !compacted.Is(data) {
		return nil, fmt.Errorf("inspecting %s: it does not begin as what its key names: %w", key, base.ErrCorrupt)
	}
	return InspectBytes(key, data)
}

func (e *Engine) inspectRecord(ctx context.Context, key, shardName, revision string) (*Inspection, error) {
	sh, err := base.ParseShard(shardName)
	if err != nil || int(sh) >= len(e.shards) {
		return nil, fmt.Errorf("inspecting %s: want a shard and a revision as in s00@17: %w", key, base.ErrInvalid)
	}
	var wanted base.Revision
	if _, err := fmt.Sscanf(revision, "%d", &wanted); err != nil || wanted == 0 {
		return nil, fmt.Errorf("inspecting %s: want a shard and a revision as in s00@17: %w", key, base.ErrInvalid)
	}
	entry, err := e.readRecord(ctx, sh, wanted)
	if err != nil {
		return nil, fmt.Errorf("inspecting %s: %w", key, err)
	}
	in, err := InspectBytes(key, entry.Data)
	if err == nil && in.Commit != nil {
		in.Commit.Revision = uint64(wanted)
	}
	return in, err
}

func (e *Engine) readRecord(ctx context.Context, sh base.Shard, revision base.Revision) (coord.Entry, error) {
	commits, err := e.coordination.Log(ctx, sh.String())
	if err != nil {
		return coord.Entry{}, err
	}
	first, last, err := commits.Bounds(ctx)
	if err != nil {
		return coord.Entry{}, err
	}
	if revision < first || revision > last {
		return coord.Entry{}, fmt.Errorf("revision %d of %s, which holds %d to %d: %w", revision, sh, first, last, base.ErrNotFound)
	}
	watch, err := commits.Watch(ctx, revision)
	if err != nil {
		return coord.Entry{}, err
	}
	defer watch.Stop()
	select {
	case entry, ok := <-watch.Entries():
		if !ok || entry.Revision != revision {
			return coord.Entry{}, errors.Join(base.ErrUnavailable, errors.New("the commit log was interrupted"))
		}
		return entry, nil
	case <-ctx.Done():
		return coord.Entry{}, ctx.Err()
	}
}
