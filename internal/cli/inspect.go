package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

func (a app) inspect() *ucli.Command {
	return a.command(spec{
		name: "inspect", usage: "Verify an object or a commit record and say what it holds", args: "FILE|KEY", min: 1, max: 1,
		description: "A local file needs no engine. Otherwise the argument is the key of an object, as in wal/s00/17/00000000000000000001.wal, or a shard and a revision of its commit log, as in s00@17.",
		run: func(ctx context.Context, in *invocation) error {
			found, err := in.inspectFile(in.args[0])
			switch {
			case err != nil:
				return err
			case found != nil:
				return in.print(found, func(p *page) { writeInspection(p, found) })
			}
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				found, err := e.Inspect(ctx, in.args[0])
				if err != nil {
					return err
				}
				return in.print(found, func(p *page) { writeInspection(p, found) })
			})
		},
	})
}

// inspectFile returns nothing when there is no such file.
func (in *invocation) inspectFile(path string) (*engine.Inspection, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil //nolint:nilnil // then it is a key
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, usagef("inspect: %s is not a file", path)
	case info.Size() > engine.MaxInspectBytes:
		return nil, usagef("inspect: %s has %d bytes: want at most %d", path, info.Size(), engine.MaxInspectBytes)
	}
	data, err := os.ReadFile(path) //nolint:gosec // the path is the user's
	if err != nil {
		return nil, err
	}
	return engine.InspectBytes(path, data)
}

func writeInspection(p *page, i *engine.Inspection) {
	p.linef("%s: %s, verified", i.Name, i.Kind)
	switch {
	case i.WAL != nil:
		writeWAL(p, i)
	case i.Compacted != nil:
		writeCompacted(p, i.Compacted)
	case i.Checkpoint != nil:
		writeCheckpoint(p, i.Checkpoint)
	case i.Segment != nil:
		writeSegment(p, i.Segment)
	case i.Commit != nil:
		writeCommit(p, i.Commit)
	}
}

func writeWAL(p *page, i *engine.Inspection) {
	w := i.WAL
	p.pairs("cluster", w.Cluster, "shard", w.Shard, "writer", number(w.Writer), "sequence", number(w.Seq),
		"format version", number(w.Version), "size", size(int64(w.Bytes)), "padding", size(int64(w.Padding)), "records", number(w.Records))
	p.linef("")
	rows := make([][]string, len(w.Blocks))
	for n, b := range w.Blocks {
		var batches []string
		for _, compression := range slices.Sorted(maps.Keys(b.Batches)) {
			batches = append(batches, fmt.Sprintf("%d %s", b.Batches[compression], compression))
		}
		rows[n] = []string{
			number(b.Stream), number(b.Partition), number(b.Records), number(b.Pos), number(b.Bytes), strings.Join(batches, ", "), stamp(b.MinTime), stamp(b.MaxTime),
		}
	}
	p.table([]string{"STREAM#", "PARTITION#", "RECORDS#", "AT#", "BYTES#", "BATCHES", "FIRST TIME", "LAST TIME"}, rows)
}

func writeCompacted(p *page, c *engine.CompactedDescription) {
	p.pairs("cluster", c.Cluster, "shard", c.Shard, "stream", number(c.Stream), "partition", number(c.Partition),
		"offsets", fmt.Sprintf("%d-%d", c.Start, c.End), "size", size(c.Bytes), "footer", size(c.FooterBytes),
		"keys", size(c.KeyBytes), "values", size(c.ValueBytes), "headers", number(c.Headers), "tombstones", number(c.Tombstones),
		"record times", stamp(c.MinTime)+" to "+stamp(c.MaxTime), "append times", stamp(c.FirstAppend)+" to "+stamp(c.LastAppend),
		"revisions", fmt.Sprintf("%d-%d", c.FirstRevision, c.LastRevision))
	p.linef("")
	rows := make([][]string, len(c.RowGroups))
	for n, g := range c.RowGroups {
		rows[n] = []string{number(n), fmt.Sprintf("%d-%d", g.Start, g.End), number(g.Bytes), number(g.RawBytes)}
	}
	p.table([]string{"ROW GROUP#", "OFFSETS", "BYTES#", "RAW BYTES#"}, rows)
}

func writeCommit(p *page, c *engine.CommitDescription) {
	revision := ""
	if c.Revision > 0 {
		revision = number(c.Revision)
	}
	p.pairs("kind", c.Kind, "cluster", c.Cluster, "revision", revision,
		"seen", fmt.Sprintf("revision %d, hash %s", c.SeenRevision, c.SeenHash), "request", c.Request)
	p.linef("")
	var payload bytes.Buffer
	if err := json.Indent(&payload, c.Payload, "", "  "); err != nil {
		payload.Reset()
		payload.Write(c.Payload)
	}
	p.linef("%s", payload.String())
}

func writeCheckpoint(p *page, c *engine.CheckpointDescription) {
	p.pairs("cluster", c.Cluster, "shard", c.Shard, "revision", number(c.Revision), "record time", stamp(c.Time),
		"size", size(int64(c.Bytes)), "chain", c.Chain, "state", c.State, "streams", number(c.Streams), "logs", number(c.Logs),
		"index entries", number(c.Entries), "objects", number(c.Objects), "dead objects", number(c.Dead),
		"open writers", number(c.Writers), "epoch", number(c.Epoch))
}

func writeSegment(p *page, s *engine.SegmentDescription) {
	p.pairs("cluster", s.Cluster, "shard", s.Shard, "revisions", fmt.Sprintf("%d-%d", s.From, s.To),
		"record times", stamp(s.First)+" to "+stamp(s.Last), "size", size(int64(s.Bytes)), "raw", size(int64(s.Raw)),
		"follows", s.Start, "leads to", s.End)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
