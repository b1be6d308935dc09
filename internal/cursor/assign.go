package cursor

import (
	"cmp"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Range is a part of a stream that a member wants: partitions First to Last, both
// included, which exist.
type Range struct {
	Stream      Stream
	First, Last base.Partition
}

// contains reports whether a place lies in the range.
func (r Range) contains(p Place) bool {
	return r.Stream.same(p.Stream) && r.First <= p.Partition && p.Partition <= r.Last
}

// Candidate is a member to assign partitions to.
type Candidate struct {
	// Name is unique in the group.
	Name string
	// Wants are what it takes partitions of.
	Wants []Range
}

// Assigned is a partition and the name of its owner, empty for none.
type Assigned struct {
	Place Place
	Owner string
}

// Assign gives each partition to one of the members that want it, if any does, and
// returns it with the owners set. It is a function of its arguments alone.
//
// A partition stays with its owner while that is a member that wants it, unless
// the owner has at least two more than another member that wants it. So where all
// want the same, no member has two partitions more than another, a member that
// joins moves at most ⌈partitions/members⌉ of them, all to itself, and one that
// leaves only its own.
func Assign(members []Candidate, partitions []Assigned) []Assigned {
	a := newAssignment(members, partitions)
	for i := range a.partitions {
		if owner, ok := a.index[a.partitions[i].Owner]; ok && a.wants(owner, i) {
			a.give(i, owner)
		} else {
			a.partitions[i].Owner = ""
		}
	}
	for i := range a.partitions {
		if a.partitions[i].Owner == "" {
			if owner := a.poorest(i); owner >= 0 {
				a.give(i, owner)
			}
		}
	}
	for a.level() {
	}
	return a.partitions
}

// assignment is one computation of Assign.
type assignment struct {
	members    []Candidate
	index      map[string]int
	partitions []Assigned
	owned      [][]int // per member, indexes of its partitions
}

func newAssignment(members []Candidate, partitions []Assigned) *assignment {
	a := &assignment{members: slices.Clone(members), partitions: slices.Clone(partitions), index: make(map[string]int, len(members))}
	slices.SortFunc(a.members, func(x, y Candidate) int { return cmp.Compare(x.Name, y.Name) })
	for i, m := range a.members {
		a.index[m.Name] = i
	}
	a.owned = make([][]int, len(a.members))
	return a
}

func (a *assignment) wants(member, partition int) bool {
	return slices.ContainsFunc(a.members[member].Wants, func(r Range) bool { return r.contains(a.partitions[partition].Place) })
}

func (a *assignment) give(partition, member int) {
	a.partitions[partition].Owner = a.members[member].Name
	a.owned[member] = append(a.owned[member], partition)
}

// poorest returns the member with the fewest partitions among those that want one,
// the first by name, or -1.
func (a *assignment) poorest(partition int) int {
	best := -1
	for m := range a.members {
		if (best < 0 || len(a.owned[m]) < len(a.owned[best])) && a.wants(m, partition) {
			best = m
		}
	}
	return best
}

// level moves one partition from a member that has many to one that has at least
// two fewer, and reports whether it could. Each move makes the counts more equal,
// so this ends.
func (a *assignment) level() bool {
	order := make([]int, len(a.members))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return len(a.owned[x]) - len(a.owned[y]) })
	for _, rich := range slices.Backward(order) {
		for _, poor := range order {
			if len(a.owned[rich]) < len(a.owned[poor])+2 {
				break
			}
			if a.move(rich, poor) {
				return true
			}
		}
	}
	return false
}

// move gives the last partition of one member that the other wants to the other.
func (a *assignment) move(from, to int) bool {
	for i, partition := range slices.Backward(a.owned[from]) {
		if a.wants(to, partition) {
			a.owned[from] = slices.Delete(a.owned[from], i, i+1)
			a.give(partition, to)
			return true
		}
	}
	return false
}
