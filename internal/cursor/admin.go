package cursor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// Group is a group as it stands at one moment.
type Group struct {
	Name string
	// Generation grows with every change of the members or of what they own.
	Generation base.Revision
	// Members by name.
	Members []GroupMember
	// Partitions are all that the group was ever given, by stream and number.
	Partitions []GroupPartition
}

// GroupMember is a member of a group.
type GroupMember struct {
	Name string
	// Label says where it runs.
	Label string
	// Live says that its session has not timed out.
	Live bool
	// Partitions counts those that shall be its own.
	Partitions int
}

// GroupPartition is how far a group has come in one partition.
type GroupPartition struct {
	Place Place
	// Assigned is the name of the member that shall own it, Owner of the one
	// that does; they differ while it changes hands. Empty means none.
	Assigned, Owner string
	// Next and Committed are as in Commit.
	Next      base.Offset
	Committed bool
	// Stalled says that the owner waits for a batch for too long.
	Stalled bool
	// Time is when the owner last wrote the commit, by its clock.
	Time base.Millis
}

// Active reports whether any member's session lasts.
func (g *Group) Active() bool {
	return slices.ContainsFunc(g.Members, func(m GroupMember) bool { return m.Live })
}

// GroupNames returns the names of all groups, sorted.
func GroupNames(ctx context.Context, documents coord.Documents) ([]string, error) {
	found, err := documents.List(ctx, groupKind+".")
	if err != nil {
		return nil, fmt.Errorf("listing groups: %w", err)
	}
	var names []string
	for _, entry := range found {
		if name, ok := nameOf(strings.TrimPrefix(entry.Key, groupKind+".")); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// DescribeGroup returns a group, or ErrNotFound. It costs a request for each member
// and each partition.
func DescribeGroup(ctx context.Context, documents coord.Documents, name string) (Group, error) {
	g, err := describe(ctx, documents, name)
	if err != nil {
		return Group{}, fmt.Errorf("reading group %s: %w", name, err)
	}
	return g, nil
}

func describe(ctx context.Context, documents coord.Documents, name string) (Group, error) {
	group, revision, err := existing(ctx, documents, name)
	if err != nil {
		return Group{}, err
	}
	live, err := liveSessions(ctx, documents, name)
	if err != nil {
		return Group{}, err
	}
	g := Group{Name: name, Generation: revision}
	for _, m := range group.Members {
		g.Members = append(g.Members, GroupMember{Name: m.Name, Label: m.Label, Live: live[m.Session], Partitions: len(group.placesOf(m.Name))})
	}
	for _, s := range group.Streams {
		for p, assigned := range s.Owners {
			place := Place{Stream: s.Stream, Partition: base.Partition(p)}
			doc, _, err := loadDocument(ctx, documents, place.key(commitKind, name))
			if err != nil {
				return Group{}, err
			}
			owner, _ := group.session(doc.Owner)
			partition := GroupPartition{Place: place, Assigned: assigned, Owner: owner.Name, Stalled: doc.Stalled && owner.Name != "", Time: doc.Time}
			if doc.Next != nil {
				partition.Next, partition.Committed = *doc.Next, true
			}
			g.Partitions = append(g.Partitions, partition)
		}
	}
	return g, nil
}

// existing returns the roster of a group that must exist.
func existing(ctx context.Context, documents coord.Documents, name string) (roster, base.Revision, error) {
	if err := CheckName(name); err != nil {
		return roster{}, 0, err
	}
	group, revision, err := loadRoster(ctx, documents, name)
	if err == nil && revision == 0 {
		err = base.ErrNotFound
	}
	return group, revision, err
}

// ErrActive says that a group has members and therefore cannot be changed by hand.
// It is definite.
var ErrActive = errors.New("the group has members: stop them, or wait until their sessions time out")

// disband empties a group that has no live member and returns it as it is then.
// Members that wake up later find themselves out of it, and what they would commit
// fenced.
func disband(ctx context.Context, documents coord.Documents, name string) (roster, base.Revision, error) {
	for range takeAttempts {
		group, revision, err := existing(ctx, documents, name)
		if err != nil {
			return roster{}, 0, err
		}
		live, err := liveSessions(ctx, documents, name)
		if err != nil {
			return roster{}, 0, err
		}
		if len(live) > 0 {
			return roster{}, 0, ErrActive
		}
		empty := group.assigned(nil)
		data, err := empty.encode()
		if err != nil {
			return roster{}, 0, err
		}
		revision, err = documents.Update(ctx, groupKey(name), data, revision, 0)
		if err == nil {
			return empty, revision, nil
		}
		if !errors.Is(err, base.ErrConflict) && !errors.Is(err, base.ErrUnknown) {
			return roster{}, 0, err
		}
	}
	return roster{}, 0, base.WithClass(base.ErrUnavailable, errors.New("the group changes again and again"))
}

// DeleteGroup deletes a group and what it has committed. One with a live member is
// ErrActive, one that does not exist ErrNotFound. After another error part of the
// commits may be gone; delete it again.
func DeleteGroup(ctx context.Context, documents coord.Documents, name string) error {
	group, revision, err := disband(ctx, documents, name)
	if err != nil {
		return fmt.Errorf("deleting group %s: %w", name, err)
	}
	for _, s := range group.Streams {
		if err := ForgetStream(ctx, documents, s.Stream, name); err != nil {
			return fmt.Errorf("deleting group %s: %w", name, err)
		}
	}
	if err := documents.Delete(ctx, groupKey(name), revision); err != nil {
		return fmt.Errorf("deleting group %s: %w", name, err)
	}
	return nil
}

// SeekGroup makes a group go on elsewhere: to returns the offset for each of its
// partitions, or false to leave it. It returns how many it moved. A group with a
// live member is ErrActive, one that does not exist ErrNotFound. After another error
// some partitions may have moved; seek again.
func SeekGroup(
	ctx context.Context, documents coord.Documents, clock base.Clock, name string, to func(Place) (base.Offset, bool, error),
) (int, error) {
	group, generation, err := disband(ctx, documents, name)
	if err != nil {
		return 0, fmt.Errorf("seeking group %s: %w", name, err)
	}
	moves, err := group.moves(to) // where to go is known for all before any moves
	if err != nil {
		return 0, fmt.Errorf("seeking group %s: %w", name, err)
	}
	for i, m := range moves {
		if err := put(ctx, documents, clock, m.place.key(commitKind, name), generation, m.next); err != nil {
			return i, fmt.Errorf("seeking group %s in %s: %w", name, m.place, err)
		}
	}
	return len(moves), nil
}

// move is where a group shall go on in a partition.
type move struct {
	place Place
	next  base.Offset
}

func (r *roster) moves(to func(Place) (base.Offset, bool, error)) (moves []move, _ error) {
	for _, s := range r.Streams {
		for p := range s.Owners {
			place := Place{Stream: s.Stream, Partition: base.Partition(p)}
			next, ok, err := to(place)
			if err != nil {
				return nil, fmt.Errorf("resolving the offset in %s: %w", place, err)
			}
			if ok {
				moves = append(moves, move{place, next})
			}
		}
	}
	return moves, nil
}

// put makes a cursor nobody's, at an offset.
func put(ctx context.Context, documents coord.Documents, clock base.Clock, key string, generation base.Revision, next base.Offset) error {
	for range takeAttempts {
		old, revision, err := loadDocument(ctx, documents, key)
		if err != nil {
			return err
		}
		if old.Generation > generation {
			return ErrActive // someone has joined since
		}
		doc := document{Next: &next, Generation: generation, Time: base.MillisOf(clock.Now())}
		data, err := doc.encode()
		if err != nil {
			return err
		}
		if revision == 0 {
			_, err = documents.Create(ctx, key, data, 0)
		} else {
			_, err = documents.Update(ctx, key, data, revision, 0)
		}
		if err == nil || !errors.Is(err, base.ErrConflict) && !errors.Is(err, base.ErrExists) {
			return err
		}
	}
	return base.WithClass(base.ErrUnavailable, fmt.Errorf("document %s changes again and again", key))
}
