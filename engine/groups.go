package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/cursor"
)

// ErrActive says that a consumer group has members and therefore cannot be sought or
// deleted.
var ErrActive = cursor.ErrActive

// States of a group.
const (
	// GroupStable has members, and each owns what it shall own.
	GroupStable = "STABLE"
	// GroupRebalancing has partitions that change hands.
	GroupRebalancing = "REBALANCING"
	// GroupInactive has no member.
	GroupInactive = "INACTIVE"
)

// GroupStatus is a consumer group as it stands at one moment. Its JSON is stable:
// fields are added, never renamed.
type GroupStatus struct {
	Name string `json:"name"`
	// State is STABLE, REBALANCING or INACTIVE.
	State string `json:"state"`
	// Generation grows with every change of the members.
	Generation uint64 `json:"generation"`
	// Lag counts the live records that the group has not consumed.
	Lag int64 `json:"lag"`
	// Stuck counts partitions whose owner waits for a batch for longer than its
	// rebalance_timeout.
	Stuck      int                    `json:"stuck"`
	Members    []GroupMemberStatus    `json:"members"`
	Partitions []GroupPartitionStatus `json:"partitions"`
}

// GroupMemberStatus is a member of a group.
type GroupMemberStatus struct {
	Name string `json:"name"`
	Host string `json:"host,omitempty"`
	// Live says that its session has not timed out.
	Live       bool `json:"live"`
	Partitions int  `json:"partitions"`
}

// GroupPartitionStatus is how far a group is in one partition.
type GroupPartitionStatus struct {
	Stream    string    `json:"stream"`
	Partition Partition `json:"partition"`
	// Member owns the partition, or shall; empty when nobody does.
	Member string `json:"member,omitempty"`
	// Committed is the first offset that was not consumed; nil without a commit.
	Committed *Offset `json:"committed,omitempty"`
	Head      Offset  `json:"head"`
	Lag       int64   `json:"lag"`
	Stuck     bool    `json:"stuck,omitempty"`
}

// Groups returns every consumer group, by name.
func (e *Engine) Groups(ctx context.Context) ([]GroupStatus, error) {
	names, err := cursor.GroupNames(ctx, e.coordination.Documents())
	if err != nil {
		return nil, err
	}
	groups := make([]GroupStatus, 0, len(names))
	for _, name := range names {
		g, err := e.Group(ctx, name)
		if errors.Is(err, base.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// Group returns a consumer group, or ErrNotFound. Partitions of streams that were
// dropped are left out.
func (e *Engine) Group(ctx context.Context, name string) (GroupStatus, error) {
	found, err := cursor.DescribeGroup(ctx, e.coordination.Documents(), name)
	if err != nil {
		return GroupStatus{}, err
	}
	g := GroupStatus{
		Name: name, State: GroupInactive, Generation: uint64(found.Generation),
		Members: []GroupMemberStatus{}, Partitions: []GroupPartitionStatus{},
	}
	if found.Active() {
		g.State = GroupStable
	}
	for _, m := range found.Members {
		g.Members = append(g.Members, GroupMemberStatus{Name: m.Name, Host: m.Label, Live: m.Live, Partitions: m.Partitions})
	}
	for i := range found.Partitions {
		p := &found.Partitions[i]
		log, err := e.logAt(p.Place)
		if errors.Is(err, base.ErrNotFound) {
			continue
		}
		if err != nil {
			return GroupStatus{}, err
		}
		if g.State == GroupStable && p.Owner != p.Assigned {
			g.State = GroupRebalancing
		}
		if err := g.add(p, log); err != nil {
			return GroupStatus{}, err
		}
	}
	return g, nil
}

func (g *GroupStatus) add(p *cursor.GroupPartition, log *Log) error {
	start, head, err := log.Bounds()
	if err != nil {
		return err
	}
	status := GroupPartitionStatus{
		Stream: p.Place.Stream.Name.String(), Partition: p.Place.Partition, Member: p.Owner, Head: head,
		Lag: max(0, int64(head-max(start, p.Next))), Stuck: p.Stalled,
	}
	if status.Member == "" {
		status.Member = p.Assigned
	}
	if p.Committed {
		status.Committed = &p.Next
	}
	if status.Stuck {
		g.Stuck++
	}
	g.Lag += status.Lag
	g.Partitions = append(g.Partitions, status)
	return nil
}

func (e *Engine) logAt(place Place) (*Log, error) {
	stream, err := e.streamAt(place)
	if err != nil {
		return nil, err
	}
	return stream.Log(place.Partition)
}

// DeleteGroup deletes a consumer group and its commits. One that has members is
// ErrActive, one that does not exist ErrNotFound.
func (e *Engine) DeleteGroup(ctx context.Context, name string) error {
	return cursor.DeleteGroup(ctx, e.coordination.Documents(), name)
}

// SeekGroup makes a consumer group go on at a position, in every partition that it
// was ever given, and returns how many those are. An offset beyond the head of one
// is ErrInvalid and moves none. A group that has members is ErrActive, one that does
// not exist ErrNotFound.
func (e *Engine) SeekGroup(ctx context.Context, name string, to Position) (int, error) {
	if to.Kind == Committed {
		return 0, fmt.Errorf("seeking group %s: committed is where it is: %w", name, base.ErrInvalid)
	}
	to = to.Fixed(e.clock.Now())
	return cursor.SeekGroup(ctx, e.coordination.Documents(), e.clock, name, func(place Place) (Offset, bool, error) {
		log, err := e.logAt(place)
		if errors.Is(err, base.ErrNotFound) {
			return 0, false, nil // dropped
		}
		if err != nil {
			return 0, false, err
		}
		at, err := log.Resolve(ctx, to)
		return at, err == nil, err
	})
}

// addGroups shows the consumer groups, and which of them do not get on.
func (st *Status) addGroups(ctx context.Context, e *Engine) {
	groups, err := e.Groups(ctx)
	if err != nil {
		st.problem("consumer groups", err, "check that NATS runs and can be reached")
	}
	st.Groups = append([]GroupStatus{}, groups...)
	for _, g := range groups {
		if g.Stuck > 0 {
			st.problem("consumer group "+g.Name, fmt.Errorf("a batch was not accepted for longer than rebalance_timeout in %d of its partitions", g.Stuck),
				"see lakestream group describe "+g.Name+", and what the pipelines of those members wait for")
		}
	}
}
