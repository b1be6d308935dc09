package cursor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// Limits of groups.
const (
	// MaxGroups is the most groups of a cluster.
	MaxGroups = 1000
	// MaxMembers is the most members of a group.
	MaxMembers = 256
	// MaxGroupPartitions is the most partitions that a group remembers, and
	// MaxRanges the most ranges of streams that one member may want.
	MaxGroupPartitions = 65536
	MaxRanges          = 4096
)

// roster is the document of a group: its members and who owns which partition.
// Its functions are pure; whoever changes it stores it by compare-and-set.
type roster struct {
	// Members by name.
	Members []enrolled
	// Streams are all that the group was ever given, so that commits are found,
	// by name and id.
	Streams []shared
}

// enrolled is one member.
type enrolled struct {
	// Name is the member's across restarts, Session that of one stay.
	Name, Session string
	// Label says for people where it runs.
	Label string
	Wants []Range
}

// shared is a stream and the names of the owners of its partitions, empty for none.
type shared struct {
	Stream Stream
	Owners []string
}

// session returns the member of a session.
func (r *roster) session(session string) (enrolled, bool) {
	i := slices.IndexFunc(r.Members, func(m enrolled) bool { return m.Session == session })
	if i < 0 {
		return enrolled{}, false
	}
	return r.Members[i], true
}

// named returns the member of a name.
func (r *roster) named(name string) (enrolled, bool) {
	i, found := slices.BinarySearchFunc(r.Members, name, func(m enrolled, name string) int { return cmp.Compare(m.Name, name) })
	if !found {
		return enrolled{}, false
	}
	return r.Members[i], true
}

// after returns the member that the one of a name watches: the next by name.
func (r *roster) after(name string) enrolled {
	for _, m := range r.Members {
		if m.Name > name {
			return m
		}
	}
	return r.Members[0]
}

// placesOf returns the partitions that a member owns.
func (r *roster) placesOf(name string) (places []Place) {
	for _, s := range r.Streams {
		for p, owner := range s.Owners {
			if owner == name {
				places = append(places, Place{Stream: s.Stream, Partition: base.Partition(p)})
			}
		}
	}
	return places
}

// with returns the roster with a member enrolled, in place of one of its name.
func (r roster) with(m enrolled) roster {
	members := slices.DeleteFunc(slices.Clone(r.Members), func(o enrolled) bool { return o.Name == m.Name })
	members = append(members, m)
	slices.SortFunc(members, func(x, y enrolled) int { return cmp.Compare(x.Name, y.Name) })
	return r.assigned(members)
}

// without returns the roster without the members that gone chooses.
func (r roster) without(gone func(enrolled) bool) roster {
	return r.assigned(slices.DeleteFunc(slices.Clone(r.Members), gone))
}

// assigned returns the roster of these members, with every partition assigned.
func (r roster) assigned(members []enrolled) roster {
	next := roster{Members: members, Streams: make([]shared, 0, len(r.Streams))}
	for _, s := range r.Streams {
		next.Streams = append(next.Streams, shared{Stream: s.Stream, Owners: slices.Clone(s.Owners)})
	}
	candidates := make([]Candidate, len(members))
	for i, m := range members {
		candidates[i] = Candidate{Name: m.Name, Wants: m.Wants}
		for _, wanted := range m.Wants {
			next.grow(wanted)
		}
	}
	var partitions []Assigned
	for _, s := range next.Streams {
		for p, owner := range s.Owners {
			partitions = append(partitions, Assigned{Place: Place{Stream: s.Stream, Partition: base.Partition(p)}, Owner: owner})
		}
	}
	partitions = Assign(candidates, partitions)
	for _, s := range next.Streams {
		for p := range s.Owners {
			s.Owners[p], partitions = partitions[0].Owner, partitions[1:]
		}
	}
	return next
}

// grow makes room for the partitions of a range.
func (r *roster) grow(wanted Range) {
	i, found := slices.BinarySearchFunc(r.Streams, wanted.Stream, func(s shared, o Stream) int { return compareStreams(s.Stream, o) })
	if !found {
		r.Streams = slices.Insert(r.Streams, i, shared{Stream: wanted.Stream})
	}
	if missing := int(wanted.Last) + 1 - len(r.Streams[i].Owners); missing > 0 {
		r.Streams[i].Owners = append(r.Streams[i].Owners, make([]string, missing)...)
	}
}

func compareStreams(a, b Stream) int {
	return cmp.Or(cmp.Compare(a.Name.String(), b.Name.String()), cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.ID, b.ID))
}

// forget returns the roster without streams that nobody wants and gone chooses,
// and those streams.
func (r roster) forget(gone func(Stream) bool) (kept roster, forgotten []Stream) {
	kept.Members = r.Members
	for _, s := range r.Streams {
		wanted := slices.ContainsFunc(r.Members, func(m enrolled) bool {
			return slices.ContainsFunc(m.Wants, func(w Range) bool { return w.Stream.same(s.Stream) })
		})
		if !wanted && gone(s.Stream) {
			forgotten = append(forgotten, s.Stream)
			continue
		}
		kept.Streams = append(kept.Streams, s)
	}
	return kept, forgotten
}

// check refuses a roster over the limits, as ErrInvalid.
func (r *roster) check() error {
	if len(r.Members) > MaxMembers {
		return fmt.Errorf("%w: a group of %d members: the limit is %d", base.ErrInvalid, len(r.Members), MaxMembers)
	}
	partitions := 0
	for _, s := range r.Streams {
		partitions += len(s.Owners)
	}
	if partitions > MaxGroupPartitions {
		return fmt.Errorf("%w: a group of %d partitions: the limit is %d; use several groups", base.ErrInvalid, partitions, MaxGroupPartitions)
	}
	for _, m := range r.Members {
		if len(m.Wants) > MaxRanges {
			return fmt.Errorf("%w: a member that wants %d ranges of streams: the limit is %d", base.ErrInvalid, len(m.Wants), MaxRanges)
		}
	}
	return nil
}

// storedRoster is a roster as JSON. What members want is mostly the same, so each
// distinct list is stored once.
type storedRoster struct {
	Version int            `json:"version"`
	Streams []storedShared `json:"streams,omitempty"`
	// Subscriptions are lists of [stream, first, last].
	Subscriptions [][][3]int     `json:"subscriptions,omitempty"`
	Members       []storedMember `json:"members,omitempty"`
}

type storedShared struct {
	Shard     base.Shard    `json:"shard"`
	ID        base.StreamID `json:"id"`
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Owners    []int         `json:"owners"` // indexes of members, -1 for none
}

type storedMember struct {
	Name         string `json:"name"`
	Session      string `json:"session"`
	Label        string `json:"label,omitempty"`
	Subscription int    `json:"subscription"`
}

func (r *roster) encode() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	out := storedRoster{Version: documentVersion}
	owner := map[string]int{"": -1}
	for i, m := range r.Members {
		owner[m.Name] = i
	}
	for _, s := range r.Streams {
		entry := storedShared{Shard: s.Stream.Shard, ID: s.Stream.ID, Namespace: s.Stream.Name.Namespace, Name: s.Stream.Name.Name, Owners: make([]int, len(s.Owners))}
		for p, name := range s.Owners {
			entry.Owners[p] = owner[name]
		}
		out.Streams = append(out.Streams, entry)
	}
	for _, m := range r.Members {
		wants := make([][3]int, len(m.Wants))
		for i, w := range m.Wants {
			stream := slices.IndexFunc(r.Streams, func(s shared) bool { return s.Stream.same(w.Stream) })
			wants[i] = [3]int{stream, int(w.First), int(w.Last)}
		}
		subscription := slices.IndexFunc(out.Subscriptions, func(o [][3]int) bool { return slices.Equal(o, wants) })
		if subscription < 0 {
			subscription = len(out.Subscriptions)
			out.Subscriptions = append(out.Subscriptions, wants)
		}
		out.Members = append(out.Members, storedMember{Name: m.Name, Session: m.Session, Label: m.Label, Subscription: subscription})
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding group: %w", err)
	}
	return data, coord.CheckData(data, coord.MaxRecordBytes)
}

// decodeRoster reads what encode wrote. Bytes that no group has are ErrCorrupt,
// those of a newer version ErrNewerFormat.
func decodeRoster(data []byte) (roster, error) {
	var in storedRoster
	if err := decodeJSON(data, &in, func() int { return in.Version }); err != nil {
		return roster{}, fmt.Errorf("decoding group: %w", err)
	}
	r, err := in.roster()
	if err == nil {
		err = r.checkOrder()
	}
	if err != nil {
		return roster{}, fmt.Errorf("decoding group: %w", base.WithClass(base.ErrCorrupt, err))
	}
	return r, nil
}

func (in *storedRoster) roster() (r roster, err error) {
	for _, s := range in.Streams {
		entry := shared{
			Stream: Stream{Shard: s.Shard, ID: s.ID, Name: base.StreamName{Namespace: s.Namespace, Name: s.Name}},
			Owners: make([]string, len(s.Owners)),
		}
		for p, owner := range s.Owners {
			if owner < -1 || owner >= len(in.Members) {
				return roster{}, fmt.Errorf("owner %d of %d members", owner, len(in.Members))
			}
			if owner >= 0 {
				entry.Owners[p] = in.Members[owner].Name
			}
		}
		r.Streams = append(r.Streams, entry)
	}
	for _, m := range in.Members {
		if m.Subscription < 0 || m.Subscription >= len(in.Subscriptions) {
			return roster{}, fmt.Errorf("subscription %d of %d", m.Subscription, len(in.Subscriptions))
		}
		member := enrolled{Name: m.Name, Session: m.Session, Label: m.Label}
		for _, w := range in.Subscriptions[m.Subscription] {
			if w[0] < 0 || w[0] >= len(r.Streams) || w[1] < 0 || w[2] < w[1] || w[2] >= len(r.Streams[w[0]].Owners) {
				return roster{}, fmt.Errorf("range %v of %d streams", w, len(r.Streams))
			}
			member.Wants = append(member.Wants, Range{Stream: r.Streams[w[0]].Stream, First: base.Partition(w[1]), Last: base.Partition(w[2])}) //nolint:gosec // checked
		}
		r.Members = append(r.Members, member)
	}
	return r, r.check()
}

// checkOrder refuses members or streams that are not in order, or twice there.
func (r *roster) checkOrder() error {
	for i, m := range r.Members {
		if CheckName(m.Name) != nil || CheckName(m.Session) != nil || i > 0 && r.Members[i-1].Name >= m.Name {
			return fmt.Errorf("member %q of session %q", m.Name, m.Session)
		}
	}
	for i := range r.Streams {
		if i > 0 && compareStreams(r.Streams[i-1].Stream, r.Streams[i].Stream) >= 0 {
			return fmt.Errorf("stream %s after %s", r.Streams[i].Stream.Name, r.Streams[i-1].Stream.Name)
		}
	}
	return nil
}
