package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lakestream-go/lakestream/engine"
)

// PositionKind says what a Position counts from.
type PositionKind uint8

// Kinds of positions.
const (
	// Earliest is the first live record.
	Earliest PositionKind = iota
	// Latest is the head at the time of connecting.
	Latest
	// AtOffset is Position.Offset.
	AtOffset
	// AtTime is the first record appended at or after Position.Time.
	AtTime
	// Ago is AtTime, Position.Ago before connecting.
	Ago
)

// Position is a place in a log to begin at.
type Position struct {
	Kind   PositionKind
	Offset engine.Offset
	Time   time.Time
	Ago    time.Duration
}

// ParsePosition reads earliest, latest, an offset, or @ and a time: RFC 3339,
// milliseconds since the Unix epoch, or a duration ago as in @-1h.
func ParsePosition(text string) (Position, error) {
	at, isTime := strings.CutPrefix(text, "@")
	switch {
	case text == "earliest":
		return Position{Kind: Earliest}, nil
	case text == "latest":
		return Position{Kind: Latest}, nil
	case isTime:
		return parseTime(at)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return Position{}, fmt.Errorf("%q: %s", text, wantPosition)
	}
	return Position{Kind: AtOffset, Offset: engine.Offset(n)}, nil
}

func parseTime(text string) (Position, error) {
	if ago, ok := strings.CutPrefix(text, "-"); ok {
		if d, err := time.ParseDuration(ago); err == nil && d > 0 {
			return Position{Kind: Ago, Ago: d}, nil
		}
		return Position{}, fmt.Errorf("%q: %s", "@"+text, wantPosition)
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms >= 0 {
		return Position{Kind: AtTime, Time: time.UnixMilli(ms).UTC()}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return Position{}, fmt.Errorf("%q: %s", "@"+text, wantPosition)
	}
	return Position{Kind: AtTime, Time: at.UTC()}, nil
}
