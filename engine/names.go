package engine

import (
	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/shard"
)

const (
	// MaxShards is the most shards that a cluster may be created with.
	MaxShards = base.MaxShards
	// MaxPartitions is the most partitions that a stream may have.
	MaxPartitions = shard.MaxPartitions
)

// ParseStreamName returns the full name (namespace/name) of the stream that text
// names, where a name alone is in the namespace "default". Text outside the
// grammar is ErrInvalid.
func ParseStreamName(text string) (string, error) {
	name, err := base.ParseStreamName(text)
	if err != nil {
		return "", err
	}
	return name.String(), nil
}

// Types that let a component of this module's plugin take its time from outside.
type (
	// Clock tells the time and makes timers.
	Clock = base.Clock
	// SystemClock is the machine's clock.
	SystemClock = base.SystemClock
)
