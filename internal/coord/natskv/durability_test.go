package natskv

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func streamOn(cluster string, replicas int, peers ...*jetstream.PeerInfo) *jetstream.StreamInfo {
	info := &jetstream.StreamInfo{Config: jetstream.StreamConfig{Replicas: replicas}}
	if cluster != "" {
		info.Cluster = &jetstream.ClusterInfo{Name: cluster, Replicas: peers}
	}
	return info
}

func TestWhatWeakensDurabilityIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		info *jetstream.StreamInfo
		want []string
	}{
		"three copies":    {streamOn("c", 3, &jetstream.PeerInfo{Name: "n2"}, &jetstream.PeerInfo{Name: "n3"}), nil},
		"one server":      {streamOn("", 1), []string{"one server alone"}},
		"one copy":        {streamOn("c", 1), []string{"1 of 3 copies"}},
		"a copy offline":  {streamOn("c", 3, &jetstream.PeerInfo{Name: "n2", Offline: true}), []string{"n2 is offline"}},
		"two, one is off": {streamOn("c", 2, &jetstream.PeerInfo{Name: "n2", Offline: true}), []string{"2 of 3 copies", "n2 is offline"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := weaknesses(c.info)
			require.Len(t, found, len(c.want))
			for i, want := range c.want {
				assert.Contains(t, found[i], want)
			}
		})
	}
}

// A weakness that all buckets share is told once, and of an embedded server none.
func TestAWeaknessIsToldOnce(t *testing.T) {
	var log bytes.Buffer
	s := &Store{told: map[string]bool{}, options: Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	s.tellWeakness(streamOn("", 1))
	s.tellWeakness(streamOn("", 1))
	assert.Equal(t, 1, bytes.Count(log.Bytes(), []byte("one server alone")))
	log.Reset()
	s.node = &node{}
	s.tellWeakness(streamOn("c", 1))
	assert.Empty(t, log.String())
}
