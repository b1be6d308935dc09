package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// DropNamespace drops a namespace that no stream is in; ErrNamespaceNotEmpty
// otherwise. Data of streams that were deleted without a purge stays.
//
// Streams and namespaces are in different logs, so the drop first seals the
// namespace in every shard: a shard that holds a stream refuses, and then all seals
// are lifted again. A drop that was broken off leaves the namespace sealed; dropping
// it again goes on, or lifts the seals. Of several that drop at once the one that
// came last goes on, the others get base.ErrConflict.
func (c *Catalog) DropNamespace(ctx context.Context, name string) error {
	err := c.dropNamespace(ctx, name)
	if err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	return nil
}

func (c *Catalog) dropNamespace(ctx context.Context, name string) error {
	if err := needVersion(2, append([]Ledger{c.meta}, c.shards...)...); err != nil {
		return err
	}
	now, exists := c.namespace(name)
	stream := c.streamIn(name)
	switch {
	case !exists && stream == "":
		return ErrNoSuchNamespace
	case stream != "" && (!exists || !c.sealed(now)):
		return fmt.Errorf("stream %s is in it: %w", stream, ErrNamespaceNotEmpty)
	}
	claim, err := c.claim(ctx, now)
	if err != nil {
		return err
	}
	seals := seals{catalog: c, namespace: name, claim: claim}
	if err := seals.set(ctx); err != nil {
		return err
	}
	out, err := c.meta.Publish(ctx, &commitpb.NamespaceDrop{NamespaceId: uint64(now.ID)})
	switch {
	case err != nil:
		return err
	case !out.OK() && out.Rejected != shard.NoNamespace: // someone else finished it
		return refusal(out.Rejected)
	}
	return nil
}

// sealed reports whether a drop of this incarnation was begun.
func (c *Catalog) sealed(n Namespace) (sealed bool) {
	for _, l := range c.shards {
		l.Inspect(func(s *shard.State) {
			id, ok := s.Sealed(n.Name)
			sealed = sealed || ok && id >= n.ID
		})
	}
	return sealed
}

// claim returns a number for one attempt to drop a namespace: the revision of a
// record in the log meta that changes nothing but the namespace's version. It is
// higher than the namespace's id and all earlier claims, and lower than the id of
// any namespace that takes this one's place, so that as the id of a seal it keeps
// streams out of this incarnation alone, and whoever claimed it can lift it and
// nobody else.
func (c *Catalog) claim(ctx context.Context, n Namespace) (base.NamespaceID, error) {
	for range maxChanges {
		out, err := c.meta.Publish(ctx, &commitpb.NamespaceUpdate{NamespaceId: uint64(n.ID), ExpectedVersion: n.Version})
		switch {
		case err != nil:
			return 0, err
		case out.OK():
			return base.NamespaceID(out.Revision), nil
		case out.Rejected != shard.VersionChanged:
			return 0, refusal(out.Rejected)
		}
		now, ok := c.namespace(n.Name)
		if !ok || now.ID != n.ID {
			return 0, ErrNoSuchNamespace
		}
		n = now
	}
	return 0, fmt.Errorf("others keep changing it: %w", base.ErrConflict)
}

// seals are those of one attempt to drop a namespace.
type seals struct {
	catalog   *Catalog
	namespace string
	claim     base.NamespaceID
}

// errOvertaken says that a later attempt goes on in place of this one.
var errOvertaken = fmt.Errorf("someone else is dropping it: %w", base.ErrConflict)

// set seals the namespace in every shard, or in none. The second round proves that
// all seals held at one moment, its beginning: each was there before and was not
// lifted since. Whoever meets a seal finds no stream behind it, so that from then on
// nobody has a reason to lift one.
func (s seals) set(ctx context.Context) error {
	for _, proof := range []bool{false, true} {
		for _, l := range s.catalog.shards {
			err := s.seal(ctx, l, proof)
			if errors.Is(err, ErrNamespaceNotEmpty) || errors.Is(err, errOvertaken) {
				return errors.Join(err, s.undo(ctx))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s seals) seal(ctx context.Context, l Ledger, proof bool) error {
	out, err := l.Publish(ctx, &commitpb.NamespaceSeal{Namespace: s.namespace, NamespaceId: uint64(s.claim)})
	switch {
	case err != nil:
		return err
	case out.Rejected == shard.NotEmpty:
		return fmt.Errorf("stream %s is in it: %w", s.catalog.streamIn(s.namespace), ErrNamespaceNotEmpty)
	case out.Rejected != shard.AlreadyPublished && !out.OK():
		return refusal(out.Rejected)
	case out.OK() && proof, s.at(l) != s.claim:
		return errOvertaken
	}
	return nil
}

// at returns the id under which a shard is sealed.
func (s seals) at(l Ledger) (id base.NamespaceID) {
	l.Inspect(func(st *shard.State) { id, _ = st.Sealed(s.namespace) })
	return id
}

// undo lifts the seals of this attempt.
func (s seals) undo(ctx context.Context) error {
	var errs []error
	for _, l := range s.catalog.shards {
		_, err := l.Publish(ctx, &commitpb.NamespaceSeal{Namespace: s.namespace, NamespaceId: uint64(s.claim), Undo: true})
		if err != nil {
			errs = append(errs, fmt.Errorf("lifting a seal, drop it again: %w", err))
		}
	}
	return errors.Join(errs...)
}
