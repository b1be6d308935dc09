package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// pointerPrefix starts the keys of the documents that name the checkpoints of a
// shard: checkpoint.s00.
const pointerPrefix = "checkpoint."

const (
	pointerFormat  = "lakestream-checkpoint"
	pointerVersion = 1
)

// Ref names one checkpoint.
type Ref struct {
	Key      string        `json:"key"`
	Revision base.Revision `json:"revision"`
	// Time is the append time of the revision, in milliseconds since 1970 UTC.
	Time base.Millis `json:"time_ms"`
	Size int64       `json:"size"`
}

// Pointer is the document that names a shard's checkpoints. Previous is the one
// that Current was folded from, nil for the first one: the log holds everything
// after it. In a log that was made anew it is a copy of Current.
type Pointer struct {
	Current  Ref
	Previous *Ref
}

type pointerJSON struct {
	Format   string `json:"format"`
	Version  int    `json:"version"`
	Current  Ref    `json:"current"`
	Previous *Ref   `json:"previous,omitempty"`
}

func (p Pointer) encode() ([]byte, error) {
	return json.Marshal(pointerJSON{Format: pointerFormat, Version: pointerVersion, Current: p.Current, Previous: p.Previous})
}

func decodePointer(data []byte) (Pointer, error) {
	var j pointerJSON
	if err := json.Unmarshal(data, &j); err != nil || j.Format != pointerFormat || j.Version < 1 {
		return Pointer{}, fmt.Errorf("not a checkpoint pointer of this software: %w", base.ErrCorrupt)
	}
	if j.Version > pointerVersion {
		return Pointer{}, fmt.Errorf("checkpoint pointer version %d, this binary knows %d: upgrade it: %w", j.Version, pointerVersion, base.ErrNewerFormat)
	}
	return Pointer{Current: j.Current, Previous: j.Previous}, nil
}

// ReadPointer returns the pointer of a shard and the revision of its document, or
// nil and 0 where there is none yet.
func ReadPointer(ctx context.Context, documents coord.Documents, shard base.Shard) (*Pointer, base.Revision, error) {
	doc, err := documents.Get(ctx, pointerPrefix+shard.String())
	if errors.Is(err, base.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading checkpoint pointer of %s: %w", shard, err)
	}
	p, err := decodePointer(doc.Value)
	if err != nil {
		return nil, 0, fmt.Errorf("reading checkpoint pointer of %s: %w", shard, err)
	}
	return &p, doc.Revision, nil
}

// maxAdvances is how often a pointer that others change meanwhile is tried.
const maxAdvances = 5

// errBehind says that the pointer names a checkpoint that is as new or newer.
var errBehind = errors.New("another checkpoint is as new")

// advance moves the pointer to a newer checkpoint, which was folded from that of
// revision from. It never moves back: errBehind. A reply that was lost is found out
// by reading again.
func advance(ctx context.Context, documents coord.Documents, shard base.Shard, to Ref, from base.Revision) (Pointer, error) {
	var last error
	for range maxAdvances {
		old, revision, err := ReadPointer(ctx, documents, shard)
		if err != nil {
			return Pointer{}, err
		}
		next := Pointer{Current: to}
		if old != nil {
			if old.Current.Key == to.Key {
				return *old, nil
			}
			if old.Current.Revision >= to.Revision {
				return *old, errBehind
			}
			next.Previous = &old.Current
			if from < old.Current.Revision {
				next.Previous = old.Previous // the newest could not be read
			}
		}
		if last = put(ctx, documents, shard, next, revision); last == nil {
			return next, nil
		}
		if !errors.Is(last, base.ErrConflict) && !errors.Is(last, base.ErrExists) && !errors.Is(last, base.ErrUnknown) {
			break
		}
	}
	return Pointer{}, fmt.Errorf("advancing checkpoint pointer of %s: %w", shard, last)
}

// name makes the pointer of a log that was made anew say p, unless it is as new:
// errBehind.
func name(ctx context.Context, documents coord.Documents, shard base.Shard, p Pointer) error {
	old, revision, err := ReadPointer(ctx, documents, shard)
	if err != nil {
		return err
	}
	if old != nil && old.Current.Revision >= p.Current.Revision {
		return errBehind
	}
	if err := put(ctx, documents, shard, p, revision); err != nil {
		return fmt.Errorf("naming the checkpoint of %s: %w", shard, err)
	}
	return nil
}

func put(ctx context.Context, documents coord.Documents, shard base.Shard, p Pointer, revision base.Revision) error {
	data, err := p.encode()
	if err != nil {
		return err
	}
	key := pointerPrefix + shard.String()
	if revision == 0 {
		_, err = documents.Create(ctx, key, data, 0)
	} else {
		_, err = documents.Update(ctx, key, data, revision, 0)
	}
	return err
}
