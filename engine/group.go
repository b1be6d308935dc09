package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/cursor"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// Selection chooses partitions of one stream, or of all whose names match.
type Selection struct {
	// Stream is the full name. Pattern, when set, stands in its place and
	// chooses every stream whose full name it matches, now and later.
	Stream  string
	Pattern *regexp.Regexp
	// All chooses every partition, those that the stream gets later too; else
	// First to Last, both included, as far as they exist.
	All         bool
	First, Last Partition
}

// SubscribeOptions say what to read, and with whom to share it.
type SubscribeOptions struct {
	// Group is the consumer group to join; empty means to read alone and to
	// commit nothing.
	Group string
	// InstanceID makes membership static: a restart within SessionTimeout moves
	// no partition. It must be unique in the group.
	InstanceID string
	// Selections are what to read. Those that name a stream must not overlap;
	// of patterns that match one the first counts.
	Selections []Selection
	// SessionTimeout, in whole seconds, is how long a silent member keeps its
	// partitions; 1 min by default.
	SessionTimeout time.Duration
	// RebalanceTimeout is how long a member may take to let go of a partition
	// before the next owner overrules it; 45 s by default.
	RebalanceTimeout time.Duration
	// Heartbeat is how often to look for changes of the group and of the
	// streams; 3 s by default.
	Heartbeat time.Duration
}

func (o SubscribeOptions) withDefaults() SubscribeOptions {
	setDefault(&o.SessionTimeout, time.Minute)
	setDefault(&o.RebalanceTimeout, 45*time.Second)
	setDefault(&o.Heartbeat, 3*time.Second)
	return o
}

// Validate checks every field and names what is wrong as the configuration does, as
// ErrInvalid.
func (o SubscribeOptions) Validate() error {
	o = o.withDefaults()
	var errs []error
	if o.Group != "" {
		if err := cursor.CheckName(o.Group); err != nil {
			errs = append(errs, fmt.Errorf("consumer_group: %w", err))
		}
	}
	if o.InstanceID != "" {
		if err := cursor.CheckName(o.InstanceID); err != nil {
			errs = append(errs, fmt.Errorf("instance_id: %w", err))
		}
	}
	if o.SessionTimeout < time.Second || o.SessionTimeout%time.Second != 0 {
		errs = append(errs, fmt.Errorf("session_timeout %s: want whole seconds: %w", o.SessionTimeout, base.ErrInvalid))
	}
	if o.Heartbeat <= 0 || o.Heartbeat >= o.SessionTimeout {
		errs = append(errs, fmt.Errorf("heartbeat_interval %s: want less than session_timeout (%s): %w", o.Heartbeat, o.SessionTimeout, base.ErrInvalid))
	}
	if o.RebalanceTimeout <= 0 {
		errs = append(errs, fmt.Errorf("rebalance_timeout %s: want more than 0: %w", o.RebalanceTimeout, base.ErrInvalid))
	}
	return errors.Join(errs...)
}

// Subscription hands out partitions to read: all that are selected, or this
// member's share of them. It is safe for concurrent use.
type Subscription struct {
	engine *Engine
	group  string
	member *cursor.Member
}

// Claim is a partition that a subscription reads until Release. Its methods say
// when to let go.
type Claim struct {
	*cursor.Claim

	// Stream is the partition's, Partition its number.
	Stream    *Stream
	Partition Partition
}

// Subscribe joins the group, or begins to read alone. ctx bounds that only; Close
// the subscription in the end. Wrong options or one limit too many is ErrInvalid.
func (e *Engine) Subscribe(ctx context.Context, o SubscribeOptions) (*Subscription, error) {
	o = o.withDefaults()
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("subscribing: %w", err)
	}
	options := cursor.MemberOptions{
		Documents: e.coordination.Documents(), Clock: e.clock, Logger: e.logger,
		NewID: func() string { return ulid.Make().String() },
		Group: o.Group, Name: o.InstanceID, Label: e.memberLabel(),
		Wants: func() ([]cursor.Range, error) { return e.ranges(o.Selections) }, Gone: e.isGone, Open: e.openPlace,
		SessionTimeout: o.SessionTimeout, RebalanceTimeout: o.RebalanceTimeout, Heartbeat: o.Heartbeat,
	}
	s := &Subscription{engine: e, group: o.Group}
	if o.Group == "" {
		s.member = cursor.Follow(ctx, options)
		return s, nil
	}
	var err error
	s.member, err = cursor.Join(ctx, options)
	return s, err
}

// memberLabel says for people where a member runs.
func (e *Engine) memberLabel() string {
	if e.opts.InstanceID != "" {
		return e.opts.InstanceID
	}
	host, _ := os.Hostname() // a member without one is told by its name
	return host
}

// ranges resolves selections to partitions that exist, each once. A stream that does
// not exist yet has none.
func (e *Engine) ranges(selections []Selection) (ranges []cursor.Range, _ error) {
	for _, info := range e.catalog.List() {
		stream := cursor.Stream{Shard: info.Shard, ID: info.ID, Name: info.Name}
		last := Partition(info.Partitions - 1) //nolint:gosec // at most MaxPartitions
		for i := range selections {
			s := &selections[i]
			switch {
			case !s.Matches(info.Name.String()):
				continue
			case !s.All && s.First > last:
				continue
			case !s.All:
				ranges = append(ranges, cursor.Range{Stream: stream, First: s.First, Last: min(s.Last, last)})
				continue
			}
			ranges = append(ranges, cursor.Range{Stream: stream, Last: last})
			break
		}
	}
	return ranges, nil
}

// Matches reports whether a stream of this full name is chosen.
func (s *Selection) Matches(name string) bool {
	if s.Pattern == nil {
		return s.Stream == name
	}
	return s.Pattern.MatchString(name)
}

// isGone reports whether a stream was deleted. A view that has not come to its
// creation cannot tell.
func (e *Engine) isGone(stream cursor.Stream) (gone bool) {
	e.shards[stream.Shard].view.Inspect(func(s *shard.State) {
		_, lives := s.Stream(stream.ID)
		gone = !lives && s.Revision() >= base.Revision(stream.ID)
	})
	return gone
}

// Exists reports whether the stream of a place lives, in the incarnation that the
// place names.
func (e *Engine) Exists(place Place) bool { return !e.isGone(place.Stream) }

func (e *Engine) openPlace(place Place) (cursor.Log, error) {
	log, err := e.logAt(place)
	if err != nil {
		return nil, err
	}
	return log, nil
}

// streamAt returns the stream of a place, or ErrNotFound when its name is another
// incarnation's.
func (e *Engine) streamAt(p cursor.Place) (*Stream, error) {
	info, err := e.catalog.Load(p.Stream.Name)
	if err != nil {
		return nil, err
	}
	if info.ID != p.Stream.ID {
		return nil, fmt.Errorf("stream %s was created anew: %w", p.Stream.Name, base.ErrNotFound)
	}
	return &Stream{shard: e.shards[info.Shard], info: info}, nil
}

// Next returns the next partition to read, waiting for one until ctx ends. After
// Close it returns ErrClosed; when another member has joined under the same
// InstanceID, ErrFenced: then close it, and do not subscribe again by yourself.
func (s *Subscription) Next(ctx context.Context) (*Claim, error) {
	for {
		claim, err := s.member.Next(ctx)
		if err != nil {
			return nil, err
		}
		stream, err := s.engine.streamAt(claim.Place())
		if err == nil {
			return &Claim{Claim: claim, Stream: stream, Partition: claim.Place().Partition}, nil
		}
		// It was dropped a moment ago: nobody reads it any more.
		if err := claim.Release(ctx); err != nil {
			return nil, err
		}
	}
}

// Committed returns the first offset that the group has not consumed in a
// partition, whoever owns it, and whether it ever committed one.
func (s *Subscription) Committed(ctx context.Context, place Place) (Offset, bool, error) {
	if s.group == "" {
		return 0, false, nil
	}
	commit, err := cursor.CommitOf(ctx, s.engine.coordination.Documents(), s.group, place)
	return commit.Next, commit.Committed, err
}

// Close leaves the group. Release the claims before: those that were not are lost.
// After an error others take over when the session has timed out.
func (s *Subscription) Close(ctx context.Context) error { return s.member.Leave(ctx) }
