package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

func (a app) streamList() *ucli.Command {
	return a.command(spec{
		name: "ls", usage: "List streams", args: "[NAMESPACE]", max: 1,
		run: func(ctx context.Context, in *invocation) error {
			return in.withEngine(ctx, func(ctx context.Context, e *engine.Engine) error {
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
	return nil, fmt.Errorf("%w; stream ls shows those that are", err)
}

func writeStream(p *page, s *engine.StreamStatus) {
	table := "none"
	if s.Table != nil {
		table = s.Table.Name + ", " + s.Table.State
	}
	p.pairs("stream", s.Name, "shard", s.Shard, "records", number(s.Records), "size", size(s.Bytes), "table", table)
	p.linef("")
	rows := make([][]string, len(s.Logs))
	for i, l := range s.Logs {
		rows[i] = []string{
			number(l.Partition), number(l.Start), number(l.Head), number(l.RawFrom), number(l.Prepared), number(l.Materialized), number(l.Entries),
		}
	}
	p.table([]string{"PARTITION#", "START#", "HEAD#", "RAW FROM#", "PREPARED#", "IN TABLE#", "ENTRIES#"}, rows)
}
