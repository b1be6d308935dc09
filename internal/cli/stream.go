package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

func (a app) streamCommands() []*ucli.Command {
	return []*ucli.Command{
		a.streamCreate(), a.streamList(), a.streamDescribe(), a.streamSet(), a.streamGrow(), a.streamTrim(),
		a.streamFence(), a.streamUnfence(), a.streamDelete(),
	}
}

func (a app) streamList() *ucli.Command {
	var deleted bool
	return a.command(spec{
		name: "ls", usage: "List streams", args: "[NAMESPACE]", max: 1,
		flags: []ucli.Flag{&ucli.BoolFlag{Name: "deleted", Destination: &deleted, Usage: "list those that were deleted and whose data is kept"}},
		run: func(ctx context.Context, in *invocation) error {
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				if deleted {
					return in.printKept(e)
				}
				streams := []engine.StreamStatus{}
				for _, s := range e.Status(ctx).Streams {
					if len(in.args) == 0 || strings.HasPrefix(s.Name, in.args[0]+"/") {
						streams = append(streams, s)
					}
				}
				return in.print(streams, func(p *page) { writeStreams(p, streams) })
			})
		},
	})
}

// keptStream is what is left of a deleted stream.
type keptStream struct {
	Name       string `json:"name"`
	Partitions int    `json:"partitions"`
}

func (in *invocation) printKept(e *engine.Engine) error {
	kept := []keptStream{}
	for _, s := range e.KeptStreams() {
		if len(in.args) == 0 || s.Name.Namespace == in.args[0] {
			kept = append(kept, keptStream{Name: s.Name.String(), Partitions: s.Partitions})
		}
	}
	return in.print(kept, func(p *page) {
		if len(kept) == 0 {
			p.linef("nothing is kept of deleted streams")
			return
		}
		rows := make([][]string, len(kept))
		for i, s := range kept {
			rows[i] = []string{s.Name, number(s.Partitions)}
		}
		p.table([]string{"DELETED STREAM", "PARTITIONS#"}, rows)
		p.linef("next: stream delete STREAM --purge gives up the data")
	})
}

func (a app) streamDescribe() *ucli.Command {
	return a.command(spec{
		name: "describe", usage: "Show a stream and each of its partitions", args: "STREAM", min: 1, max: 1,
		run: func(ctx context.Context, in *invocation) error {
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
				s, err := findStream(e, in.args[0])
				if err != nil {
					return err
				}
				status, err := streamStatus(ctx, e, s.Name())
				if err != nil {
					return err
				}
				return in.print(status, func(p *page) { writeStream(p, &status) })
			})
		},
	})
}

// findStream returns the stream of a name as a stream or as a table is written:
// namespace/name, namespace.name, or a name in the namespace "default".
func findStream(e *engine.Engine, name string) (*engine.Stream, error) {
	s, err := e.Stream(name)
	if !errors.Is(err, engine.ErrNotFound) {
		return s, err
	}
	for _, s := range e.Streams() {
		if strings.Replace(s.Name(), "/", ".", 1) == name {
			return s, nil
		}
	}
	return nil, hint(err, engine.ErrNotFound, "stream ls shows those that are")
}

func writeStream(p *page, s *engine.StreamStatus) {
	table := "none"
	if s.Table != nil {
		table = s.Table.Name + ", " + s.Table.State
	}
	pairs := []string{
		"stream", s.Name, "shard", s.Shard, "lifecycle", s.Lifecycle, "records", number(s.Records), "size", size(s.Bytes), "table", table,
		"keeps", s.Retention.String(),
	}
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		pairs = append(pairs, propertyPrefix+key, s.Properties[key])
	}
	p.pairs(pairs...)
	for _, l := range s.Logs {
		if l.Fence != "" {
			p.linef("partition %d is fenced: %s", l.Partition, l.Fence)
		}
	}
	p.linef("")
	rows := make([][]string, len(s.Logs))
	for i, l := range s.Logs {
		rows[i] = []string{
			number(l.Partition), number(l.Start), number(l.Head), number(l.RawFrom), number(l.Prepared), number(l.Materialized), number(l.Entries),
		}
	}
	p.table([]string{"PARTITION#", "START#", "HEAD#", "RAW FROM#", "PREPARED#", "IN TABLE#", "ENTRIES#"}, rows)
}
