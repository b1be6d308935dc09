package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	ucli "github.com/urfave/cli/v2"

	"github.com/lakestream-go/lakestream/engine"
)

const (
	defaultHeadRows = 10
	// maxHeadRows bounds what is held in memory.
	maxHeadRows = 100_000
	// maxTextColumns is how many columns are printed for people who choose none.
	maxTextColumns = 7
)

func (a app) tableHead() *ucli.Command {
	var limit int
	var columns string
	return a.command(spec{
		name: "head", usage: "Print rows of a table", args: "TABLE", min: 1, max: 1,
		description: "Rows come in no promised order. Text shortens long values and shows the first columns; --json holds everything.",
		flags: []ucli.Flag{
			&ucli.IntFlag{Name: "n", Value: defaultHeadRows, Destination: &limit, Usage: "`NUMBER` of rows, 1 to 100000"},
			&ucli.StringFlag{Name: "columns", Destination: &columns, Usage: "comma-separated `NAMES` of top-level columns; all without"},
		},
		run: func(ctx context.Context, in *invocation) error {
			if limit < 1 || limit > maxHeadRows {
				return usagef("head: -n %d: want 1 to %d", limit, maxHeadRows)
			}
			chosen := splitNames(columns)
			return in.withTable(ctx, func(ctx context.Context, _ *engine.Engine, t *engine.Table) error {
				return in.head(ctx, t, chosen, limit)
			})
		},
	})
}

func (in *invocation) head(ctx context.Context, t *engine.Table, chosen []string, limit int) error {
	shown, left := chosen, 0
	types := map[string]string{}
	if !in.common.json {
		all, err := t.Columns(ctx)
		if err != nil {
			return err
		}
		for _, c := range all {
			types[c.Name] = c.Type
			if len(chosen) == 0 {
				shown = append(shown, c.Name)
			}
		}
	}
	if len(chosen) == 0 {
		left = max(0, len(shown)-maxTextColumns)
		shown = shown[:len(shown)-left]
	}
	rows, err := t.Head(ctx, shown, limit)
	if err != nil {
		return err
	}
	if rows == nil {
		rows = []engine.Row{}
	}
	if err := in.print(rows, func(p *page) { writeRows(p, shown, types, rows) }); err != nil {
		return err
	}
	if left > 0 {
		in.note("%s not shown: name them with --columns, or use --json", plural(left, "more column"))
	}
	return nil
}

func splitNames(list string) (names []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func writeRows(p *page, columns []string, types map[string]string, rows []engine.Row) {
	cells := make([][]string, len(rows))
	for i, row := range rows {
		for _, name := range columns {
			cells[i] = append(cells[i], cellText(types[name], row[name]))
		}
	}
	p.table(append([]string(nil), columns...), cells)
}

// cellText shows a value for people: text without its quotes, bytes as text where
// they are, a time of day at one width, and nothing for null.
func cellText(columnType string, value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	switch columnType {
	case "binary":
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && utf8.Valid(decoded) {
			return string(decoded)
		}
	case "timestamptz":
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return stamp(at)
		}
	}
	return text
}
