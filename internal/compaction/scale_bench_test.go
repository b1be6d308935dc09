package compaction_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/compaction"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/shard"
)

const (
	scaleStreams    = 4
	scalePartitions = 2500
)

// scaleShard is a shard of 10,000 logs, in a few streams, whose records a test folds.
type scaleShard struct {
	tb      testing.TB
	state   *shard.State
	streams []base.StreamID
	writer  base.WriterID
	seq     base.Seq
}

func newScaleShard(tb testing.TB) *scaleShard {
	tb.Helper()
	s := &scaleShard{tb: tb, state: shard.NewState(cluster, 0)}
	s.apply(&commitpb.ClusterCreate{Shards: 1, FoldVersion: 1})
	for i := range scaleStreams {
		out := s.apply(&commitpb.StreamCreate{Namespace: "s", Name: fmt.Sprint(i), Partitions: scalePartitions})
		s.streams = append(s.streams, out.Stream)
	}
	s.writer = s.apply(&commitpb.WriterOpen{Token: make([]byte, 16)}).Writer
	return s
}

func (s *scaleShard) apply(p commitrecord.Payload) shard.Outcome {
	s.tb.Helper()
	data, err := commitrecord.Encode(commitrecord.Envelope{Cluster: cluster}, p)
	require.NoError(s.tb, err)
	out, err := s.state.Apply(s.state.Revision()+1, 1, data)
	require.NoError(s.tb, err)
	require.True(s.tb, out.OK(), out.Rejected)
	return out
}

// append adds one object with a part of every log of every stream.
func (s *scaleShard) append() {
	s.seq++
	const part = 100
	p := &commitpb.Append{Writer: uint64(s.writer), Seq: uint64(s.seq), Size: part * scaleStreams * scalePartitions}
	for _, id := range s.streams {
		for i := range uint32(scalePartitions) {
			p.Stream, p.Partition, p.Records = append(p.Stream, uint64(id)), append(p.Partition, i), append(p.Records, 1)
			p.Pos, p.Len = append(p.Pos, part*uint32(len(p.Pos))), append(p.Len, part) //nolint:gosec // small
			p.MinTime, p.MaxTime = append(p.MinTime, 0), append(p.MaxTime, 0)
		}
	}
	s.apply(p)
}

// compact compacts all that is raw.
func (s *scaleShard) compact() {
	read := s.state.Revision()
	for _, id := range s.streams {
		s.seq++
		p := &commitpb.Compact{Writer: uint64(s.writer), Seq: uint64(s.seq), ReadRevision: uint64(read)}
		st, _ := s.state.Stream(id)
		for _, l := range st.Logs {
			p.Stream, p.Partition = append(p.Stream, uint64(id)), append(p.Partition, uint32(l.ID().Partition)) //nolint:gosec // small
			p.Start, p.End = append(p.Start, uint64(s.state.RawStart(l))), append(p.End, uint64(l.Head()))      //nolint:gosec // small
			p.Size = append(p.Size, 4000)
		}
		s.apply(p)
	}
}

// BenchmarkPlansOfTenThousandLogs is what a driver asks each time it looks: whether a
// pass is due, what tables lack, what to merge; and the plan of a pass.
func BenchmarkPlansOfTenThousandLogs(b *testing.B) {
	idle := newScaleShard(b)
	for range 7 {
		idle.append()
		idle.compact()
	}
	busy := newScaleShard(b)
	for range 60 {
		busy.append()
	}
	limits := compaction.Limits{Bytes: 64 << 20}
	due := compaction.Due{Age: time.Minute, Bytes: 256 << 20}
	for name, s := range map[string]*scaleShard{"idle": idle, "busy": busy} {
		b.Run(name+"/due", func(b *testing.B) {
			for b.Loop() {
				due.Wait(s.state, 0, limits)
			}
		})
		b.Run(name+"/backlogs", func(b *testing.B) {
			for b.Loop() {
				compaction.Backlogs(s.state, limits)
			}
		})
		b.Run(name+"/merge", func(b *testing.B) {
			for b.Loop() {
				compaction.NewMergePlan(s.state, compaction.MergeLimits{TargetBytes: 256 << 20, FanIn: compaction.MergeFanIn})
			}
		})
		b.Run(name+"/merge again", func(b *testing.B) {
			since := s.state.Revision()
			for b.Loop() {
				compaction.NewMergePlan(s.state, compaction.MergeLimits{TargetBytes: 256 << 20, FanIn: compaction.MergeFanIn, Since: since})
			}
		})
		b.Run(name+"/plan", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				compaction.NewPlan(s.state, limits)
			}
		})
	}
}

// Given more raw entries than a plan takes, then it takes whole commits, the oldest
// first, the same of every log, and the next plans take the rest.
func TestAPlanOfManyLogsIsBounded(t *testing.T) {
	s := newScaleShard(t)
	const commits = 20
	for range commits {
		s.append()
	}
	p := compaction.NewPlan(s.state, compaction.Limits{Bytes: 1 << 40})
	require.Len(t, p.Objects, 1+(1<<17)/(scaleStreams*scalePartitions))
	require.Len(t, p.Logs, scaleStreams*scalePartitions)
	for _, w := range p.Logs {
		require.Equal(t, base.OffsetRange{End: base.Offset(len(p.Objects))}, w.Range)
		require.Len(t, w.Entries, len(p.Objects))
	}
	s.compact()
	require.Zero(t, s.state.RawObjectBytes())
	empty := compaction.NewPlan(s.state, compaction.Limits{Bytes: 1 << 40})
	require.True(t, empty.Empty())
}
