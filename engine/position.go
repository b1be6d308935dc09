package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
)

// PositionKind says what a Position counts from.
type PositionKind uint8

// Kinds of positions.
const (
	// Earliest is the first live record.
	Earliest PositionKind = iota
	// Latest is the head.
	Latest
	// AtOffset is Position.Offset.
	AtOffset
	// AtTime is the first record appended at or after Position.Time.
	AtTime
	// Ago is AtTime, Position.Ago before some moment: see Fixed.
	Ago
	// Committed is where a consumer group goes on.
	Committed
)

// wantPosition is what ParsePosition reads.
const wantPosition = "want earliest, latest, committed, an offset, @ and a time (RFC 3339 or milliseconds), or @-1h for a time ago"

// Position is a place in a log to begin at.
type Position struct {
	Kind   PositionKind
	Offset Offset
	Time   time.Time
	Ago    time.Duration
}

// ParsePosition reads earliest, latest, committed, an offset, or @ and a time: RFC
// 3339, milliseconds since the Unix epoch, or a duration ago as in @-1h. Other text
// is ErrInvalid.
func ParsePosition(text string) (Position, error) {
	at, isTime := strings.CutPrefix(text, "@")
	switch {
	case text == "earliest":
		return Position{Kind: Earliest}, nil
	case text == "latest":
		return Position{Kind: Latest}, nil
	case text == "committed":
		return Position{Kind: Committed}, nil
	case isTime:
		return parseTime(at)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return Position{}, badPosition(text)
	}
	return Position{Kind: AtOffset, Offset: Offset(n)}, nil
}

func parseTime(text string) (Position, error) {
	if ago, ok := strings.CutPrefix(text, "-"); ok {
		if d, err := time.ParseDuration(ago); err == nil && d > 0 {
			return Position{Kind: Ago, Ago: d}, nil
		}
		return Position{}, badPosition("@" + text)
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms >= 0 {
		return Position{Kind: AtTime, Time: time.UnixMilli(ms).UTC()}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return Position{}, badPosition("@" + text)
	}
	return Position{Kind: AtTime, Time: at.UTC()}, nil
}

func badPosition(text string) error {
	return base.WithClass(base.ErrInvalid, fmt.Errorf("%q: %s", text, wantPosition))
}

// Fixed returns the position with a time ago counted from a moment.
func (p Position) Fixed(now time.Time) Position {
	if p.Kind == Ago {
		return Position{Kind: AtTime, Time: now.Add(-p.Ago)}
	}
	return p
}

// Resolve returns the offset of a position in the log as it is now. A place before
// the first live record means that record. An offset beyond the head is ErrInvalid,
// as are Committed, of which a log knows nothing, and Ago, which needs Fixed.
func (l *Log) Resolve(ctx context.Context, p Position) (Offset, error) {
	start, head, err := l.Bounds()
	if err != nil {
		return 0, err
	}
	at := start
	switch p.Kind {
	case Earliest:
	case Latest:
		at = head
	case AtOffset:
		if at = p.Offset; at > head {
			return 0, fmt.Errorf("offset %d: the log ends at %d: %w", at, head, base.ErrInvalid)
		}
	case AtTime:
		at, err = l.OffsetAt(ctx, p.Time)
	default:
		return 0, fmt.Errorf("a position of kind %d in a log: %w", p.Kind, base.ErrInvalid)
	}
	return max(at, start), err
}
