package cursor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lakestream-go/lakestream/internal/base"
)

// drawStreams draws streams and all their partitions, without owners.
func drawStreams(t *rapid.T) ([]Range, []Assigned) {
	var wants []Range
	var partitions []Assigned
	for i := range rapid.IntRange(1, 3).Draw(t, "streams") {
		s := Stream{ID: base.StreamID(i + 1), Name: base.StreamName{Namespace: "shop", Name: fmt.Sprint(i)}}
		n := base.Partition(rapid.Int32Range(1, 20).Draw(t, "partitions"))
		wants = append(wants, Range{Stream: s, Last: n - 1})
		for p := range n {
			partitions = append(partitions, Assigned{Place: Place{s, p}})
		}
	}
	return wants, partitions
}

// drawAlike draws members that want the same.
func drawAlike(t *rapid.T, wants []Range) []Candidate {
	members := make([]Candidate, rapid.IntRange(1, 12).Draw(t, "members"))
	for i := range members {
		members[i] = Candidate{Name: fmt.Sprintf("m%02d", i), Wants: wants}
	}
	return members
}

// drawDifferent draws members that want parts of it.
func drawDifferent(t *rapid.T, wants []Range) []Candidate {
	members := make([]Candidate, rapid.IntRange(0, 6).Draw(t, "members"))
	for i := range members {
		members[i].Name = fmt.Sprint(i)
		for _, w := range wants {
			if rapid.Bool().Draw(t, "wanted") {
				w.First = base.Partition(rapid.Int32Range(0, int32(w.Last)).Draw(t, "first"))
				members[i].Wants = append(members[i].Wants, w)
			}
		}
	}
	return members
}

func counts(members []Candidate, partitions []Assigned) map[string]int {
	n := map[string]int{}
	for _, m := range members {
		n[m.Name] = 0
	}
	for _, p := range partitions {
		n[p.Owner]++
	}
	return n
}

func requireLevel(t require.TestingT, members []Candidate, partitions []Assigned) {
	low, high := len(partitions), 0
	for _, n := range counts(members, partitions) {
		low, high = min(low, n), max(high, n)
	}
	require.LessOrEqual(t, high-low, 1, "nobody has two more than another")
}

func moved(before, after []Assigned) (places []int) {
	for i := range before {
		if before[i].Owner != after[i].Owner {
			places = append(places, i)
		}
	}
	return places
}

func TestAssignmentIsAFunctionOfItsArguments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wants, partitions := drawStreams(t)
		members := drawAlike(t, wants)
		want := Assign(members, partitions)
		shuffled := slices.Clone(members)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		require.Equal(t, want, Assign(shuffled, partitions), "the order in which members are named does not matter")
		require.Empty(t, partitions[0].Owner, "arguments stay as they are")
		require.Equal(t, want, Assign(members, want), "what is well assigned stays")
		requireLevel(t, members, want)
	})
}

func TestAJoinMovesItsShareAndToItselfAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wants, partitions := drawStreams(t)
		members := drawAlike(t, wants)
		before := Assign(members, partitions)
		name := fmt.Sprintf("m%02d-new", rapid.IntRange(0, 12).Draw(t, "place"))
		joined := append(slices.Clone(members), Candidate{Name: name, Wants: wants})
		after := Assign(joined, before)
		changed := moved(before, after)
		require.LessOrEqual(t, len(changed), (len(partitions)+len(joined)-1)/len(joined))
		for _, i := range changed {
			require.Equal(t, name, after[i].Owner)
		}
		requireLevel(t, joined, after)
	})
}

func TestALeaveMovesOnlyWhatWasTheLeavers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wants, partitions := drawStreams(t)
		members := drawAlike(t, wants)
		before := Assign(members, partitions)
		gone := rapid.IntRange(0, len(members)-1).Draw(t, "gone")
		left := slices.Delete(slices.Clone(members), gone, gone+1)
		after := Assign(left, before)
		for _, i := range moved(before, after) {
			require.Equal(t, members[gone].Name, before[i].Owner)
		}
		if len(left) > 0 {
			requireLevel(t, left, after)
		}
	})
}

func TestAnyHistoryOfMembersStaysLevel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wants, partitions := drawStreams(t)
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			var members []Candidate
			for i := range 10 {
				if rapid.Bool().Draw(t, "present") {
					members = append(members, Candidate{Name: fmt.Sprint(i), Wants: wants})
				}
			}
			partitions = Assign(members, partitions)
			if len(members) > 0 {
				requireLevel(t, members, partitions)
			}
		}
	})
}

// Members that want different things get only what they want; whatever anyone
// wants is someone's; and no single move would make it more level.
func TestMembersThatWantDifferentThings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wants, partitions := drawStreams(t)
		members := drawDifferent(t, wants)
		for i := range partitions { // whoever had them before
			partitions[i].Owner = rapid.SampledFrom([]string{"", "0", "1", "2", "gone"}).Draw(t, "owner")
		}
		after := Assign(members, partitions)
		n := counts(members, after)
		for _, p := range after {
			takers := 0
			for _, m := range members {
				if slices.ContainsFunc(m.Wants, func(r Range) bool { return r.contains(p.Place) }) {
					takers++
					require.LessOrEqual(t, n[p.Owner], n[m.Name]+1, "%s could take %s from %s", m.Name, p.Place, p.Owner)
				} else {
					require.NotEqual(t, m.Name, p.Owner)
				}
			}
			require.Equal(t, takers > 0, p.Owner != "")
		}
	})
}

func TestAFirstMemberTakesAllAndTheLastOneLeavesNothingOwned(t *testing.T) {
	s := Stream{ID: 1}
	partitions := []Assigned{{Place: Place{s, 0}}, {Place: Place{s, 1}}}
	all := Assign([]Candidate{{Name: "a", Wants: []Range{{Stream: s, Last: 1}}}}, partitions)
	require.Equal(t, map[string]int{"a": 2}, counts(nil, all))
	require.Equal(t, map[string]int{"": 2}, counts(nil, Assign(nil, all)))
}

func BenchmarkAssign(b *testing.B) {
	s := Stream{ID: 1}
	partitions := make([]Assigned, MaxGroupPartitions)
	for p := range partitions {
		partitions[p].Place = Place{s, base.Partition(p)}
	}
	members := make([]Candidate, 100)
	for i := range members {
		members[i] = Candidate{Name: fmt.Sprint(i), Wants: []Range{{Stream: s, Last: MaxGroupPartitions - 1}}}
	}
	before := Assign(members[1:], partitions)
	for b.Loop() {
		Assign(members, before)
	}
}
