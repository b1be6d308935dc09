package compaction

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/catalog"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/materialization"
	"github.com/lakestream-go/lakestream/internal/shard"
)

// TableRequest asks for the table files of ranges of one stream's logs.
type TableRequest struct {
	Cluster base.ClusterID
	Shard   base.Shard
	Stream  base.StreamID
	Name    base.StreamName
	Table   catalog.Table
	// Writer and Seq make the names of the files unique.
	Writer  base.WriterID
	Seq     base.Seq
	Sources []TableSource
}

// TableSource is the records of one log that a request is about.
type TableSource struct {
	Log    base.LogID
	Source recordbatch.Source
}

// Materializer decodes records into table files, evolving the table first where
// they need it. The files are durable when it returns, and no snapshot holds them.
type Materializer interface {
	Prepare(ctx context.Context, request TableRequest) ([]materialization.Prepared, error)
}

// preparer is the step machine that decodes ranges for their tables and publishes
// what they became. A stream whose table is in trouble is reported and left out.
type preparer struct {
	env      Env
	requests []TableRequest
	ranges   []*commitpb.PreparedRange
	// replaces names the lost file for whose sake the only range is decoded.
	replaces string
	// failed tells what went wrong, by stream.
	failed map[base.StreamID]error
}

// step prepares one stream or, when all are, publishes one record. It reports
// whether nothing is left.
func (p *preparer) step(ctx context.Context) (done bool, err error) {
	if len(p.requests) > 0 {
		p.prepareNext(ctx)
		return false, ctx.Err()
	}
	if len(p.ranges) == 0 {
		return true, nil
	}
	return false, p.publish(ctx)
}

func (p *preparer) prepareNext(ctx context.Context) {
	request := p.requests[0]
	p.requests = p.requests[1:]
	request.Writer, request.Seq = p.env.Session.Writer(), p.env.Session.Next()
	prepared, err := p.env.Tables.Prepare(ctx, request)
	if err != nil {
		p.failed[request.Stream] = fmt.Errorf("preparing table %s: %w", request.Table, err)
		return
	}
	for _, r := range prepared {
		encoded := encodePrepared(r)
		encoded.Replaces = p.replaces
		p.ranges = append(p.ranges, encoded)
	}
}

// publish takes as many ranges as a record holds. A range that the fold rejects
// was prepared by someone else first, or its table was replaced meanwhile.
func (p *preparer) publish(ctx context.Context) error {
	n, bytes := 0, 0
	for n < len(p.ranges) && (n == 0 || bytes+proto.Size(p.ranges[n]) <= commitrecord.MaxBytes/2) {
		bytes += proto.Size(p.ranges[n])
		n++
	}
	p.env.crash(BeforePrepared)
	out, err := p.env.Session.Publish(ctx, &commitpb.Prepared{
		Writer: uint64(p.env.Session.Writer()), Seq: uint64(p.env.Session.Next()), Ranges: p.ranges[:n],
	})
	if err != nil {
		return fmt.Errorf("publishing prepared ranges: %w", err)
	}
	p.env.crash(AfterPrepared)
	for _, l := range out.Logs {
		switch l.Rejected {
		case shard.Accepted, shard.NotAtMark, shard.NotPrepared, shard.NoStream: // done, or no longer wanted
		case shard.TableChanged:
			p.failed[l.Log.Stream] = fmt.Errorf("preparing table: %s: the table was dropped or replaced: %w", l.Rejected, base.ErrConflict)
		default: // at once it would be refused again
			p.failed[l.Log.Stream] = fmt.Errorf("preparing table: %s", l.Rejected)
		}
	}
	p.ranges = p.ranges[n:]
	return nil
}

func encodePrepared(r materialization.Prepared) *commitpb.PreparedRange {
	return &commitpb.PreparedRange{
		Stream: uint64(r.Log.Stream), Partition: uint32(r.Log.Partition), //nolint:gosec // never negative
		Start: uint64(r.Range.Start), End: uint64(r.Range.End), //nolint:gosec // never negative
		TableUuid: r.TableUUID, SchemaId: int32(r.SchemaID), SpecId: int32(r.SpecID), //nolint:gosec // small counters
		Main: encodeFiles(r.Main), DeadLetterUuid: r.DeadLetterUUID, DeadLetter: encodeFiles(r.DeadLetter),
		Filtered: uint64(r.Filtered), //nolint:gosec // never negative
	}
}

func encodeFiles(files []materialization.DataFile) []*commitpb.DataFile {
	encoded := make([]*commitpb.DataFile, len(files))
	for i, f := range files {
		encoded[i] = &commitpb.DataFile{Path: f.Path, Size: uint64(f.Size), Rows: uint64(f.Rows)} //nolint:gosec // never negative
	}
	return encoded
}

// clipped is the part of a source inside a range.
type clipped struct {
	recordbatch.Source
	part base.OffsetRange
}

func (c clipped) Range() base.OffsetRange { return c.part }

func (c clipped) Each(yield func(*recordbatch.Positioned) error) error {
	return c.Source.Each(func(r *recordbatch.Positioned) error {
		if !c.part.Contains(r.Offset) {
			return nil
		}
		return yield(r)
	})
}
