package engine

import (
	"fmt"
	"time"

	"github.com/lakestream-go/lakestream/internal/format/checkpoint"
	"github.com/lakestream-go/lakestream/internal/format/segment"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// CheckpointDescription is a verified checkpoint: its state has the hash that it
// says.
type CheckpointDescription struct {
	Cluster  string    `json:"cluster"`
	Shard    string    `json:"shard"`
	Revision uint64    `json:"revision"`
	Time     time.Time `json:"time"`
	Chain    string    `json:"chain"`
	State    string    `json:"state"`
	Bytes    int       `json:"bytes"`
	Streams  int       `json:"streams"`
	Logs     int       `json:"logs"`
	Entries  int       `json:"entries"`
	Objects  int       `json:"objects"`
	Dead     int       `json:"dead"`
	Writers  int       `json:"writers"`
	Epoch    uint64    `json:"epoch"`
}

// SegmentDescription is a verified segment of an archived commit log.
type SegmentDescription struct {
	Cluster string    `json:"cluster"`
	Shard   string    `json:"shard"`
	From    uint64    `json:"from"`
	To      uint64    `json:"to"`
	First   time.Time `json:"first_time"`
	Last    time.Time `json:"last_time"`
	Start   string    `json:"start"`
	End     string    `json:"end"`
	Bytes   int       `json:"bytes"`
	Raw     int       `json:"raw_bytes"`
}

// inspectHistory verifies a checkpoint or a segment.
func inspectHistory(in *Inspection, data []byte) (*Inspection, error) {
	if segment.Is(data) {
		s, err := segment.Decode(data)
		if err != nil {
			return nil, fmt.Errorf("inspecting %s: %w", in.Name, err)
		}
		in.Kind, in.Segment = "commit log segment", describeSegment(s, len(data))
		return in, nil
	}
	c, err := checkpoint.Open(data)
	if err != nil {
		return nil, fmt.Errorf("inspecting %s: %w", in.Name, err)
	}
	sn, err := shard.VerifyCheckpoint(data, c.Header.Cluster, c.Header.Shard)
	if err != nil {
		return nil, fmt.Errorf("inspecting %s: %w", in.Name, err)
	}
	s := sn.State
	in.Kind, in.Checkpoint = "checkpoint", &CheckpointDescription{
		Cluster: s.Cluster().String(), Shard: s.Shard().String(), Revision: uint64(s.Revision()), Time: s.Time().Time(),
		Chain: c.Header.Chain.String(), State: c.Header.State.String(), Bytes: len(data), Streams: len(s.Streams()), Logs: s.Logs(),
		Entries: s.IndexEntries(), Objects: s.Objects(), Dead: len(s.Dead()), Writers: len(s.Writers()), Epoch: s.Epoch(),
	}
	return in, nil
}

func describeSegment(s *segment.Segment, size int) *SegmentDescription {
	d := &SegmentDescription{
		Cluster: s.Cluster.String(), Shard: s.Shard.String(), From: uint64(s.From), To: uint64(s.To),
		First: s.Entries[0].Time.Time(), Last: s.Entries[len(s.Entries)-1].Time.Time(),
		Start: s.Start.String(), End: s.End.String(), Bytes: size,
	}
	for _, e := range s.Entries {
		d.Raw += len(e.Data) + segment.EntryBytes
	}
	return d
}
