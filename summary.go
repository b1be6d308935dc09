package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"text/tabwriter"

	"github.com/lakestream-go/lakestream/engine"
)

// Exit codes.
const (
	exitFailed      = 1
	exitUnavailable = 4
)

// closings are the engines of this process that closed, each with its last status.
// It is safe for concurrent use.
type closings struct {
	mu sync.Mutex
	// list is guarded by mu.
	list []closing
}

type closing struct {
	status  engine.Status
	drained error
}

func (c *closings) add(status engine.Status, drained error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, closing{status: status, drained: drained})
}

// exitCode turns Benthos's exit code into ours: a pipeline that ended well may
// have left tables behind, or failed to make everything durable.
func (c *closings) exitCode(code int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if code != 0 {
		return code
	}
	for _, one := range c.list {
		switch {
		case errors.Is(one.drained, engine.ErrTablesBehind):
			code = exitUnavailable
		case one.drained != nil && code == 0:
			code = exitFailed
		}
	}
	return code
}

// writeSummary tells what this process wrote, where it is and how to look at it.
func (c *closings) writeSummary(out io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.list {
		if one.status.Written.Records == 0 {
			continue
		}
		_ = one.write(out) // nobody is left to tell
	}
}

func (c *closing) write(out io.Writer) error {
	st := &c.status
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "  %s\t%s\n", name, fmt.Sprintf(format, args...)) // Flush returns the error
	}
	_, _ = fmt.Fprintf(w, "\nwrote %d records in %d objects (%d bytes)\n", st.Written.Records, st.Written.Objects, st.Written.Bytes)
	query := ""
	for i := range st.Streams {
		s := &st.Streams[i]
		if !s.Written {
			continue
		}
		row("stream", "%s, %d partitions, %d records", s.Name, s.Partitions, s.Records)
		if t := s.Table; t != nil {
			row("table", "%s, %s", t.Name, describeTable(t))
			if query == "" && t.Rows > 0 {
				query = t.Name
			}
		}
	}
	row("data", "%s", st.Storage)
	row("tables", "%s, catalog %s", st.Warehouse, st.Catalog)
	if query != "" {
		row("query", "lakestream table head %s", query)
	}
	if c.drained != nil {
		row("behind", "%v", c.drained)
	}
	return w.Flush()
}

// describeTable says what a table holds, in one line.
func describeTable(t *engine.TableStatus) string {
	if t.Snapshot == 0 {
		return "no snapshot yet"
	}
	text := strconv.FormatInt(t.Rows, 10) + " rows in snapshot " + strconv.FormatInt(t.Snapshot, 10)
	if t.DeadLetters > 0 {
		text += fmt.Sprintf(", %d dead letters", t.DeadLetters)
	}
	if t.Behind > 0 {
		text += fmt.Sprintf(", %d records behind", t.Behind)
	}
	return text
}
