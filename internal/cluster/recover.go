package cluster

import (
	"bytes"
	"context"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// Lost returns the identity of a cluster whose coordination store lost it: the
// object store has it and the other does not. A cluster that both know is
// base.ErrExists, one that the object store does not know base.ErrNotFound.
func Lost(ctx context.Context, coordination coord.Store, objects blob.Store) (Identity, error) {
	object, err := readObject(ctx, objects)
	if err != nil {
		return Identity{}, err
	}
	if object == nil {
		return Identity{}, fmt.Errorf("the object store %s holds no cluster that could be recovered: check the storage setting: %w", objects, base.ErrNotFound)
	}
	doc, err := readDocument(ctx, coordination.Documents())
	switch {
	case err != nil:
		return Identity{}, err
	case doc != nil && !bytes.Equal(doc, object):
		return Identity{}, fmt.Errorf("the coordination store %s belongs to another cluster than %s: %w", coordination, objects, base.ErrForeign)
	case doc != nil:
		return Identity{}, fmt.Errorf("the coordination store %s knows the cluster: there is nothing to recover; "+
			"if what it holds is damaged, stop every instance, move it away and recover again: %w", coordination, base.ErrExists)
	}
	return decodeIdentity(object)
}

// Restore writes the identity that Lost found into the coordination store. From
// then on instances open the cluster, so it comes last.
func Restore(ctx context.Context, coordination coord.Store, id Identity) error {
	want, err := id.encode()
	if err != nil {
		return err
	}
	found, err := writeDocument(ctx, coordination.Documents(), id)
	if err != nil {
		return err
	}
	if !bytes.Equal(found, want) {
		return fmt.Errorf("the coordination store %s was taken by another cluster meanwhile: %w", coordination, base.ErrForeign)
	}
	return nil
}
