package shard

import "github.com/lakestream-go/lakestream/internal/base"

// Orphans returns those of some objects' keys that no record names and none ever
// will: their writer is not open any more, and nothing live or dead has the key. An
// object of a writer that the state has not heard of yet is none. Keys that this
// software does not write, and those of other shards, are left out. The keys must
// have been listed before the state was looked at.
func (s *State) Orphans(keys []string) (orphans []string) {
	live := s.liveKeys(s.closedWriters(keys))
	for _, key := range keys {
		writer, closed := s.closedWriter(key)
		if !closed {
			continue
		}
		if _, dead := s.dead[key]; !dead && !live[writer][key] {
			orphans = append(orphans, key)
		}
	}
	return orphans
}

// closedWriter returns the writer that a key names, if it can publish nothing more.
func (s *State) closedWriter(key string) (base.WriterID, bool) {
	shard, writer, err := base.WriterOfKey(key)
	if err != nil || shard != s.shard || base.Revision(writer) > s.revision {
		return 0, false
	}
	_, open := s.writers[writer]
	return writer, !open
}

func (s *State) closedWriters(keys []string) map[base.WriterID]map[string]bool {
	closed := make(map[base.WriterID]map[string]bool)
	for _, key := range keys {
		if writer, ok := s.closedWriter(key); ok && closed[writer] == nil {
			closed[writer] = make(map[string]bool)
		}
	}
	return closed
}

// liveKeys fills in the keys of the objects that some writers wrote and that
// entries lie in.
func (s *State) liveKeys(writers map[base.WriterID]map[string]bool) map[base.WriterID]map[string]bool {
	for _, streams := range []map[base.StreamID]*Stream{s.streams, s.kept} {
		for _, st := range streams {
			for _, l := range st.Logs {
				for _, e := range l.entries {
					o := s.objects.get(e.object)
					if keys, ok := writers[o.writer]; ok {
						keys[o.key(s.shard, l.id, base.OffsetRange{Start: e.base, End: e.end()})] = true
					}
				}
			}
		}
	}
	return writers
}
