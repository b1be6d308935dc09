package natskv

import (
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// tellWeakness warns once of each thing about the servers that makes acknowledged
// records less durable than they could be. Whether servers sync what they acknowledge
// no client can ask.
func (s *Store) tellWeakness(info *jetstream.StreamInfo) {
	if s.node != nil {
		return // one server is what an embedded one is
	}
	for _, weakness := range weaknesses(info) {
		s.mu.Lock()
		told := s.told[weakness]
		s.told[weakness] = true
		s.mu.Unlock()
		if !told {
			s.options.Logger.Warn("Coordination is less durable than it could be", "servers", s.label, "reason", weakness)
		}
	}
}

// weaknesses lists what an operator may want to change.
func weaknesses(info *jetstream.StreamInfo) []string {
	var found []string
	switch copies := info.Config.Replicas; {
	case info.Cluster == nil || info.Cluster.Name == "":
		found = append(found, "one server alone keeps the buckets: the loss of its disk loses them")
	case copies < clusteredReplicas:
		found = append(found, fmt.Sprintf("a bucket has %d of %d copies: the loss of a server may lose or stop it; set num_replicas of its stream",
			copies, clusteredReplicas))
	}
	if info.Cluster != nil {
		for _, peer := range info.Cluster.Replicas {
			if peer.Offline {
				found = append(found, fmt.Sprintf("server %s is offline: its copies of the buckets fall behind", peer.Name))
			}
		}
	}
	return found
}
