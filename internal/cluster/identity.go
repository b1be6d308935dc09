// Package cluster creates a cluster and finds it again: one identity, written to
// the coordination store and to the object store, that both must agree on.
//
// The order of creation is what makes a crash harmless: the identity document
// (create-only decides a race), the identity object, then the first record of
// every log. An identity in one store without the other, or objects beside an
// empty log, is an error and never taken for a fresh cluster.
package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/oklog/ulid/v2"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/coord"
)

const (
	// identityDocument is the key of the identity in the coordination store.
	identityDocument = "identity"
	// identityObject is the key of the identity in the object store.
	identityObject = "cluster.json"
	// identityVersion is the version of the identity's JSON.
	identityVersion = 1
	// maxIdentityBytes bounds what is read as an identity.
	maxIdentityBytes = 4096
)

// Identity is what a cluster is created with and never changes.
type Identity struct {
	Cluster base.ClusterID
	Shards  int
}

type identityJSON struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Cluster string `json:"cluster"`
	Shards  int    `json:"shards"`
}

func (id Identity) encode() ([]byte, error) {
	return json.Marshal(identityJSON{
		Format: "lakestream-cluster", Version: identityVersion, Cluster: id.Cluster.String(), Shards: id.Shards,
	})
}

func decodeIdentity(data []byte) (Identity, error) {
	var j identityJSON
	if err := json.Unmarshal(data, &j); err != nil || j.Format != "lakestream-cluster" {
		return Identity{}, fmt.Errorf("decoding cluster identity: not an identity of this software: %w", base.ErrForeign)
	}
	if j.Version < 1 {
		return Identity{}, fmt.Errorf("decoding cluster identity: version %d: %w", j.Version, base.ErrCorrupt)
	}
	if j.Version > identityVersion {
		return Identity{}, fmt.Errorf("decoding cluster identity: version %d: %w", j.Version, base.ErrNewerFormat)
	}
	id, err := base.ParseClusterID(j.Cluster)
	if err != nil {
		return Identity{}, fmt.Errorf("decoding cluster identity: %w", base.WithClass(base.ErrCorrupt, err))
	}
	if j.Shards < 1 || j.Shards > base.MaxShards {
		return Identity{}, fmt.Errorf("decoding cluster identity: %d shards: %w", j.Shards, base.ErrCorrupt)
	}
	return Identity{Cluster: id, Shards: j.Shards}, nil
}

// newIdentity draws a fresh one.
func newIdentity(shards int, clock base.Clock, entropy io.Reader) (Identity, error) {
	id, err := ulid.New(ulid.Timestamp(clock.Now()), entropy)
	if err != nil {
		return Identity{}, fmt.Errorf("drawing cluster id: %w", err)
	}
	return Identity{Cluster: base.ClusterID(id), Shards: shards}, nil
}

func readDocument(ctx context.Context, docs coord.Documents) ([]byte, error) {
	doc, err := docs.Get(ctx, identityDocument)
	if errors.Is(err, base.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading cluster identity from coordination: %w", err)
	}
	return doc.Value, nil
}

func readObject(ctx context.Context, store blob.Store) ([]byte, error) {
	info, err := store.Stat(ctx, identityObject)
	if errors.Is(err, base.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading cluster identity from the object store: %w", err)
	}
	if info.Size > maxIdentityBytes {
		return nil, fmt.Errorf("object %s of %d bytes is no cluster identity: %w", identityObject, info.Size, base.ErrForeign)
	}
	data, err := store.ReadRange(ctx, identityObject, 0, info.Size, nil)
	if err != nil {
		return nil, fmt.Errorf("reading cluster identity from the object store: %w", err)
	}
	return data, nil
}

// writeDocument creates the identity document, or returns the one that someone
// else created first.
func writeDocument(ctx context.Context, docs coord.Documents, id Identity) ([]byte, error) {
	data, err := id.encode()
	if err != nil {
		return nil, fmt.Errorf("encoding cluster identity: %w", err)
	}
	_, err = docs.Create(ctx, identityDocument, data, 0)
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, base.ErrExists), errors.Is(err, base.ErrUnknown):
		found, readErr := readDocument(ctx, docs)
		if found != nil || readErr != nil {
			return found, readErr
		}
	}
	return nil, fmt.Errorf("writing cluster identity to coordination: %w", err)
}

// writeObject creates the identity object; one that exists must be equal. It is
// found by its name alone, so it must never be seen half written.
func writeObject(ctx context.Context, store blob.Store, data []byte) error {
	err := createWhole(ctx, store, data)
	if err == nil {
		return nil
	}
	found, readErr := readObject(ctx, store)
	if readErr == nil && bytes.Equal(found, data) {
		return nil
	}
	if errors.Is(err, base.ErrExists) {
		return fmt.Errorf("the object store %s belongs to another cluster: %w", store, base.ErrForeign)
	}
	return fmt.Errorf("writing cluster identity to the object store: %w", err)
}

func createWhole(ctx context.Context, store blob.Store, data []byte) error {
	w, err := store.Create(ctx, identityObject)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Commit()
}
