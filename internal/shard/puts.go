package shard

import (
	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
)

// PutWindow is how many seconds back a follower counts puts.
const PutWindow = 60

const millisPerSecond = 1000

// puts counts the objects that records name, accepted or not, by the second of
// their append time.
type puts struct {
	seconds, counts [PutWindow]int64
}

func (p *puts) add(at base.Millis, objects int) {
	second := int64(at) / millisPerSecond
	i := second % PutWindow
	if p.seconds[i] != second {
		p.seconds[i], p.counts[i] = second, 0
	}
	p.counts[i] += int64(objects)
}

// since returns the sum of the PutWindow seconds before now.
func (p *puts) since(now base.Millis) (sum int64) {
	oldest := int64(now)/millisPerSecond - PutWindow
	for i, second := range p.seconds {
		if second > oldest {
			sum += p.counts[i]
		}
	}
	return sum
}

// countPutsLocked counts the objects that the newest record names.
func (f *Follower) countPutsLocked(out *Outcome) {
	switch out.Kind { //nolint:exhaustive // no other kind names objects of the store
	case commitrecord.KindAppend:
		f.puts.add(out.Time, 1)
	case commitrecord.KindCompact:
		f.puts.add(out.Time, len(out.Logs))
	}
}

// Puts returns how many objects the records of the last PutWindow seconds name:
// what was put into the object store, uploads without a record left out.
func (f *Follower) Puts(now base.Millis) int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.puts.since(now)
}
