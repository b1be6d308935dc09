package compaction

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/materialization/commit"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// TableOwner is what the tables of a stream carry as their owner.
func TableOwner(cluster base.ClusterID, shard base.Shard, stream base.StreamID) string {
	return fmt.Sprintf("%s/%s/%d", cluster, shard, stream)
}

// NewTableSource returns the log side of a stream's committer: what the fold knows
// of the ranges that passes prepared, and the record of what a table holds. A view
// that has stopped shows nothing more.
func NewTableSource(view View, stream base.StreamID) commit.Source {
	return tableSource{view: view, stream: stream}
}

type tableSource struct {
	view   View
	stream base.StreamID
}

// View implements commit.Source.
func (s tableSource) View(context.Context) (commit.View, error) {
	if err := s.view.Err(); err != nil {
		return commit.View{}, err
	}
	var view commit.View
	err := fmt.Errorf("stream %d: %w", s.stream, base.ErrNotFound)
	s.view.Inspect(func(st *shard.State) {
		stream, ok := st.Stream(s.stream)
		if !ok {
			return
		}
		err = nil
		t := stream.Table
		view.Owner = TableOwner(st.Cluster(), st.Shard(), stream.ID)
		view.Main = markOf(t.UUID, t.Snapshot, t.CommitID)
		view.DeadLetter = markOf(t.DeadLetterUUID, t.DeadLetterSnapshot, t.DeadLetterCommitID)
		for _, l := range stream.Logs {
			view.Logs = append(view.Logs, viewLog(l))
		}
	})
	return view, err
}

// markOf is zero before the first commit: a binding alone is no mark.
func markOf(uuid string, snapshot int64, commitID string) commit.Mark {
	if commitID == "" {
		return commit.Mark{}
	}
	return commit.Mark{TableUUID: uuid, SnapshotID: snapshot, CommitID: commitID}
}

func viewLog(l *shard.Log) commit.Log {
	log := commit.Log{Partition: l.ID().Partition, Materialized: l.Materialized()}
	for _, p := range l.Pending() {
		log.Prepared = append(log.Prepared, commit.Range{Prepared: decodePrepared(l.ID(), p.PreparedRange), Accepted: p.Since})
	}
	return log
}

func decodePrepared(id base.LogID, p *commitpb.PreparedRange) materialization.Prepared {
	return materialization.Prepared{
		Log: id, Range: base.OffsetRange{Start: base.Offset(p.GetStart()), End: base.Offset(p.GetEnd())}, //nolint:gosec // folded
		TableUUID: p.GetTableUuid(), SchemaID: int(p.GetSchemaId()), SpecID: int(p.GetSpecId()),
		Main: decodeFiles(p.GetMain()), DeadLetterUUID: p.GetDeadLetterUuid(), DeadLetter: decodeFiles(p.GetDeadLetter()),
		Filtered: int64(p.GetFiltered()), //nolint:gosec // a count of records
	}
}

func decodeFiles(files []*commitpb.DataFile) []materialization.DataFile {
	decoded := make([]materialization.DataFile, len(files))
	for i, f := range files {
		decoded[i] = materialization.DataFile{Path: f.GetPath(), Size: int64(f.GetSize()), Rows: int64(f.GetRows())} //nolint:gosec // sizes of files
	}
	return decoded
}

// Publish implements commit.Source.
func (s tableSource) Publish(ctx context.Context, progress commit.Materialized) error {
	record := &commitpb.Materialized{
		Stream: uint64(s.stream), TableUuid: progress.Main.TableUUID,
		Snapshot: progress.Main.SnapshotID, CommitId: progress.Main.CommitID,
		DeadLetterUuid: progress.DeadLetter.TableUUID, DeadLetterSnapshot: progress.DeadLetter.SnapshotID,
		DeadLetterCommitId: progress.DeadLetter.CommitID,
	}
	for _, p := range slices.Sorted(maps.Keys(progress.Ends)) {
		record.Partition = append(record.Partition, uint32(p))    //nolint:gosec // never negative
		record.End = append(record.End, uint64(progress.Ends[p])) //nolint:gosec // never negative
	}
	out, err := s.view.Publish(ctx, record)
	if err != nil {
		return err
	}
	if !out.OK() {
		return fmt.Errorf("recording table progress: %s: %w", out.Rejected, base.ErrConflict)
	}
	for _, l := range out.Logs {
		if l.Rejected != shard.Accepted && l.Rejected != shard.AlreadyPublished {
			return fmt.Errorf("recording table progress of partition %d: %s: %w", l.Log.Partition, l.Rejected, base.ErrConflict)
		}
	}
	return nil
}
